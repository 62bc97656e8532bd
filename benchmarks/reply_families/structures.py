"""Plans in JSON, YAML, XML, HTML and tables, whole or damaged."""

import json
from dataclasses import replace

from reply_families.drawing import Drawing, Item, Meant, Task, family


def steps(d: Drawing) -> list[dict[str, object]]:
    """The steps as objects, in one of the spellings that models use."""
    text, who, after = d.pick(
        ("description", "assigned_to", "dependencies"),
        ("task", "specialist", "depends_on"),
        ("title", "agent", "after"),
        ("description", "specialist", "dependencies"),
        ("step", "assignee", "requires"),
    )
    number = d.pick("id", "id", "step_id", "number")
    return [
        {number: n, text: t.text, who: d.pick("", "@") + t.who, after: list(t.after)}
        for n, t in enumerate(d.tasks, 1)
    ]


def whole(d: Drawing, plan: object | None = None) -> dict[str, object]:
    """A whole reply as one object."""
    plan = steps(d) if plan is None else plan
    return {
        "complexity": d.pick("complex", "moderate"),
        "reasoning": d.say(d.own.reasons),
        "next_action": "create_plan",
        d.pick("plan", "steps", "tasks"): plan,
    }


def dumped(d: Drawing, value: object) -> str:
    """JSON, in one or several lines, with or without escapes."""
    return json.dumps(value, ensure_ascii=d.index == 4, indent=d.pick(2, None, 4))


@family
def json_whole(d: Drawing) -> Item:
    """A reply that is one JSON object, bare or in a fence."""
    text = dumped(d, whole(d))
    return d.plan(
        d.pick(
            text,
            f"```json\n{text}\n```",
            f"{d.own.talk[0]}\n\n{text}",
            f"{d.own.talk[0]}\n\n```json\n{text}\n```",
            f"```\n{text}\n```\n\n{d.own.closing[0]}",
        )
    )


@family
def json_in_body(d: Drawing) -> Item:
    """Steps as JSON below a front matter."""
    value = d.pick(
        steps(d),
        {"steps": steps(d)},
        {"plan": {"steps": steps(d)}},
        {"title": d.own.titles[0], "tasks": steps(d)},
    )
    text = dumped(d, value)
    return d.plan(d.head() + d.pick(text, f"```json\n{text}\n```", f"Plan:\n\n{text}"))


@family
def json_nested(d: Drawing) -> Item:
    """The reply inside another object."""
    name = d.pick(
        "response",
        "output",
        "result",
        "reply",
        "data",
        "content",
        "answer",
        "message",
        "assistant",
        "json",
    )
    return d.plan(dumped(d, {name: whole(d)}))


@family
def json_tool_call(d: Drawing) -> Item:
    """The reply as the arguments of a tool call in text."""
    inner = whole(d)
    call = d.pick(
        {"name": "create_plan", "arguments": inner},
        {"name": "reply", "parameters": inner},
        {"tool_calls": [{"function": {"name": "plan", "arguments": json.dumps(inner)}}]},
        {"function": "plan", "args": inner},
    )
    text = dumped(d, call)
    return d.plan(
        d.pick(
            f"<tool_call>\n{text}\n</tool_call>",
            text,
            f"```tool_call\n{text}\n```",
            f"<function_call>{text}</function_call>",
        )
    )


@family
def json_damaged(d: Drawing) -> Item:
    """JSON with the mistakes that models make in it."""
    text = json.dumps(whole(d), ensure_ascii=False, indent=1)
    return d.plan(
        d.pick(
            text.replace("\n}", ",\n}"),
            str(whole(d)),
            "// the plan\n" + text,
            text.replace('"complexity"', "complexity").replace('"reasoning"', "reasoning"),
            text.replace("]", ",]").replace("},\n", "}\n"),
            text.replace('"', "“", 1).replace('"', "”", 1),
            text.replace(",\n", "\n", 2),
        )
    )


@family
def json_cut(d: Drawing) -> Item:
    """JSON that was cut off within its steps: what is missing cannot be known."""
    text = json.dumps(whole(d), ensure_ascii=False, indent=d.pick(1, None))
    at = text.rfind(d.tasks[-1].text) + len(d.tasks[-1].text) - d.pick(2, 0, -3)
    return d.item("think", text[:at], Meant(None))


