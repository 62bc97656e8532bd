"""A run as one Markdown report, for a file: all of it, and nothing that breaks the report."""

import re
from collections.abc import Iterator

from replan.runs.course.story import StepStory, Story
from replan.texts.signs import harmless
from replan.views.cells import one_line, seconds
from replan.views.run.attempt_calls import attempt_lines
from replan.views.run.history import history_lines
from replan.views.run.overview import day_and_time, duration_text, goal_text, money, usage_text
from replan.views.run.reasons import why_ended

_MARKUP = re.compile(r"[\\`*_\[\]<>|#&~!]")
_TICKS = re.compile(r"`+")


def report(story: Story) -> str:
    """The report."""
    run = story.run
    title = run.plan.title if run.plan and run.plan.title else run.title
    lines = [
        f"# {inline(title)}",
        "",
        f"- Run: {inline(run.run_id)}",
        f"- Outcome: {inline(run.outcome)}{_in_brackets(why_ended(story))}",
        f"- Goal: {inline(goal_text(story))}",
        f"- Began: {day_and_time(story.began)}; {duration_text(story)}",
        f"- Used: {inline(usage_text(story.calls, is_running=run.outcome == 'running'))}",
        *(f"- Label: {inline(f'{name}={value}')}" for name, value in run.labels.items()),
        *(f"- Warning: {inline(each)}" for each in run.warnings),
        *(f"- File: {inline(f'{made.path} {made.title}')}" for made in run.artifacts),
        *_table(story),
        "",
        "## History",
        "",
        *(f"- {inline(line)}" for line in history_lines(story)),
    ]
    for step in story.steps:
        lines += _step(step, story)
    if run.answer:
        lines += ["", "## Answer", "", *quoted(run.answer)]
    return "\n".join([*lines, ""])


def inline(text: str) -> str:
    """A text in one line, as text: nothing in it is Markdown or HTML."""
    return _MARKUP.sub(r"\\\g<0>", one_line(text))


def quoted(text: str) -> Iterator[str]:
    """A Markdown text as a quote, which ends whatever it leaves open."""
    return (f"> {line}".rstrip() for line in harmless(text).strip("\n").splitlines())


def fenced(text: str) -> list[str]:
    """A text as it is, in a fence that it cannot close."""
    longest = max((len(ticks) for ticks in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *harmless(text).splitlines(), fence]


def _in_brackets(text: str) -> str:
    return f" ({inline(text)})" if text else ""


def _table(story: Story) -> Iterator[str]:
    if story.steps:
        yield from ("", "## Plan", "", "| step | | who | attempts | took | cost |")
        yield "| ---: | --- | --- | ---: | ---: | ---: |"
    for each in story.steps:
        took = "-" if each.seconds is None else seconds(each.seconds)
        who = inline(", ".join(each.specialists))
        what = f"{inline(each.step.description)} ({each.status_text})"
        cells = [str(each.step.id), what, who, str(len(each.attempts)), took, money(each.calls)]
        yield f"| {' | '.join(cells)} |"


def _step(step: StepStory, story: Story) -> Iterator[str]:
    results = [each for each in story.run.results if each.step_id == step.step.id]
    yield from ("", f"## Step {step.step.id}: {inline(step.step.description)}")
    for attempt in step.attempts:
        yield from ("", *fenced("\n".join(attempt_lines(attempt, story.run))))
    for result in results:
        yield from ("", f"Result of {inline(result.specialist_name)}: {result.status.value}", "")
        yield from quoted(result.text or result.error)
