"""A run as one Markdown report, for a file: all of it, and nothing that breaks the report."""

import re
from collections.abc import Iterator

from replan.base.texts.signs import harmless
from replan.log.report import RunReport
from replan.log.step_reports import StepReport
from replan.runs.reports import WholeReport
from replan.views.cells import one_line, seconds
from replan.views.run.attempt_calls import attempt_lines
from replan.views.run.history import history_lines, why_text
from replan.views.run.overview import day_and_time, duration_text, goal_text, money, used_text

_MARKUP = re.compile(r"[\\`*_\[\]<>|#&~!]")
_TICKS = re.compile(r"`+")


def markdown_report(report: WholeReport) -> str:
    """The report."""
    title = report.plan.title if report.plan and report.plan.title else report.title
    lines = [
        f"# {inline(title)}",
        "",
        f"- Run: {inline(report.run_id)}",
        f"- Outcome: {inline(report.outcome)}{_in_brackets(why_text(report))}",
        f"- Goal: {inline(goal_text(report))}",
        f"- Began: {day_and_time(report.began)}; {duration_text(report)}",
        f"- Used: {inline(used_text(report))}",
        *(f"- Label: {inline(f'{name}={value}')}" for name, value in report.labels.items()),
        *(f"- Warning: {inline(warning)}" for warning in report.warnings),
        *(f"- File: {inline(f'{made.path} {made.title}')}" for made in report.artifacts),
        *_table(report),
        "",
        "## History",
        "",
        *(f"- {inline(line)}" for line in history_lines(report)),
    ]
    for step in report.steps:
        lines += _step(step, report)
    if report.answer:
        lines += ["", "## Answer", "", *quoted(report.answer)]
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


def _table(report: RunReport) -> Iterator[str]:
    if report.steps:
        yield from ("", "## Plan", "", "| step | | who | attempts | took | cost |")
        yield "| ---: | --- | --- | ---: | ---: | ---: |"
    for step in report.steps:
        took = "-" if step.seconds is None else seconds(step.seconds)
        who = inline(", ".join(step.specialists))
        what = f"{inline(step.step.description)} ({step.standing})"
        cost = money(step.calls, report.currency)
        cells = [str(step.step.id), what, who, str(len(step.attempts)), took, cost]
        yield f"| {' | '.join(cells)} |"


def _step(step: StepReport, report: WholeReport) -> Iterator[str]:
    results = [result for result in report.results if result.step_id == step.step.id]
    yield from ("", f"## Step {step.step.id}: {inline(step.step.description)}")
    for attempt in step.attempts:
        yield from ("", *fenced("\n".join(attempt_lines(attempt, report))))
    for result in results:
        yield from ("", f"Result of {inline(result.specialist_name)}: {result.status.value}", "")
        yield from quoted(result.text or result.error)