@family
def json_markdown_inside(d: Drawing) -> Item:
    """The plan as Markdown in a string of a JSON object."""
    body = d.titled(d.listed())
    rows = body.split("\n") if d.index % 4 == 3 else body
    value = whole(d) | {"plan": ""}
    value = {key: each for key, each in value.items() if key not in ("steps", "tasks", "plan")}
    return d.plan(dumped(d, value | {d.pick("plan", "body", "answer", "content"): rows}))


@family
def json_strings(d: Drawing) -> Item:
    """Steps as strings in the grammar of lines."""
    rows = d.pick(
        [d.line(n, t) for n, t in enumerate(d.tasks, 1)],
        [f"{n}. {t.text} @{t.who}{d.after(t)}" for n, t in enumerate(d.tasks, 1)],
        [f"{t.text} @{t.who}{d.after(t)}" for t in d.tasks],
    )
    return d.plan(dumped(d, whole(d, rows)))


@family
def json_by_number(d: Drawing) -> Item:
    """Steps as an object with their numbers as keys."""
    prefix = d.pick("", "step", "step_", "Step ")
    rows = {
        f"{prefix}{n}": {key: value for key, value in one.items() if value != n}
        for n, one in enumerate(steps(d), 1)
    }
    return d.plan(dumped(d, whole(d, rows)))


@family
def json_named_ids(d: Drawing) -> Item:
    """Steps with names for ids, or counted from nought."""
    label = d.pick(
        lambda n: f"T{n}",
        lambda n: f"step_{n}",
        lambda n: n - 1,
        lambda n: "ABCDEFG"[n - 1],
        lambda n: f"step-{n}",
    )
    rows = [
        {
            "id": label(n),
            "description": t.text,
            "assigned_to": t.who,
            "depends_on": [label(k) for k in t.after],
        }
        for n, t in enumerate(d.tasks, 1)
    ]
    return d.plan(dumped(d, whole(d, rows)))


@family
def json_lines(d: Drawing) -> Item:
    """One object a line."""
    rows = "\n".join(json.dumps(one, ensure_ascii=False) for one in steps(d))
    return d.plan(d.head() + d.pick(rows, f"```json\n{rows}\n```", rows.replace("}\n", "},\n")))


@family
def json_after_schema(d: Drawing) -> Item:
    """The schema is repeated before the reply."""
    schema = json.dumps(
        {
            "type": "object",
            "properties": {"complexity": {"type": "string"}, "plan": {"type": "array"}},
        }
    )
    text = dumped(d, whole(d))
    return d.plan(
        d.pick(
            f"{schema}\n\n{text}",
            f"```json\n{schema}\n```\n\n```json\n{text}\n```",
            f"Schema: {schema}\n{text}",
        )
    )


@family
def json_as_string(d: Drawing) -> Item:
    """The whole reply as one escaped string."""
    reply = d.head() + d.listed()
    return d.plan(
        d.pick(
            json.dumps(reply, ensure_ascii=False),
            json.dumps(json.dumps(whole(d))),
            reply.replace("\n", "\\n"),
        )
    )


@family
def json_other_shapes(d: Drawing) -> Item:
    """Specialists as lists or objects, dependencies as texts, nested plans."""
    rows = [
        {
            "id": n,
            "description": t.text,
            "assigned_to": d.pick([t.who], {"name": t.who}, t.who, [{"name": t.who}]),
            "dependencies": d.pick(
                d.ids(t),
                [f"step {k}" for k in t.after],
                [{"id": k} for k in t.after],
                [str(k) for k in t.after],
            ),
            "status": "pending",
        }
        for n, t in enumerate(d.tasks, 1)
    ]
    return d.plan(dumped(d, whole(d, d.pick(rows, {"steps": rows}, {"title": "x", "steps": rows}))))


