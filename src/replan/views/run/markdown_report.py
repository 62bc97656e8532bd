"""A run as one Markdown report, for a file: all of it, and nothing that breaks the report."""

import re
from collections.abc import Iterable, Iterator

from replan.base.texts.signs import harmless
from replan.log.report import RunReport
from replan.log.step_reports import StepReport
from replan.runs.reports import WholeReport
from replan.views.cells import one_line
from replan.views.run.attempts import attempt_lines, result_word
from replan.views.run.overview import head_lines, sections, step_cells

_MARKUP = re.compile(r"[\\`*_\[\]<>|#&~!]")
_TICKS = re.compile(r"`+")


def markdown_report(report: WholeReport) -> str:
    """The report."""
    title = report.plan.title if report.plan and report.plan.title else report.title
    lines = [f"# {inline(title)}", "", *_listed(head_lines(report)), *_table(report)]
    for heading, content in sections(report).items():
        if content:
            lines += ["", f"## {heading.capitalize()}", "", *_listed(content)]
    for step in report.steps:
        lines += _step(step, report)
    if report.answer:
        lines += ["", "## Answer", "", *quoted(report.answer)]
    return "\n".join([*lines, ""])


def _listed(lines: Iterable[str]) -> Iterator[str]:
    return (f"- {inline(line)}" for line in lines)


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


def _table(report: RunReport) -> Iterator[str]:
    if report.steps:
        yield from ("", "## Plan", "", "| | began | took | cost | who | step |")
        yield "| --- | --- | ---: | ---: | --- | --- |"
    for step in report.steps:
        yield f"| {' | '.join(map(inline, step_cells(step, report)))} |"


def _step(step: StepReport, report: WholeReport) -> Iterator[str]:
    results = [result for result in report.results if result.step_id == step.step.id]
    yield from ("", f"## Step {step.step.id}: {inline(step.step.description)}")
    for attempt in step.attempts:
        yield from ("", *fenced("\n".join(attempt_lines(attempt, report))))
    for result in results:
        yield from ("", f"Result of {inline(result.specialist_name)}: {result_word(result)}", "")
        yield from quoted(result.text or result.error)
