"""The changes of a plan, and the difference between two plans."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, TypeAdapter, field_validator

from replan.base.values import same
from replan.plan.model import PlanStep, PlanUpdateType, TaskPlan, Value
from replan.plan.option_table import STRUCTURAL


class AddStep(Value):
    """Add a step.

    Attributes:
        step: The step; its id is one that the plan does not have.
        index: Its place among the steps as they then are; beyond the end means the end.
    """

    kind: Literal["add_step"] = "add_step"
    step: PlanStep
    index: int = Field(ge=0)

    @property
    def step_id(self) -> int:
        """The step's id."""
        return self.step.id


class RemoveStep(Value):
    """Remove a step that is not finished."""

    kind: Literal["remove_step"] = "remove_step"
    step_id: int


class ModifyStep(Value):
    """Change fields of a step that is not finished.

    Attributes:
        step_id: The step.
        fields: The new values, as JSON, of some of the `STRUCTURAL` fields.
    """

    kind: Literal["modify_step"] = "modify_step"
    step_id: int
    fields: dict[str, JsonValue]

    @field_validator("fields")
    @classmethod
    def _must_fit(cls, fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
        unknown = fields.keys() - set(STRUCTURAL)
        if unknown:
            names = ", ".join(sorted(unknown))
            raise ValueError(f"not fields of a step that a revision may change: {names}")
        PlanStep.model_validate({"id": 1, "description": "", **fields})
        return fields


class ReorderSteps(Value):
    """Put steps into another order.

    Attributes:
        order: Their ids; steps that it does not name keep their places.
    """

    kind: Literal["reorder_steps"] = "reorder_steps"
    order: tuple[int, ...]


class ModifyPlan(Value):
    """Change the plan's title."""

    kind: Literal["modify_plan"] = "modify_plan"
    title: str


PlanChange = Annotated[
    AddStep | RemoveStep | ModifyStep | ReorderSteps | ModifyPlan, Field(discriminator="kind")
]
"""One change of a plan; in JSON, `kind` distinguishes the kinds."""


def compare(old: TaskPlan, new: TaskPlan) -> tuple[PlanChange, ...]:
    """Find the changes that lead from one plan to another.

    Steps are matched by id, then by equal title: a new step with an id that the old plan does not
    have, and with the title of an old step that the new plan does not have, is that old step and
    keeps its id. Everything else is a removal and an addition.
    """
    return difference(old, aligned(old, new))


def difference(old: TaskPlan, new: TaskPlan) -> tuple[PlanChange, ...]:
    """Find the changes between two plans whose steps are matched by id alone."""
    before, after = old.by_id, new.by_id
    order = [step.id for step in old.steps if step.id in after]
    changes: list[PlanChange] = [
        RemoveStep(step_id=step.id) for step in old.steps if step.id not in after
    ]
    for at, step in enumerate(new.steps):
        if step.id not in before:
            changes.append(AddStep(step=step, index=at))
            order.insert(at, step.id)
    for step in new.steps:
        fields = _changed_fields(before[step.id], step) if step.id in before else {}
        if fields:
            changes.append(ModifyStep(step_id=step.id, fields=fields))
    wanted = [step.id for step in new.steps]
    if order != wanted:
        changes.append(ReorderSteps(order=tuple(wanted)))
    if old.title != new.title:
        changes.append(ModifyPlan(title=new.title))
    return tuple(changes)


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


def update_type(changes: Sequence[PlanChange]) -> PlanUpdateType:
    """Derive the kind of a revision: the one kind of its changes, else `modify_plan`."""
    kinds = {change.kind for change in changes}
    return PlanUpdateType(kinds.pop()) if len(kinds) == 1 else PlanUpdateType.MODIFY_PLAN


def to_record(changes: Sequence[PlanChange]) -> dict[str, JsonValue]:
    """Write changes as `difference` gives them into the JSON mapping of a history."""
    record: dict[str, Any] = {"added": [], "removed": [], "modified": {}}
    for change in changes:
        match change:
            case AddStep():
                step = change.step.model_dump(mode="json", exclude_defaults=True)
                record["added"].append({"index": change.index, "step": step})
            case RemoveStep():
                record["removed"].append(change.step_id)
            case ModifyStep():
                record["modified"][str(change.step_id)] = change.fields
            case ReorderSteps():
                record["reordered"] = list(change.order)
            case ModifyPlan():
                record["title"] = change.title
    return {key: value for key, value in record.items() if value or key == "title"}


def from_record(record: Mapping[str, Any]) -> tuple[PlanChange, ...]:
    modified: dict[str, Any] = record.get("modified", {})
    found: list[dict[str, Any]] = [
        *({"kind": "remove_step", "step_id": each} for each in record.get("removed", ())),
        *({"kind": "add_step", **each} for each in record.get("added", ())),
        *({"kind": "modify_step", "step_id": key, "fields": modified[key]} for key in modified),
    ]
    if "reordered" in record:
        found.append({"kind": "reorder_steps", "order": record["reordered"]})
    if "title" in record:
        found.append({"kind": "modify_plan", "title": record["title"]})
    return tuple(_CHANGES.validate_python(found))


def _changed_fields(old: PlanStep, new: PlanStep) -> dict[str, JsonValue]:
    before = old.model_dump(mode="json", include=set(STRUCTURAL))
    after = new.model_dump(mode="json", include=set(STRUCTURAL))
    return {name: after[name] for name in STRUCTURAL if not same(before[name], after[name])}


def _renumbered(step: PlanStep, renamed: Mapping[int, int]) -> PlanStep:
    condition = step.condition
    if condition is not None:
        condition = condition.replace(step=renamed.get(condition.step, condition.step))
    return step.replace(
        id=renamed.get(step.id, step.id),
        dependencies=tuple(renamed.get(other, other) for other in step.dependencies),
        condition=condition,
    )


_CHANGES: TypeAdapter[list[PlanChange]] = TypeAdapter(list[PlanChange])
