"""A changed plan as a patch, so that a round stores only its own steps.

A run writes its plan at least once a round. Written whole each time, a checkpoint's file would
grow with the square of the rounds. So nodes write a patch: the steps that differ, and the lines of
the document that differ. A person's edit in Studio, and the first plan of a run, are whole plans.
"""

import zlib
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, TypeVar, cast

from langgraph.errors import InvalidUpdateError
from pydantic import Field, field_validator

from replan.plan.model import PlanStep, TaskPlan, Value
from replan.state.channels import CheckedDelta, checked, stored

T = TypeVar("T")

_PATCHED_APART = frozenset({"content", "steps"})


class LineSplice(Value):
    """A text in place of the old document's lines from `start` up to `stop`, counted from 0."""

    start: int = Field(ge=0)
    stop: int = Field(ge=0)
    text: str


class OrderSplice(Value):
    """The steps of these ids in place of the old plan's from index `start` up to `stop`."""

    start: int = Field(ge=0)
    stop: int = Field(ge=0)
    ids: tuple[int, ...]


class PlanPatch(Value):
    base: int  # the checksum of the document that it belongs to; it is refused for any other
    lines: tuple[LineSplice, ...] = ()  # what changes in the document, from top to bottom
    # What changes in the order of the steps, from first to last.
    order: tuple[OrderSplice, ...] = ()
    steps: tuple[PlanStep, ...] = ()  # the steps that are new or changed, whole
    fields: dict[str, Any] = Field(default_factory=dict)  # the plan's other fields that changed

    @field_validator("fields")
    @classmethod
    def _are_of_a_plan(cls, fields: dict[str, Any]) -> dict[str, Any]:
        if unknown := sorted(fields.keys() - TaskPlan.model_fields.keys()):
            raise ValueError(f"a plan has no {', '.join(unknown)}")
        return fields

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Tell readers of LangGraph's `updates` where the plan itself is."""
            if name not in TaskPlan.model_fields:
                return super().__getattr__(name)
            raise AttributeError(
                f"This is what changed of the plan, which has no '{name}'. The whole plan is in "
                "the state (stream_mode='values', aget_state) and in the event plan_updated."
            )

    def applied_to(self, plan: TaskPlan) -> TaskPlan:
        """Return the plan after the patch; raise ValueError if it does not fit."""
        if _checksum(plan.content) != self.base:
            raise ValueError("it belongs to a document other than the one that is there")
        if stray := sorted(_PATCHED_APART & set(self.fields)):
            raise ValueError(f"it changes {', '.join(stray)} as a whole")
        lines = plan.content.splitlines(keepends=True)
        _splice(lines, [(each.start, each.stop, [each.text]) for each in self.lines])
        order = list(plan.by_id)
        _splice(order, [(each.start, each.stop, each.ids) for each in self.order])
        known = {**plan.by_id, **{step.id: step for step in self.steps}}
        if len(set(order)) < len(order) or not {step.id for step in self.steps} <= set(order):
            raise ValueError("a step has no place, or two")
        if unknown := [step_id for step_id in order if step_id not in known]:
            raise ValueError(f"there is no step {unknown[0]}")
        return plan.replace(
            **self.fields,
            steps=tuple(known[step_id] for step_id in order),
            content="".join(lines),
        )


class PlanChannel(CheckedDelta):
    """The plan: takes a whole plan, none, or a patch of the plan that is there."""

    __slots__ = ()

    def size(self) -> int:
        """The number of steps: a snapshot has them all."""
        return self.value.total_steps if isinstance(self.value, TaskPlan) else 0

    def written(self, value: Any, *, is_stored: bool = False) -> Any:
        """Apply one write; a server returns a patch as a plain dict."""
        if isinstance(value, dict) and "base" in value:
            return (stored if is_stored else checked)(self.key, PlanPatch, value)
        return (
            value if isinstance(value, PlanPatch) else super().written(value, is_stored=is_stored)
        )


def plan_write(old: TaskPlan | None, new: TaskPlan) -> TaskPlan:
    """Return the patch that a node writes, typed as the plan that it makes: a key has one type."""
    if old is None or not (_has_ids_of_its_own(old) and _has_ids_of_its_own(new)):
        return new
    return cast("TaskPlan", patch_between(old, new))


def patch_between(old: TaskPlan, new: TaskPlan) -> PlanPatch:
    """Return the patch that turns one plan into the other; the ids of each are all different."""
    before = old.content.splitlines(keepends=True)
    after = new.content.splitlines(keepends=True)
    known = old.by_id
    return PlanPatch(
        base=_checksum(old.content),
        lines=tuple(
            LineSplice(start=start, stop=stop, text="".join(lines))
            for start, stop, lines in _differences(before, after)
        ),
        order=tuple(
            OrderSplice(start=start, stop=stop, ids=tuple(ids))
            for start, stop, ids in _differences(list(known), list(new.by_id))
        ),
        steps=tuple(step for step in new.steps if not _same(known.get(step.id), step)),
        fields={
            name: value
            for name, value in new
            if name not in _PATCHED_APART and not _same(getattr(old, name), value)
        },
    )


def patched(state: TaskPlan | None, writes: Sequence[Any]) -> TaskPlan | None:
    """Reduce to the last whole plan with the patches that came after it."""
    for write in writes:
        state = _patched(state, write) if isinstance(write, PlanPatch) else write
    return state


def _patched(plan: TaskPlan | None, patch: PlanPatch) -> TaskPlan:
    problem = "State key 'current_plan' cannot take this patch"
    if plan is None:
        raise InvalidUpdateError(f"{problem}: there is no plan.")
    try:
        return patch.applied_to(plan)
    except ValueError as error:
        raise InvalidUpdateError(f"{problem}: {error}") from error


def _checksum(content: str) -> int:
    # A store writes half of a surrogate pair as `?`; the patch must fit there, too.
    return zlib.crc32(content.encode(errors="replace"))


def _has_ids_of_its_own(plan: TaskPlan) -> bool:
    return len(plan.by_id) == plan.total_steps


def _same(old: object, new: object) -> bool:
    """Whether two values are the same to the last: 1, 1.0 and True are equal, but not the same."""
    return old is new or (old == new and repr(old) == repr(new))


def _splice(items: list[T], splices: Sequence[tuple[int, int, Sequence[T]]]) -> None:
    """Exchange parts of a list, which must lie one after another."""
    edges = [edge for start, stop, _ in splices for edge in (start, stop)]
    if edges != sorted(edges) or (edges and edges[-1] > len(items)):
        raise ValueError("its parts overlap or lie outside")
    for start, stop, parts in reversed(splices):
        items[start:stop] = parts


def _differences(before: Sequence[T], after: Sequence[T]) -> Iterator[tuple[int, int, Sequence[T]]]:
    """The difference between `before` and `after`, without their common beginning and end."""
    shortest = min(len(before), len(after))
    head = next((at for at in range(shortest) if before[at] != after[at]), shortest)
    rest = range(shortest - head)
    tail = next((at for at in rest if before[-1 - at] != after[-1 - at]), len(rest))
    matcher = SequenceMatcher(
        None,
        cast("Sequence[Any]", before[head : len(before) - tail]),
        cast("Sequence[Any]", after[head : len(after) - tail]),
    )
    for tag, start, stop, first, last in matcher.get_opcodes():
        if tag != "equal":
            yield head + start, head + stop, after[head + first : head + last]
