"""The waits of steps that cannot be: for unknown steps, for the step itself, and in cycles."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from replan.plan.model import PlanStep
from replan.plan.order import closing_edges

_MOST_NAMES = 20


class Misfit(NamedTuple):
    """A wait that cannot be, and why; without those found the steps fit together."""

    step: int
    awaited: int
    code: str
    reason: str
    fix: str
    cycle: tuple[int, ...] = ()  # the steps that wait for each other, if that is the reason


def misfits(steps: Sequence[PlanStep], known: Collection[int] = ()) -> Iterator[Misfit]:
    """Find the waits that cannot be.

    Args:
        steps: The steps.
        known: Ids of further steps that they may wait for.
    """
    ids = {step.id for step in steps}
    shown = sorted(ids)[: _MOST_NAMES + 2]
    for step in steps:
        for other in step.awaits:
            if other == step.id:
                reason = f"Step {step.id} waits for itself."
                fix = "Name another step or none."
                yield Misfit(step.id, other, "self_dependency", reason, fix)
            elif other not in ids and other not in known:
                reason = f"Step {step.id} waits for step {other}, which this plan does not have."
                names = _listed([step_id for step_id in shown if step_id != step.id])
                fix = f"Use one of: {names or 'none'}."
                yield Misfit(step.id, other, "unknown_dependency", reason, fix)
    for (waiting, awaited), cycle in closing_edges(steps):
        if waiting != awaited:
            way = f"{_listed(cycle, ' -> ')} -> {cycle[0]}"
            reason = f"These steps wait for each other: {way}."
            yield Misfit(waiting, awaited, "cycle", reason, "Remove one of the waits.", cycle)


def _listed(ids: Sequence[int], between: str = ", ") -> str:
    more = ["..."] if len(ids) > _MOST_NAMES else []
    return between.join([*map(str, ids[:_MOST_NAMES]), *more])
