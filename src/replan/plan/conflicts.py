"""Steps that may write the same thing at the same time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from posixpath import normpath

from replan.plan.dependencies import blocked_steps, skippable_steps
from replan.plan.model import PlanStep, TaskPlan, Value
from replan.plan.order import run_order


class WriteConflict(Value):
    """One thing that several steps may write at the same time.

    Attributes:
        resource: What they write, as the first of them names it.
        steps: The steps; each may run at the same time as another one of them.
    """

    resource: str
    steps: tuple[int, ...]

    def __str__(self) -> str:
        return f"steps {', '.join(map(str, self.steps))} may write {self.resource} at the same time"


def write_conflicts(plan: TaskPlan) -> tuple[WriteConflict, ...]:
    """Find the things that are written by several open steps that do not wait for each other.

    Steps of which one runs if another step failed, and the other if it completed, never run both.
    Names are compared as paths: `./a.md` is `a.md`.

    Args:
        plan: A plan without cycles.
    """
    never = {step.id for step in (*blocked_steps(plan), *skippable_steps(plan))}
    writers: dict[str, list[PlanStep]] = {}
    names: dict[str, str] = {}
    for step in plan.open_steps():
        for name in dict.fromkeys(map(normpath, () if step.id in never else step.writes)):
            writers.setdefault(name, []).append(step)
            names.setdefault(name, next(each for each in step.writes if normpath(each) == name))
    shared = {name: steps for name, steps in writers.items() if len(steps) > 1}
    order = _Order.of(plan) if shared else None
    found = ((name, _at_same_time(steps, order)) for name, steps in shared.items() if order)
    return tuple(WriteConflict(resource=names[name], steps=ids) for name, ids in found if ids)


@dataclass(frozen=True, slots=True)
class _Order:
    """Which open steps wait for which others, directly or not."""

    places: Mapping[int, int]  # a place for each step
    before: Mapping[int, int]  # the places of the steps that it waits for, as the bits of a number

    @classmethod
    def of(cls, plan: TaskPlan) -> "_Order":
        """Find the order of the open steps; settled steps block none."""
        ordered = run_order(tuple(plan.open_steps()))
        places = {step.id: at for at, step in enumerate(ordered)}
        before: dict[int, int] = {}
        for step in ordered:
            before[step.id] = 0
            for other in step.awaits:
                if other in places:
                    before[step.id] |= before[other] | 1 << places[other]
        return cls(places, before)

    def parts(self, one: PlanStep, two: PlanStep) -> bool:
        first, second = self.places[one.id], self.places[two.id]
        return bool((self.before[one.id] >> second | self.before[two.id] >> first) & 1)


def _at_same_time(steps: Sequence[PlanStep], order: _Order) -> tuple[int, ...]:
    """Return the steps that may run at the same time as another one of those given."""
    found: set[int] = set()
    for one, two in combinations(steps, 2):
        if not order.parts(one, two) and not _exclude_each_other(one, two):
            found |= {one.id, two.id}
    return tuple(step.id for step in steps if step.id in found)


def _exclude_each_other(one: PlanStep, two: PlanStep) -> bool:
    return (
        one.condition is not None
        and two.condition is not None
        and one.condition.step == two.condition.step
        and one.condition.outcome != two.condition.outcome
    )
