"""The changes of a plan: the difference between two plans, and how it changes the steps."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import Field, JsonValue, field_validator

from replan.base.values import Value, same
from replan.plan.markdown.rendering import normalised_step
from replan.plan.model import PlanStep, PlanUpdateType, StepStatus, TaskPlan
from replan.plan.option_table import STRUCTURAL


class Addition(Value):
    """A step that is added.

    Attributes:
        index: Its place among the steps as they then are; beyond the end means the end.
        step: The step; its id is one that the plan does not have.
    """

    index: int = Field(ge=0)
    step: PlanStep


class PlanChanges(Value):
    """What changes in a plan; as JSON (`record`) it is in the plan's history and in events.

    Steps are removed, then added, then modified, then put into another order.

    Attributes:
        added: The new steps.
        removed: The ids of steps that go.
        modified: By the id of a step, the new values, as JSON, of some of its fields.
        reordered: Ids in their new order; steps that it does not name keep their places.
        title: The new title of the plan; None if it stays.
    """

    added: tuple[Addition, ...] = ()
    removed: tuple[int, ...] = ()
    modified: dict[int, dict[str, JsonValue]] = Field(
        default_factory=dict[int, dict[str, JsonValue]]
    )
    reordered: tuple[int, ...] = ()
    title: str | None = None

    @field_validator("modified")
    @classmethod
    def _must_fit(
        cls, modified: dict[int, dict[str, JsonValue]]
    ) -> dict[int, dict[str, JsonValue]]:
        for fields in modified.values():
            if unknown := fields.keys() - set(STRUCTURAL):
                names = ", ".join(sorted(unknown))
                raise ValueError(f"not fields of a step that a revision may change: {names}")
            PlanStep.model_validate({"id": 1, "description": "", **fields})
        return modified

    def __bool__(self) -> bool:
        """Whether there is any change."""
        return bool(self.record)

    @property
    def record(self) -> dict[str, JsonValue]:
        """The changes as JSON, without what does not change."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @property
    def kind(self) -> PlanUpdateType:
        """The one kind of all changes; `modify_plan` if there are several."""
        (first, *others) = self.record or ("title",)
        return PlanUpdateType.MODIFY_PLAN if others else _KINDS[first]

    @property
    def fresh(self) -> dict[int, PlanStep]:
        """The added steps by id."""
        return {addition.step.id: addition.step for addition in self.added}

    def without(self, steps: Collection[int | None]) -> "PlanChanges":
        """Return the changes without those of some steps; None stands for the plan's own."""
        has_own, fresh = None not in steps, self.fresh
        order = (
            step_id for step_id in self.reordered if step_id not in steps or step_id not in fresh
        )
        return PlanChanges(
            added=tuple(addition for addition in self.added if addition.step.id not in steps),
            removed=tuple(step_id for step_id in self.removed if step_id not in steps),
            modified={
                key: fields_of_step
                for key, fields_of_step in self.modified.items()
                if key not in steps
            },
            reordered=tuple(order) if has_own else (),
            title=self.title if has_own else None,
        )


_KINDS = {
    "added": PlanUpdateType.ADD_STEP,
    "removed": PlanUpdateType.REMOVE_STEP,
    "modified": PlanUpdateType.MODIFY_STEP,
    "reordered": PlanUpdateType.REORDER_STEPS,
    "title": PlanUpdateType.MODIFY_PLAN,
}


def compare(old: TaskPlan, new: TaskPlan) -> PlanChanges:
    """Find the changes that lead from one plan to another.

    Steps are matched by id, then by equal title: a new step with an id that the old plan does not
    have, and with the title of an old step that the new plan does not have, is that old step and
    keeps its id. Everything else is a removal and an addition.
    """
    return difference(old, aligned(old, new))


