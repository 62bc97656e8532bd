"""Apply changes to the steps of a plan, and find those that are impossible."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from replan.errors import Refusal
from replan.plan.changes import (
    AddStep,
    ModifyPlan,
    ModifyStep,
    PlanChange,
    RemoveStep,
    ReorderSteps,
)
from replan.plan.markdown.normal import normalised_step
from replan.plan.misfits import misfits
from replan.plan.model import PlanStep, StepStatus, TaskPlan

_WAITS = frozenset(("dependencies", "condition"))


class Refused(NamedTuple):
    """A refusal, and the index of the change that caused it."""

    change: int
    refusal: Refusal


def apply_changes(plan: TaskPlan, changes: Sequence[PlanChange]) -> TaskPlan:
    """Apply changes that are known to be possible, such as those of a history."""
    return reduce(_carried_out, changes, plan)


def check_changes(
    plan: TaskPlan, changes: Sequence[PlanChange], team: Collection[str] | None
) -> tuple[TaskPlan, list[Refused]]:
    """Apply the valid changes, and return why the others are refused."""
    draft, used = plan, set(plan.by_id)
    refused: list[Refused] = []
    touched: dict[int | None, int] = {}  # which change rewired a step last
    for at, change in enumerate(changes):
        found = [Refused(at, refusal) for refusal in _refusals(draft, change, used, team)]
        refused += found
        if not found:
            draft = _carried_out(draft, change)
            used |= {change.step_id} if isinstance(change, AddStep) else set()
            touched[_rewired_step(change)] = at
    return draft, refused + list(_misfits(draft, touched))


def _rewired_step(change: PlanChange) -> int | None:
    """The step whose waits, or the waits for which, a change may alter."""
    match change:
        case AddStep() | RemoveStep():
            return change.step_id
        case ModifyStep() if not _WAITS.isdisjoint(change.fields):
            return change.step_id
        case _:
            return None


def _carried_out(plan: TaskPlan, change: PlanChange) -> TaskPlan:
    steps = plan.steps
    match change:
        case AddStep():
            new = normalised_step(change.step)
            steps = (*steps[: change.index], new, *steps[change.index :])
        case RemoveStep():
            steps = tuple(step for step in steps if step.id != change.step_id)
        case ModifyStep():
            old = plan.by_id.get(change.step_id)
            return plan if old is None else plan.with_steps(_modified(old, change))
        case ReorderSteps():
            steps = _reordered(steps, change.order)
        case ModifyPlan():
            return plan.replace(title=change.title)
    return plan.replace(steps=steps)


def unstarted(step: PlanStep) -> PlanStep:
    return step.replace(
        status=StepStatus.PENDING,
        result="",
        feedback="",
        actual_duration=None,
        retry_count=0,
    )


def _modified(step: PlanStep, change: ModifyStep) -> PlanStep:
    new = normalised_step(step.replace(**change.fields))
    if new == step or step.status is not StepStatus.FAILED:
        return new
    # A failed step that is changed is to be tried again, as if it had never run.
    return unstarted(new)


def _reordered(steps: Sequence[PlanStep], order: Sequence[int]) -> tuple[PlanStep, ...]:
    """Put the named steps into the named order; the others keep their places."""
    named = {step.id: step for step in steps if step.id in set(order)}
    following = iter([named[step_id] for step_id in order if step_id in named])
    return tuple(next(following) if step.id in named else step for step in steps)


def _refusals(
    draft: TaskPlan, change: PlanChange, used: Collection[int], team: Collection[str] | None
) -> Iterator[Refusal]:
    """Refuse a change, and explain how it would be possible."""
    if not draft.allow_dynamic_update:
        reason = "This plan must not change while it runs; only its steps' statuses do."
        step_id = None if isinstance(change, ReorderSteps | ModifyPlan) else change.step_id
        yield Refusal(code="not_allowed", step_id=step_id, reason=reason)
        return
    match change:
        case AddStep():
            if change.step_id in used:
                reason = f"The number {change.step_id} is taken. {_instead(used)}"
                yield Refusal(code="duplicate_step", step_id=change.step_id, reason=reason)
            yield from _of_specialists(change.step, team)
        case RemoveStep():
            yield from _of_open(draft, change.step_id, used)
        case ModifyStep():
            yield from _of_modification(draft, change, used, team)
        case ReorderSteps():
            yield from _of_order(draft, change.order)
        case ModifyPlan():
            return


def _of_modification(
    draft: TaskPlan, change: ModifyStep, used: Collection[int], team: Collection[str] | None
) -> Iterator[Refusal]:
    old = draft.by_id.get(change.step_id)
    new = old and old.replace(**change.fields)
    if new is None or normalised_step(new) != old:
        yield from _of_open(draft, change.step_id, used)
        if new is not None and change.fields.keys() & {"assigned_to", "joined_by"}:
            yield from _of_specialists(new, team)


def _of_order(draft: TaskPlan, order: Sequence[int]) -> Iterator[Refusal]:
    for each in sorted(set(order) - draft.by_id.keys()):
        yield _unknown(each, draft)
    for each in sorted(each for each, times in Counter(order).items() if times > 1):
        reason = f"The order has step {each} twice. Name each step once."
        yield Refusal(code="duplicate_step", step_id=each, reason=reason)


def _instead(used: Collection[int]) -> str:
    return f"Add a new step; the next free number is {max(used, default=0) + 1}."


def _of_open(draft: TaskPlan, step_id: int, used: Collection[int]) -> Iterator[Refusal]:
    step = draft.by_id.get(step_id)
    if step is None:
        yield _unknown(step_id, draft)
    elif step.is_finished:
        reason = f"Step {step_id} is {step.status} and cannot change. {_instead(used)}"
        yield Refusal(code="finished_step", step_id=step_id, reason=reason)


def _of_specialists(step: PlanStep, team: Collection[str] | None) -> Iterator[Refusal]:
    for name in step.specialists:
        if team is not None and name not in team:
            known = ", ".join(sorted(team)) or "nobody"
            reason = f"Nobody is called '{name}' (step {step.id}). The team is: {known}."
            yield Refusal(code="unknown_specialist", step_id=step.id, reason=reason)


def _misfits(draft: TaskPlan, touched: Mapping[int | None, int]) -> Iterator[Refused]:
    """Yield what is wrong with the steps after the changes, each with the change to blame."""
    for found in misfits(draft.steps):
        blamed = [touched[each] for each in found.cycle or found[:2] if each in touched]
        if blamed:
            reason = f"{found.reason} {found.fix}"
            refusal = Refusal(code=found.code, step_id=found.step, reason=reason)
            yield Refused(max(blamed) if found.cycle else blamed[0], refusal)


def _unknown(step_id: int, draft: TaskPlan) -> Refusal:
    known = ", ".join(map(str, sorted(draft.by_id))) or "none"
    reason = f"This plan has no step {step_id}. Use one of: {known}."
    return Refusal(code="unknown_step", step_id=step_id, reason=reason)
