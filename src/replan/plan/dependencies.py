"""Which steps can run, which wait, which are blocked, and which are skipped."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from replan.plan.model import Condition, PlanStep, StepStatus, TaskPlan
from replan.plan.order import run_order
from replan.plan.statuses import with_statuses

Readiness = Literal["ready", "waiting", "blocked", "skip"]
"""Whether a step can run now, later, only after a revision, or is to be skipped."""

_WORST_LAST: tuple[Readiness, ...] = ("ready", "waiting", "blocked", "skip")


def readiness(step: PlanStep, steps: Mapping[int, PlanStep]) -> Readiness:
    """Return whether an open step can run, from the statuses of the steps that it waits for.

    A condition is decided once its step has ended; if it does not hold, the step is skipped,
    whatever else it waits for. A failed dependency blocks, unless it is optional or the step also
    waits for one that handles the failure (its condition is that the dependency failed).

    Args:
        step: The step to judge.
        steps: All steps of the plan by id.
    """
    condition = step.condition
    if condition is None and not step.dependencies:
        return "ready"
    verdicts: set[Readiness] = {"ready"}
    for other in step.dependencies:
        if condition is None or other != condition.step:
            verdicts.add(_of_dependency(other, step, steps))
    if condition is not None:
        verdicts.add(_of_condition(condition, steps))
    return max(verdicts, key=_WORST_LAST.index)


def ready_steps(plan: TaskPlan) -> tuple[PlanStep, ...]:
    """Return the open steps that can run now, the largest priority first, then the lowest id."""
    steps = plan.by_id
    ready = [step for step in plan.open_steps() if readiness(step, steps) == "ready"]
    return tuple(sorted(ready, key=lambda step: (-step.priority, step.id)))


def blocked_steps(plan: TaskPlan) -> tuple[PlanStep, ...]:
    """Return the open steps that can never run without a revision, in the plan's order.

    That are those that wait for a failed step, and those that wait for such ones.
    """
    steps = plan.by_id
    seen: set[int] = set()
    blocked: set[int] = set()
    for step in run_order(plan):
        if _never_runs(step, steps, seen, blocked):
            blocked.add(step.id)
        seen.add(step.id)
    return tuple(step for step in plan.steps if step.id in blocked)


def skippable_steps(plan: TaskPlan) -> tuple[PlanStep, ...]:
    """Return the open steps to skip, including those whose condition depends on a skipped one."""
    after = _with_conditions_settled(plan)
    return tuple(step for step in plan.open_steps() if after[step.id].status is StepStatus.SKIPPED)


def settle_conditions(plan: TaskPlan, at: datetime) -> TaskPlan:
    """Mark every step whose condition does not hold as skipped, with the reason as feedback.

    Args:
        plan: The plan.
        at: The time of the change.
    """
    after = _with_conditions_settled(plan)
    return with_statuses(plan, (after[step.id] for step in plan.open_steps()), at)


def unmet_steps(plan: TaskPlan) -> tuple[PlanStep, ...]:
    """Return the required steps that keep the plan from being complete.

    A failed step does not if a completed step handled its failure: one with the condition that it
    failed.
    """
    handled = {
        step.condition.step
        for step in plan.steps
        if step.status is StepStatus.COMPLETED
        and step.condition is not None
        and step.condition.outcome == "failed"
    }
    return tuple(
        step
        for step in plan.steps
        if not step.optional
        and not step.is_finished
        and not (step.status is StepStatus.FAILED and step.id in handled)
    )


def steps_left_out(plan: TaskPlan) -> tuple[PlanStep, ...]:
    """Return the required steps that a person skipped, rather than their own condition."""
    steps = plan.by_id
    return tuple(
        step
        for step in plan.steps
        if step.status is StepStatus.SKIPPED
        and not step.optional
        and (step.condition is None or _of_condition(step.condition, steps) != "skip")
    )


def _of_condition(condition: Condition, steps: Mapping[int, PlanStep]) -> Readiness:
    step = steps.get(condition.step)
    if step is None:
        return "blocked"
    if step.status.is_open:
        return "waiting"
    return "ready" if step.status == condition.outcome else "skip"


def _of_dependency(other: int, step: PlanStep, steps: Mapping[int, PlanStep]) -> Readiness:
    awaited = steps.get(other)
    if awaited is None:
        return "blocked"
    if awaited.status.is_open:
        return "waiting"
    settled = awaited.is_finished or awaited.optional or _is_handled(other, step, steps)
    return "ready" if settled else "blocked"


def _is_handled(failed: int, step: PlanStep, steps: Mapping[int, PlanStep]) -> bool:
    """Whether a step also waits for one that runs only because the other failed."""
    handler = Condition(step=failed, outcome="failed")
    awaited = (steps[other] for other in step.awaits if other in steps)
    return any(other.condition == handler for other in awaited)


def _never_runs(
    step: PlanStep, steps: Mapping[int, PlanStep], seen: set[int], blocked: set[int]
) -> bool:
    """Whether an open step is blocked, or waits for one that is."""
    if not step.status.is_open:
        return False
    state = readiness(step, steps)
    # What is not seen before the step in the order of running waits for it: a cycle.
    stuck = (other in blocked or (other not in seen and other in steps) for other in step.awaits)
    return state == "blocked" or (state == "waiting" and any(stuck))


def _with_conditions_settled(plan: TaskPlan) -> dict[int, PlanStep]:
    """Return the steps by id, in one pass, with those skipped whose condition does not hold."""
    steps = dict(plan.by_id)
    has_conditions = any(step.condition for step in plan.steps)
    for step in run_order(plan) if has_conditions else ():
        condition = step.condition
        if condition is not None and step.status.is_open and readiness(step, steps) == "skip":
            ended = steps[condition.step].status
            steps[step.id] = step.replace(
                status=StepStatus.SKIPPED,
                feedback=f"Step {condition.step} is {ended}, not {condition.outcome}.",
            )
    return steps
