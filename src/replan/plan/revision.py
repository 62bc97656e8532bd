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

WAITS = ("dependencies", "condition")
"""The fields of a step that define what it waits for."""


class Refused(NamedTuple):
    """A refusal, and the index of the change that caused it."""

    change: int
    refusal: Refusal


def carry_out(plan: TaskPlan, changes: Sequence[PlanChange]) -> TaskPlan:
    """Apply changes that are known to be possible, such as those of a history."""
    return reduce(_carried_out, changes, plan)


def try_changes(
    plan: TaskPlan, changes: Sequence[PlanChange], team: Collection[str] | None
) -> tuple[TaskPlan, list[Refused]]:
    """Apply the valid changes, and return why the others are refused."""
    draft = plan
    refused: list[Refused] = []
    touched: dict[int, int] = {}
    refuser = _Refuser(plan, team)
    for at, change in enumerate(changes):
        found = [Refused(at, refusal) for refusal in refuser.refusals(draft, change)]
        refused += found
        if not found:
            draft = _carried_out(draft, change)
            refuser.note(change)
            touched.update(dict.fromkeys(_rewired_steps(change), at))
    return draft, refused + list(_misfits(draft, touched))


def step_of(change: PlanChange) -> int | None:
    match change:
        case AddStep():
            return change.step.id
        case RemoveStep() | ModifyStep():
            return change.step_id
        case ReorderSteps() | ModifyPlan():
            return None


def _rewired_steps(change: PlanChange) -> Iterator[int]:
    """Yield the step whose waits, or those for which, a change may alter."""
    if isinstance(change, (AddStep, RemoveStep)) or (
        isinstance(change, ModifyStep) and change.fields.keys() & set(WAITS)
    ):
        step_id = step_of(change)
        yield from () if step_id is None else (step_id,)


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


class _Refuser:
    """Refuses a change, and explains how it would be possible."""

    def __init__(self, plan: TaskPlan, team: Collection[str] | None) -> None:
        self._plan = plan
        self._team = team
        self._used = {step.id for step in plan.steps}

    def note(self, change: PlanChange) -> None:
        if isinstance(change, AddStep):
            self._used.add(change.step.id)

    def refusals(self, draft: TaskPlan, change: PlanChange) -> Iterator[Refusal]:
        if not self._plan.allow_dynamic_update:
            reason = "This plan must not change while it runs; only its steps' statuses do."
            yield Refusal(code="not_allowed", step_id=step_of(change), reason=reason)
            return
        match change:
            case AddStep():
                yield from self._of_addition(change.step)
            case RemoveStep():
                yield from self._of_open(draft, change.step_id)
            case ModifyStep():
                yield from self._of_modification(draft, change)
            case ReorderSteps():
                yield from self._of_order(draft, change.order)
            case ModifyPlan():
                return

    def _of_addition(self, step: PlanStep) -> Iterator[Refusal]:
        if step.id in self._used:
            reason = f"The number {step.id} is taken. {self._next_number()}"
            yield Refusal(code="duplicate_step", step_id=step.id, reason=reason)
        yield from self._of_specialists(step.id, step.specialists)

    def _of_modification(self, draft: TaskPlan, change: ModifyStep) -> Iterator[Refusal]:
        old = draft.by_id.get(change.step_id)
        new = old and old.replace(**change.fields)
        if new is not None and normalised_step(new) == old:
            return
        yield from self._of_open(draft, change.step_id)
        if new is not None and change.fields.keys() & {"assigned_to", "joined_by"}:
            yield from self._of_specialists(new.id, new.specialists)

    def _of_open(self, draft: TaskPlan, step_id: int) -> Iterator[Refusal]:
        step = draft.by_id.get(step_id)
        if step is None:
            yield _unknown(step_id, draft)
        elif step.is_finished:
            reason = f"Step {step_id} is {step.status} and cannot change. {self._next_number()}"
            yield Refusal(code="finished_step", step_id=step_id, reason=reason)

    def _of_specialists(self, step_id: int, names: Sequence[str]) -> Iterator[Refusal]:
        for name in names:
            if self._team is not None and name not in self._team:
                known = ", ".join(sorted(self._team)) or "nobody"
                reason = f"Nobody is called '{name}' (step {step_id}). The team is: {known}."
                yield Refusal(code="unknown_specialist", step_id=step_id, reason=reason)

    def _of_order(self, draft: TaskPlan, order: Sequence[int]) -> Iterator[Refusal]:
        for step_id in sorted(set(order) - draft.by_id.keys()):
            yield _unknown(step_id, draft)
        for step_id in sorted(step_id for step_id, count in Counter(order).items() if count > 1):
            reason = f"The order has step {step_id} twice. Name each step once."
            yield Refusal(code="duplicate_step", step_id=step_id, reason=reason)

    def _next_number(self) -> str:
        return f"Add a new step; the next free number is {max(self._used, default=0) + 1}."


def _misfits(draft: TaskPlan, touched: Mapping[int, int]) -> Iterator[Refused]:
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
