"""Two runs side by side: what their plans, results, times, tokens and costs have different."""

from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from replan.plan.markdown.rendering import render_for_model
from replan.runs.reports import WholeReport
from replan.state.results import SpecialistResult
from replan.views.cells import columns, one_line, seconds
from replan.views.run.overview import goal_text, money, tokens

_WIDEST, _NARROWEST = 40, 12
_MOST_LINES = 40
"""Lines of one difference that are shown."""


def compared(one: WholeReport, other: WholeReport, width: int) -> Iterator[str]:
    """The lines of a comparison of two runs, with the plan and the results of the first before."""
    figures = [("", one.run_id, other.run_id), *_figures(one, other)]
    room = max(_NARROWEST, min(_WIDEST, (width - 18) // 2))
    yield from columns([[*map(one_line, row)] for row in figures], width, widest=room)
    differences = comparison_record(one, other)
    yield from ("", "plan:")
    yield from _difference(differences["plan"], is_there=one.plan is not None)
    yield from ("", "results:")
    yield from _results(_texts(one), _texts(other), differences["results"])
    yield from ("", "answer:")
    yield from _difference(differences["answer"], is_there=bool(one.answer))


def comparison_record(one: WholeReport, other: WholeReport) -> dict[str, Any]:
    """A comparison as JSON: the figures of both, and what differs."""
    texts, other_texts = _texts(one), _texts(other)
    return {
        "runs": [{"run_id": report.run_id, **_numbers(report)} for report in (one, other)],
        "plan": _lines_between(_plan(one), _plan(other)),
        "results": {
            key: _lines_between(texts.get(key, ""), other_texts.get(key, ""))
            for key in sorted(texts.keys() | other_texts.keys(), key=_by_step)
            if texts.get(key) != other_texts.get(key)
        },
        "answer": _lines_between(one.answer, other.answer),
    }


def _figures(*reports: WholeReport) -> Iterator[tuple[str, ...]]:
    """What the runs are compared by, in words."""
    each = [(report, _numbers(report)) for report in reports]
    yield "goal", *(goal_text(report) for report in reports)
    yield from ((name, *(numbers[name] for _, numbers in each)) for name in ("team", "outcome"))
    yield "steps done", *(f"{numbers['steps_done']} of {numbers['steps']}" for _, numbers in each)
    for name in ("attempts", "revisions"):
        yield name, *(str(numbers[name]) for _, numbers in each)
    yield "at work", *(seconds(report.worked) for report in reports)
    yield "waited", *(seconds(report.waited) for report in reports)
    yield "model calls", *(str(report.calls.calls) for report in reports)
    yield "tokens", *(tokens(report.calls) for report in reports)
    yield "cost", *(money(report.calls, report.currency) for report in reports)
    yield "warnings", *(str(len(report.warnings)) for report in reports)


def _numbers(report: WholeReport) -> dict[str, Any]:
    done, planned = report.progress
    return {
        "title": report.title,
        "team": report.team,
        "outcome": report.outcome,
        "steps_done": done,
        "steps": planned,
        "attempts": len(report.attempts),
        "revisions": max(0, len(report.revisions) - 1),
        "seconds_at_work": report.worked,
        "seconds_waited": report.waited,
        "model_calls": report.calls.calls,
        "input_tokens": report.calls.input_tokens,
        "output_tokens": report.calls.output_tokens,
        "cost": report.calls.cost,
        "currency": report.currency,
        "warnings": len(report.warnings),
    }


def _plan(report: WholeReport) -> str:
    return render_for_model(report.plan) if report.plan else ""


def _texts(report: WholeReport) -> dict[str, str]:
    """The results by step and specialist, with a failure in the place of a text."""
    return {result.key: _text(result) for result in report.results}


def _text(result: SpecialistResult) -> str:
    return f"{result.status.value}: {result.error}" if result.error else result.text


def _results(
    one: dict[str, str], other: dict[str, str], differences: dict[str, list[str]]
) -> Iterator[str]:
    same = [one_line(key) for key in sorted(one, key=_by_step) if key not in differences]
    yield from [f"  the same: {', '.join(same)}"] if same else []
    for key, lines in differences.items():
        alone = "" if key in one and key in other else "second" if key in other else "first"
        yield f"  {one_line(key)}{alone and f' (only in the {alone} run)'}"
        yield from (f"  {line}" for line in _difference(lines, is_there=key in one))
    if not same and not differences:
        yield "  none"


def _difference(lines: list[str], *, is_there: bool) -> Iterator[str]:
    yield from (f"  {line}" for line in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f"  ... {len(lines) - _MOST_LINES} more lines; --json has all of them"
    if not lines:
        yield "  the same" if is_there else "  none"


def _lines_between(one: str, other: str) -> list[str]:
    """The changed lines with two around them, without the names of files."""
    found = unified_diff(one.splitlines(), other.splitlines(), n=2, lineterm="")
    return [*found][2:]


def _by_step(key: str) -> tuple[int, str]:
    step, _, specialist = key.partition("/")
    return int(step), specialist
