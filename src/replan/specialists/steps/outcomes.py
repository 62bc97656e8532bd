"""The outcome of a step, and its result for the steps that wait.

Steps of a document that was handed in have the whole results of the earlier run, if it is known.
"""

from collections.abc import Iterable, Mapping, Sequence

from replan.base.values import restored
from replan.log.run_log import RunLog
from replan.log.whole_results import whole_results
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.statuses import excerpt
from replan.state.enhanced import EnhancedState
from replan.state.results import ExecutionStatus, SpecialistResult, result_as_json


def status_of(results: Iterable[SpecialistResult]) -> StepStatus:
    """The status of a step from all its results: one success is enough."""
    succeeded = any(result.status is ExecutionStatus.SUCCESS for result in results)
    return StepStatus.COMPLETED if succeeded else StepStatus.FAILED


def settled(step: PlanStep, results: Sequence[SpecialistResult]) -> PlanStep:
    """The step with its outcome, from all specialists that it was sent to."""
    status = status_of(results)
    errors = "; ".join(result.error for result in results if result.error) or "only a part is done"
    return step.replace(
        status=status,
        result=excerpt(joined_texts(results)),
        feedback="" if status is StepStatus.COMPLETED else excerpt(errors),
        actual_duration=max(result.duration for result in results),
        retry_count=max(result.retry_count for result in results),
    )


def joined_texts(results: Iterable[SpecialistResult]) -> str:
    """The text of a step's results; those of several specialists are under their names."""
    with_text = [result for result in results if result.text]
    if len(with_text) == 1:
        return with_text[0].marked_text
    return "\n\n".join(
        f"### {result.specialist_name}\n\n{result.marked_text}" for result in with_text
    )


def own_results(step: PlanStep, results: Iterable[SpecialistResult]) -> list[SpecialistResult]:
    """The results of the specialists that a step names, in order; all if it names nobody."""
    if not step.specialists:
        return list(results)
    names = [name.strip().casefold() for name in step.specialists]
    named_results = (result for result in results if result.specialist_name.casefold() in names)
    return sorted(named_results, key=lambda result: names.index(result.specialist_name.casefold()))


def results_in(state: EnhancedState) -> dict[int, list[SpecialistResult]]:
    """The newest whole results in the state, including those of an earlier run, by step."""
    newest = {**state.get("carried_results", {}), **state.get("current_specialist_results", {})}
    by_step: dict[int, list[SpecialistResult]] = {}
    for result in newest.values():
        by_step.setdefault(result.step_id, []).append(result)
    return by_step


def inputs_of(
    step: PlanStep,
    awaited: Mapping[int, PlanStep],
    results: Mapping[int, Iterable[SpecialistResult]],
) -> dict[int, str]:
    """The inputs of a step from its dependencies: the same in every round."""
    texts = {
        step_id: _input_from(awaited[step_id], results.get(step_id, ()))
        for step_id in step.awaits
        if step_id in awaited
    }
    return {step_id: text for step_id, text in texts.items() if text}


def _input_from(step: PlanStep, results: Iterable[SpecialistResult]) -> str:
    """The whole result of a step, else the excerpt in the plan; a failure is not a result."""
    step_results = own_results(step, results)
    # If a person settled the step, the results are from earlier attempts.
    whole = joined_texts(step_results) if status_of(step_results) is step.status else ""
    return whole or step.result


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
        results += state.get("carried_results", {}).values()
        results += state.get("current_specialist_results", {}).values()
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
