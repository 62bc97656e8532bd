"""Plans as lists: numbers, bullets, boxes and headings of all kinds, and who does a step."""

from dataclasses import replace

from reply_families.drawing import Drawing, Item, Meant, Task, family, lines

CIRCLED = "①②③④⑤⑥⑦⑧⑨"
CHINESE = "一二三四五六七八九"
ROMAN = ("I", "II", "III", "IV", "V", "VI")
KEYCAP = "\ufe0f\u20e3"


def tail(d: Drawing, task: Task) -> str:
    """Text, specialist and order as the prompt asks for them."""
    return f"{task.text} @{task.who}{d.after(task)}"


def shown(name: str) -> str:
    """A specialist's name as people write it."""
    return name.replace("_", " ").replace("-", " ").title()


lines("canonical", Drawing.line)
lines("numbered_dot", lambda d, n, t: f"{n}. {tail(d, t)}")
lines(
    "numbered_paren", lambda d, n, t: f"{n}) {tail(d, t)}", lambda d, n, t: f"- {n}) {tail(d, t)}"
)
lines(
    "numbered_parens",
    lambda d, n, t: f"({n}) {tail(d, t)}",
    lambda d, n, t: f"（{n}） {tail(d, t)}",
    lambda d, n, t: f"- [ ] ({n}) {tail(d, t)}",
    lambda d, n, t: f"[{n}] {tail(d, t)}",
)
lines(
    "numbered_circled",
    lambda d, n, t: f"{CIRCLED[n - 1]} {tail(d, t)}",
    lambda d, n, t: f"- {CIRCLED[n - 1]} {tail(d, t)}",
    lambda d, n, t: f"{n}{KEYCAP} {tail(d, t)}",
)
lines(
    "numbered_chinese",
    lambda d, n, t: f"{CHINESE[n - 1]}、{tail(d, t)}",
    lambda d, n, t: f"第{CHINESE[n - 1]}步：{tail(d, t)}",
    lambda d, n, t: f"{n}、{tail(d, t)}",
    lambda d, n, t: f"（{CHINESE[n - 1]}）{tail(d, t)}",
)
lines(
    "numbered_by_word",
    lambda d, n, t: f"{d.words.step[0].format(n)}: {tail(d, t)}",
    lambda d, n, t: f"- [ ] {d.words.step[0].format(n)}: {tail(d, t)}",
    lambda d, n, t: f"- **{d.words.step[0].format(n)}:** {tail(d, t)}",
    lambda d, n, t: f"{d.words.step[-1].format(n)} - {tail(d, t)}",
)
lines(
    "numbered_letters",
    lambda d, n, t: (
        f"{'ABCDEFG'[n - 1]}. {t.text} @{t.who}{d.after(t, lambda k: 'ABCDEFG'[k - 1])}"
    ),
    lambda d, n, t: (
        f"{'abcdefg'[n - 1]}) {t.text} @{t.who}{d.after(t, lambda k: 'abcdefg'[k - 1])}"
    ),
    lambda d, n, t: (
        f"- [ ] {'ABCDEFG'[n - 1]}: {t.text} @{t.who}{d.after(t, lambda k: 'ABCDEFG'[k - 1])}"
    ),
)
lines(
    "numbered_roman",
    lambda d, n, t: f"{ROMAN[n - 1]}. {t.text} @{t.who}{d.after(t, lambda k: ROMAN[k - 1])}",
    lambda d, n, t: f"- [ ] {ROMAN[n - 1]}. {t.text} @{t.who}{d.after(t)}",
)
lines(
    "numbered_names",
    *(
        (
            lambda p: (
                lambda d, n, t: f"- [ ] {p}{n}: {t.text} @{t.who}{d.after(t, lambda k: f'{p}{k}')}"
            )
        )(prefix)
        for prefix in ("T", "S", "step_", "#E", "task-", "Step ")
    ),
)
lines(
    "numbered_dotted",
    lambda d, n, t: f"1.{n} {t.text} @{t.who}{d.after(t, lambda k: f'1.{k}')}",
    lambda d, n, t: f"- [ ] 1.{n} {t.text} @{t.who}{d.after(t, lambda k: f'1.{k}')}",
    lambda d, n, t: f"- [ ] 2.{n}. {t.text} @{t.who}{d.after(t, lambda k: f'2.{k}')}",
)
lines(
    "numbered_from_zero",
    lambda d, n, t: f"- [ ] {n - 1}. {t.text} @{t.who}{d.after(t, lambda k: str(k - 1))}",
    lambda d, n, t: f"{n - 1}. {t.text} @{t.who}{d.after(t, lambda k: str(k - 1))}",
    lambda d, n, t: f"Step {n - 1}: {t.text} @{t.who}{d.after(t, lambda k: f'step {k - 1}')}",
)
lines(
    "numbered_hash",
    lambda d, n, t: f"#{n} {tail(d, t)}",
    lambda d, n, t: f"- [ ] #{n}: {tail(d, t)}",
    lambda d, n, t: f"#{n}. {t.text} @{t.who}{d.after(t, lambda k: f'#{k}')}",
)
lines(
    "numbered_tight",
    lambda d, n, t: f"{n}.{tail(d, t)}",
    lambda d, n, t: f"- [ ] {n}.{tail(d, t)}",
    lambda d, n, t: f"{n}: {tail(d, t)}",
    lambda d, n, t: f"{n} - {tail(d, t)}",
    lambda d, n, t: f"{n}\\. {tail(d, t)}",
)
lines(
    "numbered_tens",
    lambda d, n, t: f"- [ ] {n * 10}. {t.text} @{t.who}{d.after(t, lambda k: str(k * 10))}",
)
lines(
    "numbered_other_digits",
    lambda d, n, t: (
        f"- [ ] {chr(0xFF10 + n)}. {t.text} @{t.who}{d.after(t, lambda k: chr(0xFF10 + k))}"
    ),
    lambda d, n, t: f"{chr(0x660 + n)}. {t.text} @{t.who}{d.after(t, lambda k: chr(0x660 + k))}",
    lambda d, n, t: f"{chr(0x966 + n)}. {t.text} @{t.who}{d.after(t, lambda k: chr(0x966 + k))}",
)
lines("numbered_all_one", lambda d, n, t: f"1. {tail(d, t)}")
lines("boxes_without_numbers", lambda d, n, t: f"- [ ] {tail(d, t)}")
lines(
    "boxes_spelled",
    lambda d, n, t: f"☐ {n}. {tail(d, t)}",
    lambda d, n, t: f"[ ] {n}. {tail(d, t)}",
    lambda d, n, t: f"-[ ] {n}. {tail(d, t)}",
    lambda d, n, t: f"- [] {n}. {tail(d, t)}",
    lambda d, n, t: f"- ☐ {n}. {tail(d, t)}",
    lambda d, n, t: f"* [ ] {n}. {tail(d, t)}",
    lambda d, n, t: f"⬜ {n}. {tail(d, t)}",
    lambda d, n, t: f"□ {n}. {tail(d, t)}",
    lambda d, n, t: f"\\- \\[ \\] {n}. {tail(d, t)}",
    lambda d, n, t: f"- [　] {n}. {tail(d, t)}",
)
lines(
    "bullets_with_numbers",
    lambda d, n, t: f"• {n}. {tail(d, t)}",
    lambda d, n, t: f"– {n}. {tail(d, t)}",
    lambda d, n, t: f"▪ {n}. {tail(d, t)}",
    lambda d, n, t: f"➤ {n}. {tail(d, t)}",
    lambda d, n, t: f"· {n}. {tail(d, t)}",
    lambda d, n, t: f"+ {n}. {tail(d, t)}",
    lambda d, n, t: f"→ {n}. {tail(d, t)}",
    lambda d, n, t: f"🔹 {n}. {tail(d, t)}",
)
lines(
    "emoji_before",
    lambda d, n, t: f"- [ ] {n}. 🔍 {tail(d, t)}",
    lambda d, n, t: f"✅ {n}. {tail(d, t)}",
    lambda d, n, t: f"- 📌 {n}. {tail(d, t)}",
    lambda d, n, t: f"- [ ] {n}. {tail(d, t)} 🚀",
)
lines(
    "headings",
    lambda d, n, t: f"### {n}. {tail(d, t)}\n\n{d.say(d.own.briefs)}\n",
    lambda d, n, t: f"## {d.words.step[0].format(n)}: {tail(d, t)}\n",
    lambda d, n, t: f"### {d.words.step[0].format(n)} - {tail(d, t)}\n\n{d.say(d.own.briefs)}\n",
    lambda d, n, t: f"#### {n}) {tail(d, t)}\n",
)


