"""Check that the steps of a document fit together, and make them fit."""

from collections.abc import Collection, Iterator, Sequence

from replan.plan.markdown.title import UnplacedMistake
from replan.plan.model import PlanStep
from replan.plan.order import closing_edges

Found = tuple[int, UnplacedMistake]
"""The id of a step, and what is wrong with it."""


def repair(steps: Sequence[PlanStep], known: Collection[int]) -> tuple[list[PlanStep], list[Found]]:
    """Drop invalid dependencies: on unknown steps, on the step itself, and in cycles."""
    ids = frozenset(step.id for step in steps)
    found: list[Found] = []
    sound: list[PlanStep] = []
    for step in steps:
        impossible = dict(_impossible_waits(step, ids, known))
        found += [(step.id, complaint) for complaint in impossible.values()]
        sound.append(_without(step, impossible))
    edges: dict[int, set[int]] = {}
    for (waiting, awaited), cycle in closing_edges(sound):
        edges.setdefault(waiting, set()).add(awaited)
        found.append((waiting, _cycle(cycle, awaited)))
    return [_without(step, edges.get(step.id, ())) for step in sound], found


def _impossible_waits(
    step: PlanStep, ids: frozenset[int], known: Collection[int]
) -> Iterator[tuple[int, UnplacedMistake]]:
    names = ""
    for other in step.awaits:
        about = str(other)
        if other == step.id:
            reason = f"Step {step.id} waits for itself."
            yield (
                other,
                UnplacedMistake("self_dependency", about, reason, "Name another step or none."),
            )
        elif other not in ids and other not in known:
            conditional = step.condition is not None and step.condition.step == other
            code = "unknown_condition" if conditional else "unknown_dependency"
            reason = f"Step {step.id} waits for step {other}, which this plan does not have."
            names = names or _names(ids - {step.id})
            yield other, UnplacedMistake(code, about, reason, f"Use one of: {names}.")


def _without(step: PlanStep, dropped: Collection[int]) -> PlanStep:
    if not dropped:
        return step
    kept = tuple(other for other in step.dependencies if other not in dropped)
    lost = step.condition is not None and step.condition.step in dropped
    return step.replace(dependencies=kept, condition=None if lost else step.condition)


def _cycle(cycle: tuple[int, ...], awaited: int) -> UnplacedMistake:
    shown = [*map(str, cycle[:_MOST_NAMES]), *(["..."] if len(cycle) > _MOST_NAMES else [])]
    reason = f"These steps wait for each other: {' -> '.join([*shown, str(cycle[0])])}."
    return UnplacedMistake("cycle", str(awaited), reason, "Remove one of the waits.")


_MOST_NAMES = 20


def _names(ids: Collection[int]) -> str:
    shown = sorted(ids)
    more = ", ..." if len(shown) > _MOST_NAMES else ""
    return ", ".join(str(step_id) for step_id in shown[:_MOST_NAMES]) + more or "none"
