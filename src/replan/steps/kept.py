"""The whole results of steps in a handed-in document, if the earlier run is known."""

from collections.abc import Iterable

from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.statuses import excerpt
from replan.ports.journal import Journal
from replan.state.enhanced import EnhancedState
from replan.state.results import SpecialistResult
from replan.steps.outcomes import joined_texts, own_results
from replan.values import restored

KEPT = "kept/"  # the prefix of notes that hold results of an earlier run; their key follows


async def kept_results(
    plan: TaskPlan, origin: str, state: EnhancedState, journal: Journal
) -> dict[str, SpecialistResult]:
    """Find the whole results of which a document has excerpts."""
    # The document counts: a result that a person has changed in it is theirs.
    steps = [s for s in plan.steps if s.status is StepStatus.COMPLETED and s.is_cut]
    if not origin or not steps:
        return {}
    noted = await journal.notes(origin, KEPT)
    known: list[SpecialistResult] = [restored(SpecialistResult, value) for value in noted.values()]
    known += (await journal.results(origin)).values()
    if state.get("run_id") == origin:
        known += state.get("kept_results", {}).values()
        known += state.get("current_specialist_results", {}).values()
    found = [result for step in steps for result in _results_of(step, known)]
    return {result.key: result.replace(round=0, made_of=None) for result in found}


async def note_kept(run_id: str, kept: Iterable[SpecialistResult], journal: Journal) -> None:
    """Record the results that a run took over, for runs of the documents that it writes."""
    for result in kept:
        await journal.note(run_id, KEPT + result.key, result.model_dump(mode="json"))


def _results_of(step: PlanStep, known: Iterable[SpecialistResult]) -> list[SpecialistResult]:
    """The newest results of a step, if their text is the one of which the step has an excerpt."""
    newest: dict[str, SpecialistResult] = {}
    for result in known:
        before = newest.get(result.key)
        if result.step_id == step.id and (before is None or before.round <= result.round):
            newest[result.key] = result
    results = own_results(step, newest.values())
    is_same = excerpt(joined_texts(results)).split() == step.result.split()
    return results if is_same else []