def fields(d: Drawing, task: Task, bullet: str, bold: str) -> str:
    """The specialist and the order on lines of their own."""
    who, after = d.words.assigned[0], d.words.depends[d.index % len(d.words.depends)]
    rows = [(who, d.pick(task.who, f"@{task.who}"))]
    rows += [(after, d.ids(task) or d.words.none[0])] if task.after or d.index % 3 else []
    return "\n".join(f"{bullet}{bold}{key}:{bold} {value}" for key, value in rows)


lines(
    "headings_with_fields",
    lambda d, n, t: f"### {d.words.step[0].format(n)}: {t.text}\n{fields(d, t, '- ', '**')}\n",
    lambda d, n, t: f"## {n}. {t.text}\n\n{fields(d, t, '', '**')}\n",
    lambda d, n, t: f"### {n}. {t.text}\n\n{fields(d, t, '* ', '')}\n",
)
lines(
    "steps_with_fields",
    lambda d, n, t: f"- [ ] {n}. {t.text}\n{fields(d, t, '  - ', '**')}",
    lambda d, n, t: f"{n}. **{t.text}**\n{fields(d, t, '   - ', '')}",
    lambda d, n, t: f"- [ ] {n}. {t.text}\n{fields(d, t, '  ', '**')}",
    lambda d, n, t: f"{n}. {t.text}\n{fields(d, t, '   * ', '*')}",
)
lines(
    "bold_steps",
    lambda d, n, t: f"**{n}. {t.text}** @{t.who}{d.after(t)}\n",
    lambda d, n, t: f"**{d.words.step[0].format(n)}:** {tail(d, t)}\n",
    lambda d, n, t: f"**{n}.** {tail(d, t)}",
    lambda d, n, t: f"{n}. **{t.text}** @{t.who}{d.after(t)}",
    lambda d, n, t: f"- [ ] **{n}. {tail(d, t)}**",
    lambda d, n, t: f"- [ ] {n}. **{t.text}** (**@{t.who}**){d.after(t)}",
)
lines(
    "briefs_below",
    lambda d, n, t: f"{d.line(n, t)}\n  {d.say(d.own.briefs)}",
    lambda d, n, t: f"{d.line(n, t)}\n    - {d.own.briefs[0]}\n    - {d.own.briefs[1]}",
    lambda d, n, t: f"{n}. {tail(d, t)}\n   1. {d.own.briefs[0]}\n   2. {d.own.briefs[1]}",
    lambda d, n, t: f"{d.line(n, t)}\n\n  > {d.own.briefs[0]}\n",
    lambda d, n, t: f"{d.line(n, t)}\n  ```yaml\n  limit: {n}\n  ```",
)
lines(
    "notes_behind",
    lambda d, n, t: f"{d.line(n, t)} <!-- {d.own.briefs[0]} -->",
    lambda d, n, t: f"- [ ] {n}. {t.text} <!-- x --> @{t.who}{d.after(t)}",
    lambda d, n, t: f"{d.line(n, t)}  ",
    lambda d, n, t: f"{d.line(n, t)}<br>",
    lambda d, n, t: f"{d.line(n, t)}\\",
    lambda d, n, t: f"{d.line(n, t)};",
    lambda d, n, t: f"{d.line(n, t)}.",
    lambda d, n, t: f"{d.line(n, t)} ✅",
)
lines(
    "asides_behind",
    lambda d, n, t: f"- [ ] {n}. {t.text} @{t.who}{d.after(t)} (500 words)",
    lambda d, n, t: f"- [ ] {n}. {t.text} @{t.who}" + (d.after(t) or " (no dependencies)"),
    lambda d, n, t: f"- [ ] {n}. {t.text} @{t.who}" + (d.after(t) or " (parallel)"),
    lambda d, n, t: f"- [ ] {n}. {t.text} @{t.who}{d.after(t)} (2 days)",
    lambda d, n, t: f"- [ ] {n}. {t.text} @{t.who}{d.after(t)}: {d.own.briefs[1]}",
)

