"""The status of a run and of its steps after each event, in the words that its report has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from replan.events import types as events
from replan.log.rows import AttemptOutcome
from replan.plan.model import StepStatus
from replan.state.outcomes import ExecutionStatus, Outcome

RUNNING, WAITING, CUT_OFF = "running", "waiting", "cut off"

WORDS = {
    StepStatus.PENDING: "pending",
    StepStatus.EXECUTING: "running",
    StepStatus.COMPLETED: "done",
    StepStatus.FAILED: "failed",
    StepStatus.SKIPPED: "skipped",
}
"""The statuses of steps, in the words that the terminal and the page have in common."""

INCOMPLETE = ("partial", "failed")  # the outcomes of a run that is over and did not do all


def rest_after(event: events.BaseEvent) -> Outcome | Literal["waiting", "interrupted"] | None:
    """The status in which a run rests after an event; None where it does not rest.

    A run whose work failed before its end is `interrupted`: it can be resumed.
    """
    match event:
        case events.TaskCompleted():
            return event.outcome
        case events.RunStopped():
            return "waiting" if event.reason == "waiting" else "interrupted"
        case _:
            return None


def end_of(event: events.SpecialistCompleted) -> str:
    """The status in which a specialist leaves its step: whatever is not a success has failed."""
    is_done = event.status is ExecutionStatus.SUCCESS
    return (StepStatus.COMPLETED if is_done else StepStatus.FAILED).value


def attempt_end(event: events.SpecialistCompleted) -> AttemptOutcome:
    """How the last attempt of a specialist ended."""
    return "done" if event.status is ExecutionStatus.SUCCESS else "failed"


def awaited(failed: Iterable[int], coming: Iterable[int], *, left: str = "blocked") -> str:
    """What a step that has not begun waits for: steps that failed, or that are coming."""
    if names := ", ".join(map(str, failed)):
        return f"{left}: {names} failed"
    names = ", ".join(map(str, coming))
    return f"waits for {names or 'its turn'}"
