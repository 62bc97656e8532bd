"""How each step of a run stands, in words that all doors have in common, and what it waited for."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from replan.log.report import RunReport
from replan.log.step_reports import CUT_OFF, EARLY, WAITING, WORDS, StepReport, awaited
from replan.plan.model import StepStatus
from replan.views.run.history import changed_steps
from replan.views.run.overview import remark_texts


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


@dataclass(frozen=True, kw_only=True)
class StepState:
    """The status of a step: a word for its style, and a text."""

    state: str  # pending, running, waiting, interrupted, done, failed, skipped or removed
    text: str  # such as `waits for a person`
    remarks: str = ""  # what of its calls its status does not tell
    changed: str = ""  # which revision added or changed it last; empty where none did


def step_states(report: RunReport) -> dict[int, StepState]:
    """The status of each step of a run, and for whom it waits."""
    changed = changed_steps(report)
    return {
        number: StepState(
            state=state,
            text=f"{text}, {EARLY}" if step.is_early else text,
            remarks=", ".join(remark_texts(report.anomalies_of(step))),
            changed=changed.get(number, ""),
        )
        for number, step in report.by_id.items()
        for state, text in [_state_of(step, report)]
    }


def _state_of(step: StepReport, report: RunReport) -> tuple[str, str]:
    if step.removed:
        return "removed", step.removed
    if step.is_asking:
        return WAITING, "waits for a person"
    if step.status is not StepStatus.PENDING:
        state = WORDS[step.status]
        is_optional = step.step.optional and step.status is StepStatus.FAILED
        return state, f"{state}, optional" if is_optional else state
    if step.is_cut_off and not report.is_over:
        return "interrupted", CUT_OFF
    failed, coming = report.obstacles(step.step)
    left = "not done" if step.attempts else "not begun"
    if report.is_over:
        return "pending", awaited(failed, (), left=left) if failed else left
    return "pending", awaited(failed, coming)
