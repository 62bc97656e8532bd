"""A period: what its runs took and how they ended, added up by day, team or who did the work."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC
from typing import Literal

from replan.base.values import Value
from replan.log.calls import Calls, calls_of, sum_of
from replan.log.events.types import ModelCompleted, ToolCompleted
from replan.log.report import RunReport

By = Literal["day", "team", "specialist", "tool", "model"]
"""What the runs of a period are added up by."""

HOST = "host"
"""The name of the host among the specialists."""


class Sums(Value):
    """What runs, attempts or calls of one name took together.

    Attributes:
        name: The day (in UTC), the team, the specialist, the tool or the model.
        runs: The runs in which it occurs.
        number: By day and team, these runs; by specialist, attempts; else, calls.
        failed: Those of them that failed.
        partial: By day and team, the runs that ended with a part of what was wanted; else none.
        input_tokens: The counted tokens that models read.
        output_tokens: The counted tokens that models wrote.
        costs: Money by its currency, which is empty where a team names none; null where a price is
            not known.
        seconds: Their time at work.
        waited: By day and team, the seconds in which they waited for a person.
    """

    name: str
    runs: int
    number: int
    failed: int
    partial: int
    input_tokens: int
    output_tokens: int
    costs: dict[str, float | None]
    seconds: float
    waited: float


@dataclass(frozen=True, slots=True)
class _Part:
    """One run, attempt or call."""

    name: str
    is_failed: bool
    seconds: float
    calls: Calls = Calls()  # noqa: RUF009 - it is frozen
    waited: float = 0.0
    number: int = 1
    is_partial: bool = False


def added_up(reports: Iterable[RunReport], by: By) -> tuple[Sums, ...]:
    """Add up what runs took: days in their order, all else by what it took most of.

    Args:
        reports: The runs, each with all of its events.
        by: What they are added up by.
    """
    parts = defaultdict[str, list[tuple[RunReport, _Part]]](list)
    for report in reports:
        for part in _PARTS[by](report):
            parts[part.name].append((report, part))
    sums = [_sums(name, reports_and_parts) for name, reports_and_parts in parts.items()]
    if by == "day":
        return tuple(sorted(sums, key=lambda sums: sums.name))
    return tuple(sorted(sums, key=lambda sums: (-_most(sums), -sums.seconds, sums.name)))


def _most(sums: Sums) -> float:
    return max((cost or 0.0 for cost in sums.costs.values()), default=0.0)


def _sums(name: str, reports_and_parts: list[tuple[RunReport, _Part]]) -> Sums:
    parts = [part for _, part in reports_and_parts]
    calls = sum_of(part.calls for part in parts)
    return Sums(
        name=name,
        costs=_costs(reports_and_parts),
        runs=len({report.run_id for report, _ in reports_and_parts}),
        number=sum(part.number for part in parts),
        failed=sum(part.is_failed for part in parts),
        partial=sum(part.is_partial for part in parts),
        input_tokens=calls.input_tokens,
        output_tokens=calls.output_tokens,
        seconds=round(sum(part.seconds for part in parts), 3),
        waited=round(sum(part.waited for part in parts), 3),
    )


def _costs(reports_and_parts: list[tuple[RunReport, _Part]]) -> dict[str, float | None]:
    """What was charged in each currency; what is free needs none."""
    calls = defaultdict[str, list[Calls]](list)
    for report, part in reports_and_parts:
        calls[report.currency].append(part.calls)
    costs = {currency: sum_of(each).cost for currency, each in calls.items()}
    order = sorted(costs, key=lambda currency: (not currency, currency))
    return {currency: costs[currency] for currency in order if costs[currency] != 0}


def _of_run(name: str, report: RunReport) -> _Part:
    return _Part(
        name,
        is_failed=report.outcome == "failed",
        is_partial=report.outcome == "partial",
        seconds=report.worked,
        calls=report.calls,
        waited=report.waited,
    )


def _days(report: RunReport) -> Iterator[_Part]:
    yield _of_run(f"{report.began.astimezone(UTC):%Y-%m-%d}", report)


def _teams(report: RunReport) -> Iterator[_Part]:
    yield _of_run(report.team or "(unknown)", report)


def _specialists(report: RunReport) -> Iterator[_Part]:
    for attempt in report.attempts:
        is_failed = attempt.entry.outcome == "failed"
        attempt_calls = calls_of(call for call in attempt.calls if isinstance(call, ModelCompleted))
        yield _Part(attempt.entry.specialist, is_failed, attempt.seconds or 0.0, attempt_calls)
    if ends := [call for call in report.host_calls if isinstance(call, ModelCompleted)]:
        failed, seconds = any(event.error for event in ends), sum(event.seconds for event in ends)
        yield _Part(HOST, failed, seconds, calls_of(ends), number=len(ends))


def _tools(report: RunReport) -> Iterator[_Part]:
    for event in report.events:
        if isinstance(event, ToolCompleted):
            yield _Part(event.tool, event.status == "failed", event.seconds)


def _models(report: RunReport) -> Iterator[_Part]:
    for event in report.events:
        if isinstance(event, ModelCompleted):
            yield _Part(event.model, bool(event.error), event.seconds, calls_of([event]))


_PARTS = {
    "day": _days,
    "team": _teams,
    "specialist": _specialists,
    "tool": _tools,
    "model": _models,
}
