"""Apply changes to the steps of a plan, and find those that are impossible."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
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
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.order import closing_edges

WAITS = ("dependencies", "condition")
"""The fields of a step that define what it waits for."""


class Refused(NamedTuple):
    """A refusal, and the index of the change that caused it."""

    change: int
    refusal: Refusal


@dataclass(slots=True)
class Draft:
    """Steps and title of a plan while changes are applied to them."""

    steps: list[PlanStep]
    title: str

    def place(self, step_id: int) -> int | None:
        return next((at for at, step in enumerate(self.steps) if step.id == step_id), None)


def carry_out(plan: TaskPlan, changes: Sequence[PlanChange]) -> Draft:
    """Apply changes that are known to be possible, such as those of a history."""
    draft = Draft(list(plan.steps), plan.title)
    for change in changes:
        _carry_out_one(draft, change)
    return draft


def try_changes(
    plan: TaskPlan, changes: Sequence[PlanChange], team: Collection[str] | None
) -> tuple[Draft, list[Refused]]:
    """Apply the valid changes, and return why the others are refused."""
    draft = Draft(list(plan.steps), plan.title)
    refused: list[Refused] = []
    touched: dict[int, int] = {}
    refuser = _Refuser(plan, team)
    for at, change in enumerate(changes):
        found = [Refused(at, refusal) for refusal in refuser.refusals(draft, change)]
        refused += found
        if not found:
            _carry_out_one(draft, change)
            refuser.note(change)
            touched.update(dict.fromkeys(_rewired_steps(change), at))
    return draft, refused + list(_misfits(draft, touched, refuser))


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


def _carry_out_one(draft: Draft, change: PlanChange) -> None:
    match change:
        case AddStep():
            draft.steps.insert(change.index, normalised_step(change.step))
        case RemoveStep():
            draft.steps = [step for step in draft.steps if step.id != change.step_id]
        case ModifyStep():
            at = draft.place(change.step_id)
            if at is not None:
                draft.steps[at] = _modified(draft.steps[at], change)
        case ReorderSteps():
            draft.steps = _reordered(draft.steps, change.order)
        case ModifyPlan():
            draft.title = change.title


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


def _reordered(steps: Sequence[PlanStep], order: Sequence[int]) -> list[PlanStep]:
    """Put the named steps into the named order; the others keep their places."""
    named = {step.id: step for step in steps if step.id in set(order)}
    following = iter([named[step_id] for step_id in order if step_id in named])
    return [next(following) if step.id in named else step for step in steps]


class _Refuser:
    """Refuses a change, and explains how it would be possible."""

    def __init__(self, plan: TaskPlan, team: Collection[str] | None) -> None:
        self._plan = plan
        self._team = team
        self._used = {step.id for step in plan.steps}

    def note(self, change: PlanChange) -> None:
        if isinstance(change, AddStep):
            self._used.add(change.step.id)

    def refusals(self, draft: Draft, change: PlanChange) -> Iterator[Refusal]:
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

    def unknown(self, step: PlanStep, others: Collection[int]) -> Iterator[Refusal]:
        for other in step.awaits:
            if other == step.id:
                reason = f"Step {step.id} cannot wait for itself. Name another step or none."
                yield Refusal(code="self_dependency", step_id=step.id, reason=reason)
            elif other not in others:
                reason = (
                    f"Step {step.id} waits for step {other}, which this plan does not have. "
                    f"Use one of: {_listed(set(others) - {step.id})}."
                )
                yield Refusal(code="unknown_dependency", step_id=step.id, reason=reason)

    def _of_addition(self, step: PlanStep) -> Iterator[Refusal]:
        if step.id in self._used:
            reason = f"The number {step.id} is taken. {self._next_number()}"
            yield Refusal(code="duplicate_step", step_id=step.id, reason=reason)
        yield from self._of_specialists(step.id, step.specialists)

    def _of_modification(self, draft: Draft, change: ModifyStep) -> Iterator[Refusal]:
        at = draft.place(change.step_id)
        if (
            at is not None
            and normalised_step(draft.steps[at].replace(**change.fields)) == draft.steps[at]
        ):
            return
        yield from self._of_open(draft, change.step_id)
        if at is not None and change.fields.keys() & {"assigned_to", "joined_by"}:
            step = draft.steps[at].replace(**change.fields)
            yield from self._of_specialists(step.id, step.specialists)

    def _of_open(self, draft: Draft, step_id: int) -> Iterator[Refusal]:
        at = draft.place(step_id)
        if at is None:
            reason = f"This plan has no step {step_id}. Use one of: {_listed(_ids(draft))}."
            yield Refusal(code="unknown_step", step_id=step_id, reason=reason)
        elif draft.steps[at].is_finished:
            status = draft.steps[at].status
            reason = f"Step {step_id} is {status} and cannot change. {self._next_number()}"
            yield Refusal(code="finished_step", step_id=step_id, reason=reason)

    def _of_specialists(self, step_id: int, names: Sequence[str]) -> Iterator[Refusal]:
        for name in names:
            if self._team is not None and name not in self._team:
                known = ", ".join(sorted(self._team)) or "nobody"
                reason = f"Nobody is called '{name}' (step {step_id}). The team is: {known}."
                yield Refusal(code="unknown_specialist", step_id=step_id, reason=reason)

    def _of_order(self, draft: Draft, order: Sequence[int]) -> Iterator[Refusal]:
        for step_id in sorted(set(order) - _ids(draft)):
            reason = f"This plan has no step {step_id}. Use one of: {_listed(_ids(draft))}."
            yield Refusal(code="unknown_step", step_id=step_id, reason=reason)
        for step_id in sorted(step_id for step_id, count in Counter(order).items() if count > 1):
            reason = f"The order has step {step_id} twice. Name each step once."
            yield Refusal(code="duplicate_step", step_id=step_id, reason=reason)

    def _next_number(self) -> str:
        return f"Add a new step; the next free number is {max(self._used, default=0) + 1}."


def _misfits(draft: Draft, touched: dict[int, int], refuser: _Refuser) -> Iterator[Refused]:
    """Yield what is wrong with the steps after the changes."""
    ids = _ids(draft)
    for step in draft.steps:
        for refusal in refuser.unknown(step, ids):
            missing = (
                touched[other] for other in step.awaits if other not in ids and other in touched
            )
            blamed = touched.get(step.id, next(missing, None))
            if blamed is not None:
                yield Refused(blamed, refusal)
    for _, cycle in closing_edges([step for step in draft.steps if step.id not in step.awaits]):
        blamed = max((touched[step_id] for step_id in cycle if step_id in touched), default=None)
        if blamed is not None:
            way = " -> ".join(str(step_id) for step_id in (*cycle, cycle[0]))
            reason = f"These steps would wait for each other: {way}. Remove one of the waits."
            yield Refused(blamed, Refusal(code="cycle", step_id=cycle[0], reason=reason))


def _ids(draft: Draft) -> set[int]:
    return {step.id for step in draft.steps}


def _listed(ids: Collection[int]) -> str:
    return ", ".join(str(step_id) for step_id in sorted(ids)) or "none"
