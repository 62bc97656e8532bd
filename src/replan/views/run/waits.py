"""What a step waited for: others, its turn, a person, an attempt."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from replan.log.report import RunReport
from replan.log.step_reports import StepReport


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A time in which a step could have been worked on and was not."""

    what: str  # in words, such as `for step 2`
    seconds: float
    since: datetime | None = None  # of one that is not over


def waits_of(step: StepReport, report: RunReport) -> list[Wait]:
    """Return what a step of a run waited for; nothing of one that was not to run."""
    is_open = step.status.is_open and not report.is_over
    begun = step.began or (report.ended if is_open else None)
    planned = report.planned_at(step.step.id)
    before = _before(step, report, planned, begun) if begun and begun > planned else ()
    between = _between_attempts(step, report, is_open=is_open)
    return [wait for wait in (*before, *between) if wait.seconds > 0 or wait.what == _PERSON]


_PERSON = "for a person"


def _before(
    step: StepReport, report: RunReport, planned: datetime, begun: datetime
) -> Iterator[Wait]:
    """What it waited for before its first attempt: the last of those that it needs, its turn."""
    needed = [report.by_id[number] for number in step.step.awaits if number in report.by_id]
    failed, missing = report.obstacles(step.step)
    ready = planned
    if (missing or failed) and not step.attempts:
        what = _steps(missing) if missing else f"{_steps(failed)} (failed)"
        yield Wait(what=what, seconds=_seconds(planned, begun), since=planned)
        ready = begun
    elif ends := [(end, other.step.id) for other in needed if (end := _end(other)) is not None]:
        end, last = max(ends)
        ready = min(max(planned, end), begun)
        yield Wait(what=_steps([last]), seconds=_seconds(planned, ready))
    turn = _seconds(ready, begun) - _seconds_paused(report, ready, begun)
    yield Wait(what="for its turn", seconds=turn, since=None if step.attempts else ready)


def _between_attempts(step: StepReport, report: RunReport, *, is_open: bool) -> Iterator[Wait]:
    """What it waited for after its first attempt."""
    entries = [attempt.entry for attempt in step.attempts]
    by_name = [[e for e in entries if e.specialist == name] for name in step.specialists]
    person = pause = 0.0
    for before, after in (pair for own in by_name for pair in pairwise(own)):
        gap = _seconds(before.ended_at or after.started_at, after.started_at)
        if before.outcome == "waiting":
            person += gap
        elif before.ended_at is not None:
            pause += gap - _seconds_paused(report, before.ended_at, after.started_at)
    asking = [own[-1].ended_at for own in by_name if own and own[-1].outcome == "waiting"]
    keys = [q.key for q in report.pending_questions if q.step_id == step.step.id]
    asked = [*(asking if is_open else ()), *(report.fold.asked_at.get(key) for key in keys)]
    yield Wait(what=f"{_PERSON} (from question to next attempt)", seconds=person)
    if since := min((at for at in asked if at is not None), default=None):
        yield Wait(what=_PERSON, seconds=_seconds(since, report.ended), since=since)
    yield Wait(what="between its attempts", seconds=pause)


def _end(step: StepReport) -> datetime | None:
    ends = (attempt.entry.ended_at for attempt in step.attempts)
    return None if step.status.is_open else max((at for at in ends if at is not None), default=None)


def _steps(numbers: list[int]) -> str:
    return f"for step{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _seconds(began: datetime, ended: datetime) -> float:
    return max(0.0, (ended - began).total_seconds())


def _seconds_paused(report: RunReport, began: datetime, ended: datetime) -> float:
    """Seconds of a time without work on the run."""
    shared = (
        min(pause.ended or report.ended, ended) - max(pause.began, began) for pause in report.pauses
    )
    return sum((max(part, timedelta()) for part in shared), timedelta()).total_seconds()