def difference(old: TaskPlan, new: TaskPlan) -> PlanChanges:
    """Find the changes between two plans whose steps are matched by id alone."""
    before, after = old.by_id, new.by_id
    order = [step.id for step in old.steps if step.id in after]
    added: list[Addition] = []
    modified: dict[int, dict[str, JsonValue]] = {}
    for at, step in enumerate(new.steps):
        if step.id not in before:
            added.append(Addition(index=at, step=step))
            order.insert(at, step.id)
        elif fields := _changed_fields(before[step.id], step):
            modified[step.id] = fields
    return PlanChanges(
        added=tuple(added),
        removed=tuple(step.id for step in old.steps if step.id not in after),
        modified=modified,
        reordered=() if order == [*after] else tuple(after),
        title=None if old.title == new.title else new.title,
    )


def changed(plan: TaskPlan, changes: PlanChanges) -> TaskPlan:
    """Make changes that are known to be possible, such as those of a history."""
    removed = set(changes.removed)
    steps = [step for step in plan.steps if step.id not in removed]
    for addition in changes.added:
        steps.insert(addition.index, normalised_step(addition.step))
    steps = [
        _modified(step, changes.modified[step.id]) if step.id in changes.modified else step
        for step in steps
    ]
    title = plan.title if changes.title is None else changes.title
    return plan.replace(steps=_reordered(steps, changes.reordered), title=title)


def unstarted(step: PlanStep, **more: Any) -> PlanStep:
    """Return a step as if it had never run, with `more` changes of its fields."""
    fresh = {"status": StepStatus.PENDING, "result": "", "feedback": ""}
    ran = {"actual_duration": None, "retry_count": 0}
    return step.model_copy(update={**fresh, **ran, **more})


def aligned(old: TaskPlan, new: TaskPlan) -> TaskPlan:
    """Return the new plan with the ids that its steps have in the old one; see `compare`."""
    before, after = old.by_id, new.by_id
    missing: dict[str, list[int]] = {}
    for step in old.steps:
        if step.id not in after:
            missing.setdefault(title_key(step), []).append(step.id)
    renamed: dict[int, int] = {}
    for step in new.steps:
        same = missing.get(title_key(step), [])
        if step.id not in before and same:
            renamed[step.id] = same.pop(0)
    return renumbered(new, renamed)


def renumbered(plan: TaskPlan, renamed: Mapping[int, int]) -> TaskPlan:
    """Return a plan in which some steps have other ids, in every reference to them, too."""
    steps = tuple(_renumbered(step, renamed) for step in plan.steps)
    return plan.replace(steps=steps) if renamed else plan


def title_key(step: PlanStep) -> str:
    """Return a description normalised for comparison: without case, extra blanks and marks."""
    return " ".join(step.description.casefold().replace("*", "").replace("`", "").split()).rstrip(
        ".:;。"
    )


def _changed_fields(old: PlanStep, new: PlanStep) -> dict[str, JsonValue]:
    before = old.model_dump(mode="json", include=set(STRUCTURAL))
    after = new.model_dump(mode="json", include=set(STRUCTURAL))
    return {name: after[name] for name in STRUCTURAL if not same(before[name], after[name])}


def _modified(step: PlanStep, fields: Mapping[str, JsonValue]) -> PlanStep:
    new = normalised_step(step.replace(**fields))
    if new == step or step.status is not StepStatus.FAILED:
        return new
    # A failed step that is changed is to be tried again, as if it had never run.
    return unstarted(new)


def _reordered(steps: Sequence[PlanStep], order: Sequence[int]) -> tuple[PlanStep, ...]:
    """Put the named steps into the named order; the others keep their places."""
    steps_by_id = {step.id: step for step in steps}
    named = {step_id: steps_by_id[step_id] for step_id in order if step_id in steps_by_id}
    following = iter(named.values())
    return tuple(next(following) if step.id in named else step for step in steps)


def _renumbered(step: PlanStep, renamed: Mapping[int, int]) -> PlanStep:
    condition = step.condition
    if condition is not None:
        condition = condition.replace(step=renamed.get(condition.step, condition.step))
    return step.replace(
        id=renamed.get(step.id, step.id),
        dependencies=tuple(renamed.get(other, other) for other in step.dependencies),
        condition=condition,
    )