# Who does a step.
lines(
    "name_in_brackets",
    lambda d, n, t: f"- [ ] {n}. {t.text} ({t.who}){d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} [{t.who}]{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} [@{t.who}]{d.after(t)}",
    lambda d, n, t: f"{n}. {t.text} (@{t.who}){d.after(t)}",
    lambda d, n, t: f"{n}. {t.text} ({shown(t.who)}){d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. [{t.who}] {t.text}{d.after(t)}",
)
lines(
    "name_first",
    lambda d, n, t: f"- [ ] {n}. @{t.who}: {t.text}{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {shown(t.who)}: {t.text}{d.after(t)}",
    lambda d, n, t: f"{n}. **{t.who}**: {t.text}{d.after(t)}",
    lambda d, n, t: f"{n}. @{t.who} {t.text}{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. **{shown(t.who)}** - {t.text}{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.who} → {t.text}{d.after(t)}",
)
lines(
    "name_last",
    lambda d, n, t: f"- [ ] {n}. {t.text} — {t.who}{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} - @{t.who}{d.after(t)}",
    lambda d, n, t: f"{n}. {t.text} → {t.who}{d.after(t)}",
    lambda d, n, t: f"{n}. {t.text} | {t.who}{' | after ' + d.ids(t) if t.after else ''}",
    lambda d, n, t: f"- [ ] {n}. {t.text}; {t.who}{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} -> @{t.who}{d.after(t)}",
)
lines(
    "name_by_word",
    lambda d, n, t: f"- [ ] {n}. {t.text} ({d.words.assigned[0]}: {t.who}){d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text}, {d.words.assigned[0]}: @{t.who}{d.after(t)}",
    lambda d, n, t: f"{n}. {t.text} [{d.words.assigned[0]}: {t.who}]{d.after(t)}",
    lambda d, n, t: f"{n}. {t.text} (assigned to the {t.who}){d.after(t)}",
    lambda d, n, t: f"{n}. {t.text} by {t.who}{d.after(t)}",
)
lines(
    "name_marked",
    lambda d, n, t: f"- [ ] {n}. {t.text} **@{t.who}**{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} `@{t.who}`{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} *{t.who}*{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} `{t.who}`{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} @`{t.who}`{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} @{{{t.who}}}{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} <@{t.who}>{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} ＠{t.who}{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} [@{t.who}](#){d.after(t)}",
)
lines(
    "name_spelled",
    lambda d, n, t: f"- [ ] {n}. {t.text} @{t.who.upper()}{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} @{t.who}_agent{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} @{t.who.replace('_', '-')}{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} @{shown(t.who).replace(' ', '')}{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} @specialist_{t.who}{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} @{shown(t.who)}{d.after(t)}",
    lambda d, n, t: f"- [ ] {n}. {t.text} @{t.who.replace('_', ' ')}{d.after(t)}",
)


