"""How steps stand, in the words that the terminal and the page have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from replan.plan.model import StepStatus

WORDS = {
    StepStatus.PENDING: "pending",
    StepStatus.EXECUTING: "running",
    StepStatus.COMPLETED: "done",
    StepStatus.FAILED: "failed",
    StepStatus.SKIPPED: "skipped",
}
WAITING = "waiting"  # said of a step, beside its status, that waits for a person


def awaited(failed: Iterable[int], coming: Iterable[int], *, left: str = "blocked") -> str:
    """What a step that has not begun waits for: steps that failed, or that are coming."""
    if told := ", ".join(map(str, failed)):
        return f"{left}: {told} failed"
    told = ", ".join(map(str, coming))
    return f"waits for {told or 'its turn'}"


if TYPE_CHECKING:
    from replan.plan.model import PlanStep

INCOMPLETE = ("partial", "failed")  # the outcomes of a run that is over and did not do all

_MOST_FAILURES = 3


def failures(steps: Sequence[tuple[PlanStep, str]]) -> list[str]:
    """Name which steps failed, each with its reason, which may be empty."""
    failed = [each for each in steps if each[0].status is StepStatus.FAILED]
    told = [f"step {step.id} failed{f': {why}' if why else ''}" for step, why in failed]
    more = [f"{len(told) - _MOST_FAILURES} more failed"] if len(told) > _MOST_FAILURES else []
    return [*told[:_MOST_FAILURES], *more]


def not_run(steps: Sequence[PlanStep]) -> list[str]:
    left = [str(each.id) for each in steps if each.status is not StepStatus.COMPLETED]
    verb = "step {} was" if len(left) == 1 else "steps {} were"
    return [f"{verb.format(', '.join(left))} not run"] if left else []
