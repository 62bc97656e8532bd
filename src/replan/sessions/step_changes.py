"""What the steps of a turn change in the project state of its session."""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from replan.base.values import same
from replan.plan.order import waits_of
from replan.runs.travel.portable import PortableRun
from replan.state.enhanced import EnhancedState, plan_of
from replan.state.results import SpecialistResult, newest_results
from replan.state.session.session import OWN_NAMES


def step_changes(
    state: EnhancedState, before: PortableRun | None
) -> tuple[dict[str, JsonValue], list[str]]:
    """The changes that the steps of a turn make, by names, and warnings about overwritten ones.

    They count in the order in which steps run: by round, then as their dependencies demand, then as
    the plan has them. A step that was done in an earlier turn has changed the session there.

    Args:
        state: The state of the run after the turn.
        before: The run that the turn continued, or None.
    """
    found = newest_results(state).values()
    done = [result for result in found if result.project_state and not result.is_failed]
    new = [result for result in done if not _is_recorded(result, before)]
    if not new:
        return {}, []
    waits = places, _ = waits_of(plan_of(state).steps)
    new.sort(
        key=lambda result: (result.round, places.get(result.step_id, -1), result.specialist_name)
    )
    changes: dict[str, JsonValue] = {}
    writers: dict[str, SpecialistResult] = {}
    warnings: list[str] = []
    for result in new:
        for name, value in result.project_state.items():
            if name in OWN_NAMES:
                continue
            other = writers.get(name)
            if other and not same(changes[name], value) and _are_parallel(waits, other, result):
                warnings.append(
                    f"Steps {other.step_id} and {result.step_id} both changed {name!r} in the "
                    f"project state. The value of step {result.step_id} counts."
                )
            changes[name], writers[name] = value, result
    return changes, warnings


def with_changes(
    project_state: Mapping[str, JsonValue], changes: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """A project state after changes; None removes an entry."""
    after = {**project_state, **changes}
    return {
        name: value for name, value in after.items() if value is not None or name not in changes
    }


def _is_recorded(result: SpecialistResult, run: PortableRun | None) -> bool:
    if run is None:
        return False
    results = newest_results(run.state)
    earlier: Iterable[SpecialistResult] = (*run.rows.results.values(), *results.values())
    return any(_same_work(other_result, result) for other_result in earlier)


def _same_work(one: SpecialistResult, two: SpecialistResult) -> bool:
    """Whether two results are one, of which a recalled one has another round and no usage."""
    fields = ("key", "text", "made_of", "duration", "retry_count", "project_state")
    return all(getattr(one, name) == getattr(two, name) for name in fields)


def _are_parallel(
    waits: tuple[Mapping[int, int], Mapping[int, int]], one: SpecialistResult, two: SpecialistResult
) -> bool:
    """Whether two results are of one round, and neither step waited for the other."""
    places, ahead = waits
    ids = ((one.step_id, two.step_id), (two.step_id, one.step_id))
    nowhere = len(places)
    is_ordered = any(ahead.get(a, 0) >> places.get(b, nowhere) & 1 for a, b in ids)
    return one.round == two.round and not is_ordered
