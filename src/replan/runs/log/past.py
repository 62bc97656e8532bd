"""What a run did before this process, from its records."""

from collections.abc import Sequence
from datetime import datetime

from replan.events.types import Event, PlanUpdated, SpecialistCompleted
from replan.plan.model import TaskPlan
from replan.ports.journal import Journal
from replan.runs.log.plan_so_far import PlanSoFar
from replan.state.enhanced import EnhancedState, plan_of, with_history
from replan.state.results import SpecialistResult
from replan.steps.on_record import OnRecord


async def results_on_record(state: EnhancedState, journal: Journal) -> list[SpecialistResult]:
    """The results that belong to the plan as it is, whether or not the state has them already."""
    plan = plan_of(state)
    rows = await journal.results(state.get("run_id", ""))
    settled = plan.by_id.keys() - {step.id for step in plan.open_steps()}
    finished = {
        key: result
        for key, result in state.get("current_specialist_results", {}).items()
        if result.step_id in settled
    }
    return [*{**finished, **OnRecord.of(state, rows).known}.values()]


def past_events(state: EnhancedState, results: Sequence[SpecialistResult]) -> list[Event]:
    """What is known about a run, as the events that would have said so."""
    plan, run_id = state.get("current_plan"), state.get("run_id", "")
    if plan is None:
        return []
    whole = with_history(plan, state)
    still_open = {step.id for step in plan.open_steps()}
    return [
        PlanUpdated(run_id=run_id, plan=whole, markdown=plan.content, by="rule"),
        *(
            SpecialistCompleted(
                run_id=run_id,
                step_id=result.step_id,
                specialist=result.specialist_name,
                result=result,
            )
            for result in results
            if result.step_id in still_open
        ),
    ]


def plan_as_it_is(
    state: EnhancedState, results: Sequence[SpecialistResult], at: datetime
) -> TaskPlan | None:
    """The plan with the marks of steps that finished since it was written, and its history."""
    so_far = PlanSoFar()
    for event in past_events(state, results):
        so_far.follow(event)
    return so_far.plan(at)
