"""Changes that depend on other changes, and are refused with them."""

from collections.abc import Sequence

from replan.errors import Refusal
from replan.plan.changes import AddStep, ModifyStep, PlanChange, ReorderSteps
from replan.plan.model import PlanStep, TaskPlan


def step_of(change: PlanChange) -> int | None:
    """Return the step that a change adds or modifies; None if it does neither."""
    match change:
        case AddStep():
            return change.step.id
        case ModifyStep():
            return change.step_id
        case _:
            return None


def kept_changes(
    plan: TaskPlan, changes: Sequence[PlanChange], gone: set[int]
) -> tuple[list[PlanChange], list[Refusal]]:
    """Return the changes that are kept, and the refusals of those that depend on refused ones."""
    left = list(changes)
    refusals: list[Refusal] = []
    while True:
        wanted = _wanted(plan, left)
        leaning = [_leaning(change, wanted, gone) for change in left]
        found = [refusal for refusal in leaning if refusal is not None]
        if not found:
            return left, refusals
        refusals += found
        gone.update(refusal.step_id for refusal in found if refusal.step_id is not None)
        left = [change for change, why in zip(left, leaning, strict=True) if why is None]


def ordered(plan: TaskPlan, changes: Sequence[PlanChange], gone: set[int]) -> list[PlanChange]:
    known = plan.by_id.keys() | {c.step.id for c in changes if isinstance(c, AddStep)}
    lost = gone - known
    return [
        change.replace(order=tuple(each for each in change.order if each not in lost))
        if lost and isinstance(change, ReorderSteps)
        else change
        for change in changes
    ]


def _wanted(plan: TaskPlan, changes: Sequence[PlanChange]) -> dict[int, PlanStep]:
    steps = dict(plan.by_id)
    for change in changes:
        if isinstance(change, AddStep):
            steps.setdefault(change.step.id, change.step)
        elif isinstance(change, ModifyStep) and change.step_id in steps:
            steps[change.step_id] = steps[change.step_id].replace(**change.fields)
    return steps


def _leaning(change: PlanChange, wanted: dict[int, PlanStep], gone: set[int]) -> Refusal | None:
    step_id = step_of(change)
    if step_id is None:
        return None
    if step_id in gone:
        reason = f"Step {step_id} stays as it is: a part of its change is refused."
        return Refusal(code="leans_on_refused", step_id=step_id, reason=reason)
    awaited = sorted(gone & set(wanted[step_id].awaits)) if step_id in wanted else []
    if not awaited:
        return None
    reason = f"Step {step_id} waits for step {awaited[0]}, whose change is refused."
    return Refusal(code="leans_on_refused", step_id=step_id, reason=reason)
