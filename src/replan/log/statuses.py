"""The statuses of steps, in the words that all doors use."""

from __future__ import annotations

from collections.abc import Iterable

from replan.plan.model import StepStatus

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


def awaited(failed: Iterable[int], coming: Iterable[int], *, left: str = "blocked") -> str:
    """What a step that has not begun waits for: steps that failed, or that are coming."""
    if names := ", ".join(map(str, failed)):
        return f"{left}: {names} failed"
    names = ", ".join(map(str, coming))
    return f"waits for {names or 'its turn'}"
