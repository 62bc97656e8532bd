"""Plans whose order is said in other ways than the prompt asks for."""

from reply_families.drawing import Drawing, Item, Task, family, lines


def who(task: Task) -> str:
    """The step with its specialist."""
    return f"{task.text} @{task.who}"


def ordered(name: str, *forms: str) -> None:
    """Register a family: `{ids}` stands for the list of steps, `{first}` for its first."""

    def form_of(form: str):  # noqa: ANN202
        return lambda d, n, t: (
            f"- [ ] {n}. {who(t)}"
            + (
                form.format(ids=d.ids(t), both=f" {d.words.conj} ".join(map(str, t.after)))
                if t.after
                else ""
            )
        )

    lines(name, *map(form_of, forms))


ordered(
    "order_by_other_words",
    " (requires {ids})",
    " (needs {both})",
    " (deps: {ids})",
    " (blocked by {ids})",
    " (waits for {ids})",
    " (prerequisites: {ids})",
    " (following {ids})",
    " (based on {ids})",
    " (uses {ids})",
    " (once {both} is done)",
)
ordered(
    "order_by_steps",
    " (after steps {both})",
    " (after step {ids})",
    " (depends on step {both})",
    " (requires steps {ids})",
    " (uses the results of steps {both})",
    " (needs output from {ids})",
    " (when {both} are done)",
    " (after completing {both})",
    " (waits for steps {both})",
)
ordered(
    "order_like_code",
    " (depends_on=[{ids}])",
    " (depends_on: [{ids}])",
    " (deps=[{ids}])",
    " [after: {ids}]",
    " {{after: {ids}}}",
    " [deps: {ids}]",
    " (after: [{ids}])",
    " <after {ids}>",
)
ordered(
    "order_in_marks",
    " *(after {ids})*",
    " `(after {ids})`",
    " **(after {ids})**",
    " [after {ids}]",
    " {{after {ids}}}",
    " _(after {ids})_",
    " **after {ids}**",
    " ( after {ids} )",
    " （after {ids}）",
)
ordered(
    "order_behind_name",
    ", after {ids}",
    " - after {ids}",
    " after {ids}",
    "; after {ids}",
    " — after {ids}",
    " ← {ids}",
    " | after {ids}",
    ": after {ids}",
    " after steps {both}",
    " <- {ids}",
)
ordered(
    "order_with_stops",
    " (after {ids}),",
    " (after {ids});",
    " (after {ids}).",
    " (after {ids}):",
    " (after {ids}) -",
)
lines(
    "order_translated",
    *(
        (
            lambda k: (
                lambda d, n, t: (
                    f"- [ ] {n}. {who(t)}"
                    + (f" ({d.own.after[k].format(d.ids(t))})" if t.after else "")
                )
            )
        )(k)
        for k in range(4)
    ),
)
lines(
    "order_before_name",
    lambda d, n, t: f"- [ ] {n}. {t.text}{d.after(t)} @{t.who}",
    lambda d, n, t: f"{n}.{d.after(t)} {who(t)}",
    lambda d, n, t: (
        f"- [ ] {n}. {t.text} (after {d.ids(t)}, @{t.who})" if t.after else f"- [ ] {n}. {who(t)}"
    ),
)
lines(
    "order_and_name_in_brackets",
    lambda d, n, t: f"- [ ] {n}. {t.text} ({t.who}{', after ' + d.ids(t) if t.after else ''})",
    lambda d, n, t: (
        f"- [ ] {n}. {t.text} [agent: {t.who}{', depends on: ' + d.ids(t) if t.after else ''}]"
    ),
    lambda d, n, t: f"- [ ] {n}. {t.text} ({t.who}{' | deps: ' + d.ids(t) if t.after else ''})",
    lambda d, n, t: f"- [ ] {n}. {t.text} (@{t.who}; after {d.ids(t) or 'none'})",
    lambda d, n, t: (
        f"{n}. {t.text} ({t.who}; depends on {d.ids(t)})" if t.after else f"{n}. {t.text} ({t.who})"
    ),
    lambda d, n, t: f"- [ ] {n}. {t.text} [@{t.who}{' · after ' + d.ids(t) if t.after else ''}]",
)
lines(
    "order_on_next_line",
    lambda d, n, t: f"- [ ] {n}. {who(t)}" + (f"\n  **Depends on:** {d.ids(t)}" if t.after else ""),
    lambda d, n, t: f"- [ ] {n}. {who(t)}" + (f"\n  Requires: {d.ids(t)}" if t.after else ""),
    lambda d, n, t: f"- [ ] {n}. {who(t)}" + (f"\n  *Depends on: {d.ids(t)}*" if t.after else ""),
    lambda d, n, t: f"- [ ] {n}. {who(t)}" + (f"\n  (after {d.ids(t)})" if t.after else ""),
    lambda d, n, t: f"- [ ] {n}. {who(t)}" + (f"\n  - depends on: {d.ids(t)}" if t.after else ""),
    lambda d, n, t: (
        f"- [ ] {n}. {who(t)}" + (f"\n  - **Dependencies:** Step {d.ids(t)}" if t.after else "")
    ),
    lambda d, n, t: f"- [ ] {n}. {who(t)}" + (f"\n  > after {d.ids(t)}" if t.after else ""),
    lambda d, n, t: (
        f"- [ ] {n}. {who(t)}\n  - **{d.words.depends[0]}**: {d.ids(t) or d.words.none[0]}"
    ),
    lambda d, n, t: f"- [ ] {n}. {who(t)}\n  _{d.words.depends[0]}: {d.ids(t) or d.words.none[0]}_",
)
lines(
    "order_each_named",
    lambda d, n, t: (
        f"- [ ] {n}. {who(t)}"
        + (f" ({' and '.join(f'after step {k}' for k in t.after)})" if t.after else "")
    ),
    lambda d, n, t: f"- [ ] {n}. {who(t)}" + "".join(f" (after {k})" for k in t.after),
    lambda d, n, t: (
        f"- [ ] {n}. {who(t)}"
        + (f" (after {', after '.join(map(str, t.after))})" if t.after else "")
    ),
    lambda d, n, t: (
        f"- [ ] {n}. {who(t)}"
        + (f" (after {' & '.join(f'#{k}' for k in t.after)})" if t.after else "")
    ),
    lambda d, n, t: (
        f"- [ ] {n}. {who(t)}"
        + (f" (after {', '.join(f'[{k}]' for k in t.after)})" if t.after else "")
    ),
    lambda d, n, t: (
        f"- [ ] {n}. {who(t)}" + (f" (after {' '.join(map(str, t.after))})" if t.after else "")
    ),
)