@family
def name_of_nobody(d: Drawing) -> Item:
    """One step goes to somebody who is not on the team: nobody can know who is meant."""
    who = d.pick("designer", "user", "host", "assistant", "研究员", "john", "security_team")
    at = d.random.randrange(len(d.tasks))
    tasks = tuple(replace(t, who=who) if n == at else t for n, t in enumerate(d.tasks))
    body = "\n".join(d.line(n, t) for n, t in enumerate(tasks, 1))
    return d.item("think", d.head() + d.titled(body), Meant(None))


@family
def checklist_below(d: Drawing) -> Item:
    """A list of criteria below or above the plan is none of its steps."""
    marks = d.pick("- [ ] ", "- ", "- [ ] ", "* ")
    criteria = f"## {d.own.criteria_head}\n\n" + "\n".join(marks + each for each in d.own.criteria)
    plan = d.listed()
    return d.body(d.pick(f"{plan}\n\n{criteria}", f"{criteria}\n\n## Plan\n\n{plan}"))


@family
def boxes_below_headings(d: Drawing) -> Item:
    """The headings are the steps; boxes below them are parts of one."""
    form = d.pick("### {step}: {text} @{who}{after}", "## {n}. {text} @{who}{after}")
    parts = [
        form.format(step=d.words.step[0].format(n), n=n, text=t.text, who=t.who, after=d.after(t))
        + "\n\n"
        + "\n".join(f"- [ ] {brief}" for brief in d.own.briefs[:2])
        for n, t in enumerate(d.tasks, 1)
    ]
    return d.body("\n\n".join(parts))


