"""How steps stand, in the words that the terminal and the page have in common."""

from collections.abc import Iterable

from replan.plan.model import StepStatus

WORDS = {
    StepStatus.PENDING: "pending",
    StepStatus.EXECUTING: "running",
    StepStatus.COMPLETED: "done",
    StepStatus.FAILED: "failed",
    StepStatus.SKIPPED: "skipped",
}
WAITING = "waiting"
"""Said of a step, beside its status, that waits for a person."""


def awaited(failed: Iterable[int], coming: Iterable[int], *, left: str = "blocked") -> str:
    """What a step that has not begun waits for.

    Args:
        failed: The steps that it needs and that failed.
        coming: Those that are not over yet.
        left: What it is because of the failed ones.
    """
    if told := ", ".join(map(str, failed)):
        return f"{left}: {told} failed"
    told = ", ".join(map(str, coming))
    return f"waits for {told or 'its turn'}"