def spread(d: Drawing) -> Drawing:
    """The same with a last step that waits for all others."""
    from dataclasses import replace  # noqa: PLC0415

    last = replace(d.tasks[-1], after=tuple(range(1, len(d.tasks))))
    return replace(d, tasks=(*(replace(t, after=()) for t in d.tasks[:-1]), last))


@family
def order_as_range(d: Drawing) -> Item:
    """The last step waits for a range of steps."""
    d = spread(d)
    end = len(d.tasks) - 1
    said = d.pick(
        "1-{}",
        "1 - {}",
        "1–{}",
        "steps 1 to {}",
        "steps 1-{}",
        "1..{}",
        "1 through {}",
        "step 1 – step {}",
    ).format(end)
    forms = d.pick(
        " (after {})",
        "\n  Depends on: {}",
        " (depends on {})",
        "\n  **Depends on:** {}",
        ", after {}",
    )
    return d.body(
        d.listed(lambda n, t: f"- [ ] {n}. {who(t)}" + (forms.format(said) if t.after else ""))
    )


@family
def order_all_previous(d: Drawing) -> Item:
    """The last step waits for all before it, in so many words."""
    d = spread(d)
    said = d.pick(
        d.own.all_previous,
        "after all previous steps",
        "after all steps above",
        d.own.all_previous,
        "depends on all other steps",
        "after all",
        "after everything else",
    )
    return d.body(d.listed(lambda n, t: f"- [ ] {n}. {who(t)}" + (f" ({said})" if t.after else "")))


@family
def order_previous(d: Drawing) -> Item:
    """Each step waits for the one before it, in so many words."""
    d = d.chained()
    said = d.pick(
        d.own.previous,
        "after the previous step",
        "after previous",
        d.own.previous,
        "depends on the step above",
        "after the preceding step",
    )
    return d.body(d.listed(lambda n, t: f"- [ ] {n}. {who(t)}" + (f" ({said})" if t.after else "")))


@family
def order_by_title(d: Drawing) -> Item:
    """Steps are named by what they do."""

    def said(task: Task) -> str:
        names = [d.tasks[k - 1].text for k in task.after]
        marks = d.pick('"{}"', "'{}'", "“{}”", "*{}*")
        return ", ".join(marks.format(name) for name in names)

    return d.body(
        d.listed(lambda n, t: f"- [ ] {n}. {who(t)}" + (f" (after {said(t)})" if t.after else ""))
    )


@family
def order_in_section(d: Drawing) -> Item:
    """The order stands in a section of its own below the steps."""
    rows = [(n, d.ids(t)) for n, t in enumerate(d.tasks, 1) if t.after]
    form = d.pick(
        "- Step {} depends on {}",
        "- {} after {}",
        "- Step {}: after steps {}",
        "- {} depends on {}",
        "{} ← {}",
        "- Step {} requires step {}",
    )
    heading = d.pick("## Dependencies", "**Dependencies:**", f"## {d.own.depends[-1]}", "### Order")
    steps = d.listed(lambda n, t: f"- [ ] {n}. {who(t)}")
    return d.body(f"{steps}\n\n{heading}\n\n" + "\n".join(form.format(*row) for row in rows))


@family
def order_none_said(d: Drawing) -> Item:
    """Steps that wait for nobody say so."""
    none = d.pick("none", "no dependencies", "nothing", "-", "n/a", "—", "None", "[]")
    form = d.pick(" (after {})", " (depends on: {})", "\n  - Depends on: {}", " (dependencies: {})")
    return d.body(
        d.listed(
            lambda n, t: (
                f"- [ ] {n}. {who(t)}"
                + form.format(d.ids(t) or ("none" if none == "no dependencies" else none))
            )
        )
    )


@family
def order_forward(d: Drawing) -> Item:
    """Steps that stand above those that they wait for."""
    tasks = list(enumerate(d.tasks, 1))
    d.random.shuffle(tasks)
    from dataclasses import replace  # noqa: PLC0415

    body = "\n".join(d.line(n, t) for n, t in tasks)
    place = {n: at for at, (n, _) in enumerate(tasks, 1)}
    moved = tuple(replace(t, after=tuple(sorted(place[k] for k in t.after))) for _, t in tasks)
    return replace(d, tasks=moved).body(body)