def yaml_text(d: Drawing) -> str:
    """The steps as a YAML list."""
    quote = d.pick('"', '"', "'")
    text, who, after = d.pick(
        ("description", "assigned_to", "depends_on"),
        ("task", "specialist", "after"),
        ("title", "agent", "dependencies"),
    )
    rows: list[str] = []
    for n, t in enumerate(d.tasks, 1):
        words = f"{quote}{t.text.replace(quote, '')}{quote}"
        waits = d.pick(
            f"[{d.ids(t)}]",
            f"[{d.ids(t)}]",
            "\n" + "\n".join(f"    - {k}" for k in t.after) if t.after else "[]",
        )
        rows.append(f"- id: {n}\n  {text}: {words}\n  {who}: {t.who}\n  {after}: {waits}")
    return "\n".join(rows)


def clean(d: Drawing) -> Drawing:
    """The same without quotation marks in what is to be done."""
    return replace(d, tasks=tuple(replace(t, text=t.text.replace("'", "")) for t in d.tasks))


@family
def yaml_document(d: Drawing) -> Item:
    """The whole reply as one YAML document."""
    d = clean(d)
    key = d.pick("plan", "steps", "tasks")
    inner = yaml_text(d)
    inner = "\n".join("  " + row for row in inner.split("\n")) if d.index % 2 else inner
    text = f"complexity: complex\nreasoning: {d.own.reasons[0]}\n{key}:\n{inner}"
    return d.plan(
        d.pick(
            text,
            f"---\n{text}\n---",
            f"```yaml\n{text}\n```",
            f"---\n{text}\n",
            f"{d.own.talk[0]}\n\n```yaml\n{text}\n```",
        )
    )


@family
def yaml_in_body(d: Drawing) -> Item:
    """The steps as a YAML list below the front matter."""
    d = clean(d)
    text = yaml_text(d)
    listed = "steps:\n" + "\n".join("  " + row for row in text.split("\n"))
    return d.plan(
        d.head()
        + d.pick(
            text, f"```yaml\n{text}\n```", listed, f"```yaml\n{listed}\n```", f"Plan:\n\n{text}"
        )
    )


@family
def yaml_by_number(d: Drawing) -> Item:
    """The steps as a YAML mapping of numbers or names."""
    d = clean(d)
    prefix = d.pick("", "step", "step_")
    rows = [
        f'  {prefix}{n}:\n    task: "{t.text}"\n    agent: {t.who}\n    after: [{d.ids(t)}]'
        for n, t in enumerate(d.tasks, 1)
    ]
    return d.plan(d.head() + "steps:\n" + "\n".join(rows))


@family
def yaml_bare_strings(d: Drawing) -> Item:
    """YAML whose strings are not quoted, as models write it, colons included."""
    rows = [
        f"- id: {n}\n  task: {t.text}\n  specialist: '@{t.who}'\n  depends_on: [{d.ids(t)}]"
        for n, t in enumerate(d.tasks, 1)
    ]
    return d.plan(d.head() + "\n".join(rows))


def xml(d: Drawing) -> str:
    """The steps as XML."""

    def one(n: int, t: Task) -> str:
        text = t.text.replace("&", "&amp;")
        after = d.pick(
            f"<after>{d.ids(t)}</after>" if t.after else "",
            f"<dependencies>{d.ids(t)}</dependencies>",
            "".join(f"<depends_on>{k}</depends_on>" for k in t.after),
        )
        return d.pick(
            f'<step id="{n}"><task>{text}</task><specialist>{t.who}</specialist>{after}</step>',
            f'<step id="{n}" specialist="{t.who}" after="{d.ids(t)}">{text}</step>',
            f"<step>\n<id>{n}</id>\n<description>{text}</description>\n<agent>{t.who}</agent>\n{after}\n</step>",
            f'<task number="{n}" agent="{t.who}" depends_on="{d.ids(t)}"><description>{text}</description></task>',
        )

    return "\n".join(one(n, t) for n, t in enumerate(d.tasks, 1))


@family
def xml_in_body(d: Drawing) -> Item:
    """The steps as XML below the front matter."""
    text = xml(d)
    return d.plan(
        d.head()
        + d.pick(
            f"<plan>\n{text}\n</plan>",
            text,
            f"```xml\n<plan>\n{text}\n</plan>\n```",
            f"<steps>\n{text}\n</steps>",
        )
    )