@family
def boxes_below_steps(d: Drawing) -> Item:
    """Boxes that are indented below a numbered step are parts of it."""
    return d.body(
        d.listed(
            lambda n, t: (
                f"{d.pick('- [ ] ', '')}{n}. {tail(d, t)}\n"
                + "\n".join(f"    - [ ] {brief}" for brief in d.own.briefs[:2])
            )
        )
    )


@family
def phases(d: Drawing) -> Item:
    """Steps under headings of phases, numbered through."""
    half = len(d.tasks) // 2
    rows = [d.line(n, t) for n, t in enumerate(d.tasks, 1)]
    heads = d.pick(
        ("## Phase 1", "## Phase 2"),
        ("### A. Preparation", "### B. Work"),
        ("**Phase 1:**", "**Phase 2:**"),
    )
    return d.body("\n\n".join([heads[0], "\n".join(rows[:half]), heads[1], "\n".join(rows[half:])]))


@family
def sections_around(d: Drawing) -> Item:
    """Other sections with lists of their own stand around the plan."""
    risks = "## Risks\n\n" + "\n".join(f"- {brief}" for brief in d.own.briefs)
    goal = f"## {d.pick('Goal', 'Overview', 'Notes')}\n\n{d.own.reasons[0]}"
    return d.body(f"{goal}\n\n## Steps\n\n{d.listed()}\n\n{risks}")


@family
def one_line(d: Drawing) -> Item:
    """The whole plan on one line."""
    return d.body(d.listed(lambda n, t: f"{d.pick('', '- [ ] ')}{n}. {tail(d, t)}", " "))


@family
def written_twice(d: Drawing) -> Item:
    """The same plan twice, as a draft and again, or in two sections."""
    plan = d.listed()
    between = d.pick(
        "\n\n## Final plan\n\n",
        "\n\n---\n\n",
        "\n\nFinal plan:\n\n",
        "\n\n",
        f"\n\n{d.own.talk[0]}\n\n",
    )
    return d.body(plan + between + plan)


@family
def draft_then_plan(d: Drawing) -> Item:
    """A draft without names and order, then the plan."""
    draft = "\n".join(f"{n}. {t.text}" for n, t in enumerate(d.tasks, 1))
    heads = d.pick(("## Draft", "## Final plan"), ("Draft:", "Final:"), ("## Overview", "## Plan"))
    return d.body(f"{heads[0]}\n\n{draft}\n\n{heads[1]}\n\n{d.listed()}")


@family
def indented_whole(d: Drawing) -> Item:
    """Every line of the plan indented, or quoted."""
    mark = d.pick("    ", "> ", "\t", "  ", "| ")
    return d.body("\n".join(mark + line for line in d.listed().split("\n")))


@family
def odd_blanks(d: Drawing) -> Item:
    """Blanks that are none to a parser: zero width, no-break, ideographic, tabs, CRLF."""
    text = d.listed()
    blank = d.pick("\u200b- [", "\ufeff- [", "-\u00a0[", "-\t[", "\u00a0- [", "\u2060- [")
    return d.body(
        d.pick(
            text.replace("- [", blank), text.replace("\n", "\r\n"), text.replace(" @", "\u00a0@")
        )
    )


@family
def full_width(d: Drawing) -> Item:
    """Full-width punctuation, as Chinese and Japanese models write it."""
    return d.body(
        d.listed(
            lambda n, t: (
                f"- [ ] {n}．{t.text} ＠{t.who}"
                + (
                    f"（after {d.pick('，', '、', ',').join(map(str, t.after))}）"
                    if t.after
                    else ""
                )
            )
        )
    )
