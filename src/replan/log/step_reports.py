"""What is reported of the steps of a run, and of their attempts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from replan.base.values import Value
from replan.log.calls import Calls, calls_of
from replan.log.events.types import ModelCompleted, ToolCompleted, ToolInvoked
from replan.log.fold import CallEvent
from replan.log.rows import LedgerEntry
from replan.plan.model import PlanStep, StepStatus

RUNNING, WAITING, CUT_OFF = "running", "waiting", "cut off"

WORDS = {
    StepStatus.PENDING: "pending",
    StepStatus.EXECUTING: "running",
    StepStatus.COMPLETED: "done",
    StepStatus.FAILED: "failed",
    StepStatus.SKIPPED: "skipped",
}
"""The statuses of steps, in the words that the terminal and the page have in common."""


class AttemptReport(Value):
    """What an attempt of a step did, assembled from what is kept of it."""

    entry: LedgerEntry  # its rows in the log
    # The calls of models and tools that it made, each as its last event: one that is not over, or
    # was killed, is still `model_invoked` or `tool_invoked`.
    calls: tuple[CallEvent, ...] = ()
    running_at: datetime | None = None  # now, where a process works on it
    is_asked_about: bool = False  # whether a person is asked, or was, what it did
    # When the next attempt took over from one that asked a person, or its work ended; of one that
    # was cut off, when work on the run did.
    until: datetime
    went_on: bool = False  # whether another one came after it
    # When it asked a person, or a person was asked what it did; None if neither.
    asked_at: datetime | None = None

    @property
    def record(self) -> dict[str, Any]:
        """Its beginning and its end as JSON."""
        entry = self.entry.model_dump(mode="json", exclude={"run_id", "key"})
        return {**entry, "outcome": self.outcome}

    @property
    def is_doubted(self) -> bool:
        """Whether a person was asked what it did."""
        return self.asked_at is not None and self.outcome != "waiting"

    @property
    def seconds(self) -> float | None:
        """How long it took, or has taken until now; None if its end is unknown."""
        ended = self.entry.ended_at or self.running_at
        if ended is None or (
            self.is_doubted and self.asked_at is not None and ended > self.asked_at
        ):
            return None
        return (ended - self.entry.started_at).total_seconds()

    @property
    def outcome(self) -> str:
        """How it ended; `running` where it continues."""
        return "running" if self.running_at else self.entry.outcome

    @property
    def outcome_text(self) -> str:
        """How it ended, in words: an attempt that asks is followed by another after the answer."""
        if self.outcome == "waiting":
            return "asked, then went on" if self.went_on else "waits for a person"
        is_cut_off = self.outcome in ("unknown_outcome", "cancelled") and not self.is_asked_about
        return "cut off" if is_cut_off else self.outcome.replace("_", " ")

    @property
    def cost(self) -> float | None:
        """What its model calls were charged; None where one of them has no price."""
        ends = [call for call in self.calls if isinstance(call, ModelCompleted)]
        costs = [event.cost for event in ends if event.cost is not None]
        return sum(costs) if len(costs) == len(ends) else None


EARLY = "before the plan"
"""What is said about a step that began while its plan is still being written."""


class StepReport(Value):
    """A step of the plan, or one that a revision removed."""

    step: PlanStep
    status: StepStatus  # as of now: one that is worked on is `executing`
    attempts: tuple[AttemptReport, ...] = ()
    removed: str = ""  # which revision took it out of the plan; empty for one that is in it
    is_asking: bool = False  # whether it waits for a person
    is_early: bool = False  # whether it began before the plan that will have it is complete

    @property
    def is_cut_off(self) -> bool:
        """Whether its last attempt was ended from outside, by a stop or a kill."""
        last = self.attempts[-1].outcome if self.attempts else ""
        is_open = self.status is StepStatus.PENDING and not self.is_asking
        return is_open and last in ("unknown_outcome", "cancelled")

    @property
    def status_text(self) -> str:
        """Its status, in words."""
        is_running = self.status is StepStatus.EXECUTING
        status = RUNNING if is_running else self.status.value
        return self.removed or (WAITING if self.is_asking else status)

    @property
    def error(self) -> str:
        """Why it failed, or was skipped."""
        errors = [attempt.entry.error for attempt in self.attempts if attempt.entry.error]
        return errors[-1] if errors else self.step.feedback

    @property
    def specialists(self) -> tuple[str, ...]:
        tried = dict.fromkeys(attempt.entry.specialist for attempt in self.attempts)
        return tuple(tried) or self.step.specialists

    @property
    def began(self) -> datetime | None:
        """When its first attempt began."""
        return min((attempt.entry.started_at for attempt in self.attempts), default=None)

    @property
    def seconds(self) -> float | None:
        """How long its attempts took together, until now; None if no end is known."""
        took = [attempt.seconds for attempt in self.attempts if attempt.seconds is not None]
        return sum(took) if took else None

    @property
    def calls(self) -> Calls:
        return calls_of(call for attempt in self.attempts for call in attempt.calls)

    @property
    def tools(self) -> list[ToolInvoked | ToolCompleted]:
        calls = [call for attempt in self.attempts for call in attempt.calls]
        return [call for call in calls if isinstance(call, ToolInvoked | ToolCompleted)]


def awaited(failed: Iterable[int], coming: Iterable[int], *, left: str = "blocked") -> str:
    """What a step that has not begun waits for: steps that failed, or that are coming."""
    if names := ", ".join(map(str, failed)):
        return f"{left}: {names} failed"
    names = ", ".join(map(str, coming))
    return f"waits for {names or 'its turn'}"
