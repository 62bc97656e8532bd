"""How often a step was settled: each time it is reopened, a new generation begins."""

from collections.abc import Mapping

from replan.base.values import Value
from replan.plan.model import PlanStep, StepStatus, TaskPlan


class Generation(Value):
    """How often a step of a run was settled before, so which records belong to it.

    Attributes:
        settled: How often it was settled, well or not. The record of an earlier generation
            does not answer for this one.
        done: How often it was completed. Services take it for other work then: who opens a
            completed step requests it again.
    """

    settled: int = 0
    done: int = 0


FIRST = Generation()
"""The generation of a step that was never settled."""


def after_round(
    known: Mapping[int, Generation], before: TaskPlan, after: TaskPlan
) -> dict[int, Generation]:
    """Return the generations of the steps that a round settled, if they are ever reopened."""
    was_open = {step.id for step in before.open_steps()} | (after.by_id.keys() - before.by_id)
    return {
        step.id: _next(known.get(step.id, FIRST), step)
        for step in after.steps
        if step.id in was_open and step.status in (StepStatus.COMPLETED, StepStatus.FAILED)
    }


def _next(last: Generation, step: PlanStep) -> Generation:
    is_done = step.status is StepStatus.COMPLETED
    return Generation(settled=last.settled + 1, done=last.done + is_done)
