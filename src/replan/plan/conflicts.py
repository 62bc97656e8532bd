"""Steps that may write the same thing at the same time."""

from itertools import combinations
from posixpath import normpath

from replan.base.values import Value
from replan.plan.dependencies import blocked_steps, skippable_steps
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.order import waits_of


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
    writers: dict[str, dict[int, PlanStep]] = {}
    names: dict[str, str] = {}
    for step in plan.open_steps():
        for name in () if step.id in never else step.writes:
            writers.setdefault(normpath(name), {})[step.id] = step
            names.setdefault(normpath(name), name)
    places, ahead = waits_of(plan.open_steps()) if writers else ({}, {})
    conflicts: list[WriteConflict] = []
    for name, steps in writers.items():
        found: set[int] = set()
        for one, two in combinations(steps.values(), 2):
            waits = ahead[one.id] >> places[two.id] | ahead[two.id] >> places[one.id]
            if not (waits & 1 or _exclude_each_other(one, two)):
                found |= {one.id, two.id}
        if found:
            ids = tuple(step_id for step_id in steps if step_id in found)
            conflicts.append(WriteConflict(resource=names[name], steps=ids))
    return tuple(conflicts)


def _exclude_each_other(one: PlanStep, two: PlanStep) -> bool:
    return (
        one.condition is not None
        and two.condition is not None
        and one.condition.step == two.condition.step
        and one.condition.outcome != two.condition.outcome
    )
