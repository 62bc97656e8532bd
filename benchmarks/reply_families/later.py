"""Families that were written after the readers, and read once before any of them was changed."""

import json

from reply_families.drawing import Drawing, Item, Meant, family, lines

lines(
    "later_two_specialists",
    lambda d, n, t: f"{n}. [{t.who}] {t.text}{' {needs ' + d.ids(t) + '}' if t.after else ''}",
    lambda d, n, t: (
        f"* Step {n} ({t.who}): {t.text}{' [waits for: ' + d.ids(t) + ']' if t.after else ''}"
    ),
    lambda d, n, t: f"{n}. {t.text} => {t.who}{'; needs ' + d.ids(t) if t.after else ''}",
    lambda d, n, t: f"- **{n}. {t.text}** — *{t.who}*{d.after(t)}",
)
lines(
    "later_key_value_tail",
    lambda d, n, t: f"- [ ] {n}. {t.text} | agent={t.who} | after={d.ids(t) or 'none'}",
    lambda d, n, t: (
        f"{n}. {t.text} (who: {t.who}, when: after {d.ids(t)})"
        if t.after
        else f"{n}. {t.text} (who: {t.who})"
    ),
    lambda d, n, t: f"- {n}: {t.text} // {t.who}{' // after ' + d.ids(t) if t.after else ''}",
)
lines(
    "later_fields_in_one_line",
    lambda d, n, t: (
        f"### {n}. {t.text}\n**Agent:** {t.who} | **Depends on:** {d.ids(t) or 'none'}\n"
    ),
    lambda d, n, t: f"{n}. {t.text}\n   Agent: @{t.who}; Depends on: {d.ids(t) or '-'}",
    lambda d, n, t: (
        f"- [ ] {n}. {t.text}\n  - {t.who}\n  - {('after ' + d.ids(t)) if t.after else 'no dependencies'}"
    ),
)
lines(
    "later_stars_and_tildes",
    lambda d, n, t: f"~ {n}. {t.text} @{t.who}{d.after(t)}",
    lambda d, n, t: f"» {n}. {t.text} @{t.who}{d.after(t)}",
    lambda d, n, t: f"{n}° {t.text} @{t.who}{d.after(t)}",
    lambda d, n, t: f"{n}] {t.text} @{t.who}{d.after(t)}",
    lambda d, n, t: f"<{n}> {t.text} @{t.who}{d.after(t)}",
    lambda d, n, t: f"Nr. {n}: {t.text} @{t.who}{d.after(t)}",
)


@family
def later_columns(d: Drawing) -> Item:
    """A table with steps as columns' heads of other words."""
    rows = [f"| {t.who} | {t.text} | {' & '.join(map(str, t.after)) or '–'} |" for t in d.tasks]
    return d.body("| Who does it | What | Waits for |\n|:--|:--|:--|\n" + "\n".join(rows))


@family
def later_graph_and_steps(d: Drawing) -> Item:
    """Steps without order, then edges by arrows."""
    steps = d.listed(lambda n, t: f"- [ ] {n}. {t.text} @{t.who}")
    edges = "\n".join(
        f"{', '.join(map(str, t.after))} -> {n}" for n, t in enumerate(d.tasks, 1) if t.after
    )
    return d.body(f"{steps}\n\nDependencies:\n{edges}")


@family
def later_toml(d: Drawing) -> Item:
    """Steps as TOML."""
    rows = [
        f'[[steps]]\nid = {n}\ntask = "{t.text}"\nagent = "{t.who}"\nafter = [{d.ids(t)}]'
        for n, t in enumerate(d.tasks, 1)
    ]
    return d.plan(d.head() + "```toml\n" + "\n\n".join(rows) + "\n```")


@family
def later_json_in_words(d: Drawing) -> Item:
    """JSON with keys in the language, or a list of lists."""
    keys = d.own.heads
    rows = [
        {keys[0]: n, keys[1]: t.text, keys[2]: t.who, keys[3]: list(t.after)}
        for n, t in enumerate(d.tasks, 1)
    ]
    return d.plan(d.head() + json.dumps(rows, ensure_ascii=False))


@family
def later_signature(d: Drawing) -> Item:
    """A signature, a count or a rule behind the plan."""
    end = d.pick(
        "\n\n— Host", "\n\nTotal steps: 3", "\n\n***", "\n\n(end of plan)", "\n\n#END", "\n\nDone."
    )
    return d.plan(d.head() + d.titled(d.listed()) + end)


@family
def later_answer_with_preamble(d: Drawing) -> Item:
    """A simple answer below another label of a section."""
    text = d.own.answers[1]
    return d.item(
        "think",
        d.head(value="simple")
        + d.pick("", "\n")
        + text
        + d.pick("\n\n<|eot_id|>", "\n\n<reflection>x</reflection>", "\n[END]", "\n\n</answer>"),
        Meant("answer", text=text),
    )


