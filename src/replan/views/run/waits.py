"""What a step waited for: others, its turn, a person, an attempt."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from replan.log.report import RunReport
from replan.log.step_reports import StepReport
from replan.plan.model import StepStatus


@dataclass(frozen=True, kw_only=True)
class Wait:
    """A time in which a step could have been worked on and was not."""

    what: str  # in words, such as `for step 2`
    seconds: float
    since: datetime | None = None  # of one that is not over


def waits_of(step: StepReport, report: RunReport) -> list[Wait]:
    """Return what a step of a run waited for; nothing of one that was not to run."""
    planned = report.planned_at(step.step.id)
    is_open = step.status.is_open and not report.is_over
    begun = step.began or (report.ended if is_open else None)
    if begun is None or begun <= planned:
        return list(_waits_between_attempts(step, report, is_open=is_open))
    ready, waits = planned, list[Wait]()
    needed = {
        step_report.step.id: step_report
        for step_report in report.steps
        if step_report.step.id in step.step.awaits
    }
    missing = [number for number, step in needed.items() if step.status.is_open]
    failed = [number for number, step in needed.items() if step.status is StepStatus.FAILED]
    ends = {number: ended for number, step in needed.items() if (ended := _end(step)) is not None}
    if (missing or failed) and not step.attempts:
        ready = begun
        what = _steps(missing) if missing else f"{_steps(failed)} (failed)"
        waits.append(Wait(what=what, seconds=_seconds_between(planned, begun), since=planned))
    elif ends:
        last = max(ends, key=lambda number: ends[number])
        ready = min(max(planned, ends[last]), begun)
        waits.append(Wait(what=_steps([last]), seconds=_seconds_between(planned, ready)))
    turn = _seconds_between(ready, begun) - _seconds_paused(report, ready, begun)
    waits.append(Wait(what="for its turn", seconds=turn, since=None if step.attempts else ready))
    return [
        *(wait for wait in waits if wait.seconds > 0),
        *_waits_between_attempts(step, report, is_open=is_open),
    ]


def _waits_between_attempts(
    step: StepReport, report: RunReport, *, is_open: bool
) -> Iterator[Wait]:
    """What it waited for after its first attempt."""
    person = pause = 0.0
    asking = list[datetime]()
    for name in step.specialists:
        entries = [attempt.entry for attempt in step.attempts if attempt.entry.specialist == name]
        for before, after in pairwise(entries):
            if before.ended_at is not None:
                gap = _seconds_between(before.ended_at, after.started_at)
                is_asked = before.outcome == "waiting"
                person += gap if is_asked else 0.0
                away = _seconds_paused(report, before.ended_at, after.started_at)
                pause += 0.0 if is_asked else gap - away
        if (
            is_open
            and entries
            and entries[-1].outcome == "waiting"
            and entries[-1].ended_at is not None
        ):
            asking.append(entries[-1].ended_at)
    keys = [q.key for q in report.pending_questions if q.step_id == step.step.id]
    asking += [report.fold.asked_at[key] for key in keys if key in report.fold.asked_at]
    if person > 0:
        yield Wait(what="for a person (from question to next attempt)", seconds=person)
    if asking:
        since = min(asking)
        yield Wait(what="for a person", seconds=_seconds_between(since, report.ended), since=since)
    if pause > 0:
        yield Wait(what="between its attempts", seconds=pause)


def _end(step: StepReport) -> datetime | None:
    ends = [
        attempt.entry.ended_at for attempt in step.attempts if attempt.entry.ended_at is not None
    ]
    return max(ends) if ends and not step.status.is_open else None


def _steps(numbers: list[int]) -> str:
    return f"for step{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _seconds_between(began: datetime, ended: datetime) -> float:
    return max(0.0, (ended - began).total_seconds())


def _seconds_paused(report: RunReport, began: datetime, ended: datetime) -> float:
    """Seconds of a time without work on the run."""
    shared = (
        min(pause.ended or report.ended, ended) - max(pause.began, began) for pause in report.pauses
    )
    return sum(
        (duration for duration in shared if duration > timedelta()), timedelta()
    ).total_seconds()
