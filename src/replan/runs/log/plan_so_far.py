"""The plan of a run with all that is finished, also between two rounds and in another process."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from replan.log.run_log import RunLog
from replan.nodes.result_collector import settle_round
from replan.plan.markdown.seal import sealed
from replan.plan.model import TaskPlan
from replan.specialists.steps.on_record import RecordedResults
from replan.state.enhanced import EnhancedState, plan_of
from replan.state.results import Assignment, SpecialistResult, newest_results


def with_results(
    plan: TaskPlan, results: Iterable[SpecialistResult], origin: str, at: datetime
) -> TaskPlan:
    """Return a plan, sealed, with the marks of its open steps that finished since it was written.

    `origin` is the run that has the whole results.
    """
    steps = {step.id: step for step in plan.open_steps()}
    new = {result.key: result.replace(round=0) for result in results if result.step_id in steps}
    # All that a step names have to answer, besides those who did.
    answered = {number: dict[str, str]() for number in steps}
    for result in new.values():
        answered[result.step_id][result.specialist_name.casefold()] = result.specialist_name
    seats = [
        Assignment(step_id=number, specialist=name)
        for number, names in answered.items()
        if names
        for name in (
            {specialist.casefold(): specialist for specialist in steps[number].specialists} | names
        ).values()
    ]
    state: EnhancedState = {
        "current_round": 0,
        "current_specialist_results": new,
        "dispatched": seats,
    }
    return sealed(settle_round(plan, state, at), origin)


async def results_on_record(state: EnhancedState, log: RunLog) -> list[SpecialistResult]:
    """The results that belong to the plan as it is, whether or not the state has them already."""
    plan = plan_of(state)
    rows = await log.results(state.get("run_id", ""))
    settled = plan.by_id.keys() - {step.id for step in plan.open_steps()}
    finished = {
        key: result for key, result in newest_results(state).items() if result.step_id in settled
    }
    return [*{**finished, **RecordedResults.of(state, rows).known}.values()]


def plan_as_it_is(
    state: EnhancedState, results: Sequence[SpecialistResult], at: datetime
) -> TaskPlan | None:
    """The plan with the marks of steps that finished since it was written, and its history."""
    plan = state.get("current_plan")
    if plan is None:
        return None
    whole = plan.replace(update_history=tuple(state.get("plan_history", [])))
    is_open = {step.id for step in plan.open_steps()}
    has_new = any(result.step_id in is_open for result in results)
    return with_results(whole, results, state.get("run_id", "") if has_new else "", at)