@family
def xml_whole(d: Drawing) -> Item:
    """The whole reply as XML."""
    return d.plan(
        f"<{d.pick('reply', 'response')}>\n<complexity>complex</complexity>\n<reasoning>{d.own.reasons[0]}</reasoning>\n<plan>\n{xml(d)}\n</plan>\n</{d.pick('reply', 'response')}>"
    )


@family
def html_list(d: Drawing) -> Item:
    """The steps as an HTML list."""
    rows = d.listed(lambda n, t: f"<li>{d.pick('', f'{n}. ')}{t.text} @{t.who}{d.after(t)}</li>")
    return d.plan(d.head() + f"<ol>\n{rows}\n</ol>")


def row(d: Drawing, n: int, t: Task) -> list[str]:
    """The cells of a step."""
    return [
        d.pick(str(n), f"Step {n}", f"{n}."),
        t.text.replace("|", "/"),
        d.pick(t.who, f"@{t.who}", f"**{t.who}**"),
        d.ids(t) or d.pick("-", "none", "", "—"),
    ]


@family
def table(d: Drawing) -> Item:
    """The steps as a table with headers in English or the language."""
    heads = d.words.heads
    rows = [row(d, n, t) for n, t in enumerate(d.tasks, 1)]
    rule = d.pick(["---"] * 4, [":--", "---", ":-:", "--:"])
    text = "\n".join("| " + " | ".join(each) + " |" for each in (heads, rule, *rows))
    return d.body(text)


@family
def table_other_order(d: Drawing) -> Item:
    """A table with other columns, in another order, or without pipes at the ends."""
    order = d.pick((0, 2, 1, 3), (0, 1, 3, 2), (2, 1, 3))
    heads = d.pick(
        ("Step", "Description", "Agent", "Dependencies"),
        ("No.", "What", "Who", "After"),
        ("ID", "Action", "Assigned to", "Requires"),
    )
    rows = [row(d, n, t) for n, t in enumerate(d.tasks, 1)]
    picked = [[each[k] for k in order] + ["low"] for each in rows]
    all_rows = [[heads[k] for k in order] + ["Risk"], ["---"] * (len(order) + 1), *picked]
    ends = d.pick(("| ", " |"), ("", ""))
    return d.body("\n".join(ends[0] + " | ".join(each) + ends[1] for each in all_rows))


@family
def csv(d: Drawing) -> Item:
    """The steps as comma- or tab-separated rows in a fence."""
    mark = d.pick(";", "\t")
    rows = [mark.join(("id", "task", "specialist", "after"))]
    rows += [mark.join((str(n), t.text, t.who, d.ids(t))) for n, t in enumerate(d.tasks, 1)]
    return d.item(
        "think",
        d.head() + "```csv\n" + "\n".join(rows) + "\n```",
        Meant("plan", d.tasks, ask_is_right=True),
    )


@family
def definition_blocks(d: Drawing) -> Item:
    """Each step as a block of keys, without any list."""
    form = d.pick(
        "Step: {n}\nTask: {text}\nSpecialist: {who}\nDepends on: {ids}",
        "ID: {n}\nDescription: {text}\nAgent: {who}\nDependencies: {ids}",
        "**Step {n}**\n**Task:** {text}\n**Specialist:** {who}\n**Depends on:** {ids}",
    )
    return d.body(
        d.listed(
            lambda n, t: form.format(n=n, text=t.text, who=t.who, ids=d.ids(t) or "none"), "\n\n"
        )
    )


@family
def code_calls(d: Drawing) -> Item:
    """The plan as calls of functions: a model that writes code where a plan was asked for."""
    rows = [
        f'add_step({n}, "{t.text}", agent="{t.who}", after=[{d.ids(t)}])'
        for n, t in enumerate(d.tasks, 1)
    ]
    return d.item(
        "think",
        d.head() + "```python\n" + "\n".join(rows) + "\n```",
        Meant("plan", d.tasks, ask_is_right=True),
    )


@family
def mermaid(d: Drawing) -> Item:
    """A drawing of the order beside the plan."""
    edges = "\n".join(f"  S{k} --> S{n}" for n, t in enumerate(d.tasks, 1) for k in t.after)
    drawn = f"```mermaid\ngraph TD\n{edges}\n```"
    return d.body(d.pick(f"{d.listed()}\n\n{drawn}", f"{drawn}\n\n{d.listed()}"))
