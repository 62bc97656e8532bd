"""The whole results of an earlier run, for the steps of a document that it handed in."""

from collections.abc import Iterable

from replan.base.values import restored
from replan.log.run_log import RunLog
from replan.log.whole_results import whole_results
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.statuses import excerpt
from replan.state.enhanced import EnhancedState
from replan.state.results import (
    SpecialistResult,
    joined_texts,
    known_results,
    own_results,
    result_as_json,
)

KEPT = "kept/"  # the prefix of notes that hold results of an earlier run; their key follows


TENANT = "tenant"
"""The key of the note that says whose run it is."""


async def carried_results(
    plan: TaskPlan, origin: str, tenant: str, state: EnhancedState, log: RunLog
) -> dict[str, SpecialistResult]:
    """Find the whole results of which a document has excerpts.

    Args:
        plan: The plan of the document.
        origin: The run that the document names: anybody may write any name.
        tenant: Whose run asks; for one of a tenant, another's run looks as if it did not exist.
        state: The state of the thread.
        log: The log of all runs.
    """
    # The document counts: a result that a person has changed in it is theirs.
    steps = [s for s in plan.steps if s.status is StepStatus.COMPLETED and s.is_cut]
    if not origin or not steps:
        return {}
    if tenant and (await log.notes(origin, TENANT)).get(TENANT) != tenant:
        return {}
    noted = await log.notes(origin, KEPT)
    results: list[SpecialistResult] = [
        restored(SpecialistResult, value) for value in noted.values()
    ]
    results += (await log.results(origin)).values()
    if state.get("run_id") == origin:
        state = await whole_results(state, log)
        results += known_results(state).values()
    carried = [result for step in steps for result in _results_of(step, results)]
    return {
        result.key: result.replace(round=0, made_of=None, log_key=KEPT + result.key)
        for result in carried
    }


async def note_kept(run_id: str, kept: Iterable[SpecialistResult], log: RunLog) -> None:
    """Record the results that a run took over, for runs of the documents that it writes."""
    for result in kept:
        await log.note(run_id, KEPT + result.key, result_as_json(result.replace(log_key="")))


def _results_of(step: PlanStep, candidates: Iterable[SpecialistResult]) -> list[SpecialistResult]:
    """The newest results of a step, if their text is the one of which the step has an excerpt."""
    newest: dict[str, SpecialistResult] = {}
    for result in candidates:
        before = newest.get(result.key)
        if result.step_id == step.id and (before is None or before.round <= result.round):
            newest[result.key] = result
    results = own_results(step, newest.values())
    is_same = excerpt(joined_texts(results)).split() == step.result.split()
    return results if is_same else []