# A second batch, written after the first one was read and its causes were put right.
lines(
    "later2_of_count",
    lambda d, n, t: f"[{n}/{len(d.tasks)}] {t.text} @{t.who}{d.after(t)}",
    lambda d, n, t: f"Step {n}/{len(d.tasks)}: {t.text} @{t.who}{d.after(t)}",
    lambda d, n, t: f"{n} of {len(d.tasks)}: {t.text} @{t.who}{d.after(t)}",
)
lines(
    "later2_hooks_below",
    lambda d, n, t: (
        f"{n}. {t.text}\n   ↳ @{t.who}" + (f"\n   ↳ after {d.ids(t)}" if t.after else "")
    ),
    lambda d, n, t: (
        f"- [ ] {n}. {t.text}\n      -> {t.who}" + (f" (after {d.ids(t)})" if t.after else "")
    ),
    lambda d, n, t: f"{n}. {t.text}\n   by: {t.who}\n   needs: {d.ids(t) or 'nothing'}",
)
lines(
    "later2_ordinals",
    lambda d, n, t: (
        f"{('First', 'Second', 'Third', 'Fourth', 'Fifth')[n - 1]}: {t.text} @{t.who}{d.after(t)}"
    ),
    lambda d, n, t: (
        f"- {('1st', '2nd', '3rd', '4th', '5th')[n - 1]}: {t.text} @{t.who}{d.after(t)}"
    ),
)
lines(
    "later2_brackets_first",
    lambda d, n, t: f"- [ ] {n}. ({t.who}{'; after ' + d.ids(t) if t.after else ''}) {t.text}",
    lambda d, n, t: f"{n}. [after: {d.ids(t) or 'none'}] [{t.who}] {t.text}",
    lambda d, n, t: (
        f"{n}. @{t.who} (after {d.ids(t)}) {t.text}" if t.after else f"{n}. @{t.who} {t.text}"
    ),
)
lines(
    "later2_pairs",
    lambda d, n, t: f"{n}. task: {t.text}; agent: {t.who}; after: {d.ids(t) or 'none'}",
    lambda d, n, t: f'- id={n} task="{t.text}" agent={t.who} after=[{d.ids(t)}]',
    lambda d, n, t: f"step {n} = {t.text} @{t.who}{d.after(t)}",
)


@family
def later2_lanes(d: Drawing) -> Item:
    """Steps grouped under who does them."""
    groups = {t.who: [] for t in d.tasks}
    for n, t in enumerate(d.tasks, 1):
        groups[t.who].append(f"- {n}. {t.text}{d.after(t)}")
    text = "\n\n".join(
        f"## {d.pick(who, '@' + who)}\n\n" + "\n".join(rows) for who, rows in groups.items()
    )
    return d.item("think", d.head() + text, Meant(None))


@family
def later2_waves(d: Drawing) -> Item:
    """Steps in waves whose headings say what comes first."""
    d = d.chained()
    rows = [f"- [ ] {n}. {t.text} @{t.who}" for n, t in enumerate(d.tasks, 1)]
    heads = d.pick(
        "## Phase {n} (after phase {k})",
        "### Wave {n}, depends on wave {k}",
        "**Then, after step {k}:**",
    )
    text = rows[0] + "".join(
        "\n\n" + heads.format(n=n, k=n - 1) + "\n\n" + row for n, row in enumerate(rows[1:], 2)
    )
    return d.item("think", d.head() + text, Meant("plan", d.tasks, ask_is_right=True))


@family
def later2_vague_order(d: Drawing) -> Item:
    """An order that names no step: nobody can know which."""
    vague = d.pick(
        " (after that)",
        " (once both are done)",
        " (when ready, after the research)",
        " (depends on the above work)",
        " (after Ann agrees)",
    )
    body = "\n".join(
        f"- [ ] {n}. {t.text} @{t.who}" + (vague if n == len(d.tasks) else "")
        for n, t in enumerate(d.tasks, 1)
    )
    return d.item("think", d.head() + body, Meant(None))


@family
def later2_prose(d: Drawing) -> Item:
    """A plan in sentences."""
    a, b, c = d.tasks[:3]
    text = f"First, {a.who} should do this: {a.text}. Meanwhile {b.who} does that: {b.text}. After steps 1 and 2, {c.who} finishes: {c.text}."
    return d.item("think", d.head() + text, Meant(None))


@family
def later2_two_who(d: Drawing) -> Item:
    """Two specialists join in a step, by `and`, `+` or a comma."""
    from dataclasses import replace  # noqa: PLC0415

    other = next(name for name in d.team if name != d.tasks[0].who)
    sign = d.pick(" and @", " + @", ", @", " & @", " @")
    rows = [
        f"- [ ] {n}. {t.text} @{t.who}{sign + other if n == 1 else ''}{d.after(t)}"
        for n, t in enumerate(d.tasks, 1)
    ]
    tasks = (replace(d.tasks[0], who=f"{d.tasks[0].who}+{other}"), *d.tasks[1:])
    return d.item("think", d.head() + "\n".join(rows), Meant("plan", tasks))
