"""The plan of a run with all that is finished, also between two rounds and in another process."""

from collections.abc import Sequence
from datetime import datetime

from replan.events.types import (
    Event,
    PlanCreated,
    PlanUpdated,
    SpecialistCompleted,
    StepsInvalidated,
)
from replan.log.run_log import RunLog
from replan.nodes.result_collector import settle_round
from replan.plan.markdown.seal import sealed
from replan.plan.model import TaskPlan
from replan.state.enhanced import EnhancedState, plan_of
from replan.state.results import Assignment, ExecutionStatus, SpecialistResult
from replan.steps.on_record import OnRecord


class PlanSoFar:
    """The newest plan, and the work done since it was written."""

    def __init__(self, origin: str = "") -> None:
        self._plan: TaskPlan | None = None
        self._origin = origin  # the run that has the whole results of a handed-in plan
        self._results: dict[str, SpecialistResult] = {}

    def follow(self, event: Event) -> bool:
        """Take what an event says about the plan; return whether the plan itself is another now."""
        if isinstance(event, PlanCreated | PlanUpdated) and event.plan is not None:
            self._plan = event.plan
            is_open = {step.id for step in event.plan.open_steps()}
            # What one of several specialists has done well counts in a later round too.
            self._results = {
                key: result
                for key, result in self._results.items()
                if result.step_id in is_open and result.status is ExecutionStatus.SUCCESS
            }
            return True
        if isinstance(event, StepsInvalidated):
            again = {rerun.step for rerun in event.reruns}
            self._results = {
                key: result for key, result in self._results.items() if result.step_id not in again
            }
        if isinstance(event, SpecialistCompleted) and event.result is not None:
            self._results[event.result.key] = event.result
            self._origin = event.run_id
        return False

    def plan(self, at: datetime) -> TaskPlan | None:
        """The newest plan, sealed, with everything finished until now; None if there is none."""
        if self._plan is None:
            return None
        state: EnhancedState = {
            "current_round": 0,
            "current_specialist_results": {
                key: result.replace(round=0) for key, result in self._results.items()
            },
            "dispatched": [
                Assignment(step_id=step_id, specialist=name)
                for step_id, names in self._seats().items()
                for name in names
            ],
        }
        return sealed(settle_round(self._plan, state, at), self._origin)

    def _seats(self) -> dict[int, list[str]]:
        """The specialists of each step that has results: those who answered, and those named."""
        seats: dict[int, list[str]] = {}
        for result in self._results.values():
            seats.setdefault(result.step_id, []).append(result.specialist_name)
        steps = (self._plan or TaskPlan()).by_id
        for step_id, names in seats.items():
            known = {name.casefold() for name in names}
            named = steps[step_id].specialists if step_id in steps else ()
            names += [name for name in named if name.casefold() not in known]
        return {step_id: names for step_id, names in seats.items() if step_id in steps}


async def results_on_record(state: EnhancedState, log: RunLog) -> list[SpecialistResult]:
    """The results that belong to the plan as it is, whether or not the state has them already."""
    plan = plan_of(state)
    rows = await log.results(state.get("run_id", ""))
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
    whole = plan.replace(update_history=tuple(state.get("plan_history", [])))
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
