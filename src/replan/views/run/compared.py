"""Two runs side by side: what their plans, results, times, tokens and costs have different."""

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any

from replan.log.report import RunReport
from replan.plan.markdown.rendering import render_for_model
from replan.runs.reports import WholeReport
from replan.state.results import SpecialistResult
from replan.views.cells import cut, one_line, padded, seconds
from replan.views.run.overview import goal_text, money, tokens

_NAMES, _WIDEST, _NARROWEST = 14, 40, 12
_MOST_LINES = 40
"""Lines of one difference that are shown."""


def compared(one: WholeReport, other: WholeReport, width: int) -> Iterator[str]:
    """The lines of a comparison of two runs, with the plan and the results of the first before."""
    room = max(_NARROWEST, min(_WIDEST, (width - _NAMES - 4) // 2))
    yield _row("", one.run_id, other.run_id, room)
    figures = zip(_figures(one).items(), _figures(other).values(), strict=True)
    yield from (_row(name, mine, theirs, room) for (name, mine), theirs in figures)
    yield from ("", "plan:")
    yield from _difference(_plan(one), _plan(other))
    yield from ("", "results:")
    yield from _results(_texts(one), _texts(other))
    yield from ("", "answer:")
    yield from _difference(one.answer, other.answer)


def comparison_record(one: WholeReport, other: WholeReport) -> dict[str, Any]:
    """A comparison as JSON: the figures of both, and what differs."""
    mine, theirs = _texts(one), _texts(other)
    return {
        "runs": [{"run_id": report.run_id, **_numbers(report)} for report in (one, other)],
        "plan": _lines_between(_plan(one), _plan(other)),
        "results": {
            key: _lines_between(mine.get(key, ""), theirs.get(key, ""))
            for key in sorted(mine.keys() | theirs.keys(), key=_by_step)
            if mine.get(key) != theirs.get(key)
        },
        "answer": _lines_between(one.answer, other.answer),
    }


def _row(name: str, one: str, other: str, room: int) -> str:
    return f"{padded(name, _NAMES)}  {padded(one_line(one), room)}  {cut(one_line(other), room)}"


def _figures(report: RunReport) -> dict[str, str]:
    """What the runs are compared by, in words."""
    done, planned = report.progress
    return {
        "goal": goal_text(report),
        "team": report.team,
        "outcome": report.outcome,
        "steps done": f"{done} of {planned}",
        "attempts": str(len(report.attempts)),
        "revisions": str(max(0, len(report.revisions) - 1)),
        "at work": seconds(report.worked),
        "waited": seconds(report.waited),
        "model calls": str(report.calls.calls),
        "tokens": tokens(report.calls),
        "cost": money(report.calls, report.currency),
        "warnings": str(len(report.warnings)),
    }


def _numbers(report: RunReport) -> dict[str, Any]:
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


def _plan(report: RunReport) -> str:
    return render_for_model(report.plan) if report.plan else ""


def _texts(report: WholeReport) -> dict[str, str]:
    """The results by step and specialist, with a failure in the place of a text."""
    return {result.key: _text(result) for result in report.results}


def _text(result: SpecialistResult) -> str:
    return f"{result.status.value}: {result.error}" if result.error else result.text


def _results(one: Mapping[str, str], other: Mapping[str, str]) -> Iterator[str]:
    keys = sorted(one.keys() | other.keys(), key=_by_step)
    same = [key for key in keys if one.get(key) == other.get(key)]
    if same:
        yield f"  the same: {', '.join(map(one_line, same))}"
    for key in keys:
        if key not in same:
            alone = "" if key in one and key in other else "only in the "
            which = alone and f" ({alone}{'first' if key in one else 'second'} run)"
            yield f"  {one_line(key)}{which}"
            yield from (f"  {line}" for line in _difference(one.get(key, ""), other.get(key, "")))
    if not keys:
        yield "  none"


def _difference(one: str, other: str) -> Iterator[str]:
    lines = _lines_between(one, other)
    yield from (f"  {line}" for line in lines[:_MOST_LINES])
    if len(lines) > _MOST_LINES:
        yield f"  ... {len(lines) - _MOST_LINES} more lines; --json has all of them"
    if not lines:
        yield "  the same" if one else "  none"


def _lines_between(one: str, other: str) -> list[str]:
    """The changed lines with two around them, without the names of files."""
    found = unified_diff(one.splitlines(), other.splitlines(), n=2, lineterm="")
    return [*found][2:]


def _by_step(key: str) -> tuple[int, str]:
    step, _, specialist = key.partition("/")
    return int(step), specialist
