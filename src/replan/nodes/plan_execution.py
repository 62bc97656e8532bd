"""`plan_execution`: decide what this round sends, without a model."""

from collections.abc import Iterable, Sequence

from langgraph.runtime import Runtime

from replan.base.errors import InputError
from replan.log.events.emitter import Emitter
from replan.log.events.types import PlanUpdated, SpecialistCompleted, StepsInvalidated, StepsRouted
from replan.nodes.host.host_call import emitter_of
from replan.nodes.host.new_settings import with_new_settings
from replan.plan.changes import unstarted
from replan.plan.dependencies import blocked_steps
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.rerun import Rerun
from replan.plan.statuses import with_statuses
from replan.specialists.services import Services
from replan.specialists.steps.on_record import keys_in, stale_steps
from replan.specialists.steps.step_run import context_of
from replan.state.conversation.conversation import Seen
from replan.state.enhanced import EnhancedState, plan_of, rounds_of, settings_of, with_history
from replan.state.limits import RunSettings
from replan.state.results import (
    Assignment,
    ExecutionContext,
    ExecutionStatus,
    SpecialistResult,
    inputs_of,
    results_by_step,
    round_results,
)
from replan.state.rules import runnable_steps, waiting_steps, within_limit
from replan.state.team import SpecialistCard, seats_of


@with_new_settings
async def plan_execution(
    state: EnhancedState, runtime: Runtime[RunSettings], *, services: Services
) -> EnhancedState:
    """Choose the steps of the round and their specialists; a step that nobody can do fails."""
    plan = state.get("current_plan")
    if plan is None:
        raise InputError("There is no plan in the state. Put one into `current_plan`.")
    emitter = emitter_of(state, services, runtime)
    update: EnhancedState = {}
    if reruns := stale_steps(state):
        plan = _reopened(plan, reruns, services)
        update = {"current_plan": plan}
        state = {**state, "current_plan": plan}
        await _report_reopened(plan, reruns, state, emitter)
    waiting = waiting_steps(state)
    ready = tuple(step for step in runnable_steps(state) if step.id not in waiting)
    if state.get("current_round", 1) > rounds_of(state):
        # Only the answers to open questions are left to wait for.
        ready = ()
    steps = tuple(_steps_of_round(state, plan, ready))
    dispatched = _dispatched(steps, ready, services.team)
    chosen = _newly_chosen(steps, dispatched, state)
    if chosen:
        await emitter.emit(StepsRouted, assignments=chosen)
    failed = [_failed(assignment, state) for assignment in dispatched if assignment.refused]
    for result in failed:
        await emitter.emit(
            SpecialistCompleted,
            step_id=result.step_id,
            specialist=result.specialist_name,
            result=result,
        )
    update |= {
        "dispatched": dispatched,
        "current_execution": _leading_context(ready, state, services),
        "warnings": emitter.warnings,
    }
    results = _results_of_reopened(steps, state) | {result.key: result for result in failed}
    if results:
        update["current_specialist_results"] = results
    return update


def _reopened(plan: TaskPlan, reruns: Sequence[Rerun], services: Services) -> TaskPlan:
    again = [unstarted(plan.step(rerun.step)) for rerun in reruns]
    return with_statuses(plan, again, services.clock())


async def _report_reopened(
    plan: TaskPlan, reruns: tuple[Rerun, ...], state: EnhancedState, emitter: Emitter
) -> None:
    await emitter.emit(StepsInvalidated, reruns=reruns)
    whole = with_history(plan, state)
    await emitter.emit(PlanUpdated, plan=whole, markdown=plan.content, by="rule")


def _results_of_reopened(
    steps: Sequence[PlanStep], state: EnhancedState
) -> dict[str, SpecialistResult]:
    """The results of steps that a person reopened in this round, without a round."""
    opened = {step.id for step in steps}
    return {
        key: result.replace(round=0)
        for key, result in round_results(state).items()
        if result.step_id in opened
    }


def _dispatched(
    steps: Sequence[PlanStep], ready: Sequence[PlanStep], team: Sequence[SpecialistCard]
) -> list[Assignment]:
    """The assignments of a round; a step that nobody can do fails when its turn comes."""
    begins = {step.id for step in ready}
    return [
        Assignment(step_id=step.id, specialist=seat.specialist, refused=seat.refused)
        for step in steps
        for seat in seats_of(step, team)
        if step.id in begins or not seat.refused
    ]


def _newly_chosen(
    steps: Sequence[PlanStep], dispatched: Sequence[Assignment], state: EnhancedState
) -> dict[int, str]:
    """The specialists of steps that name nobody, without those that an earlier round reported."""
    unnamed = {step.id for step in steps if not step.specialists}
    reported = state.get("dispatched", [])
    return {
        assignment.step_id: assignment.specialist
        for assignment in dispatched
        if assignment.step_id in unnamed and not assignment.refused and assignment not in reported
    }


def _failed(refused: Assignment, state: EnhancedState) -> SpecialistResult:
    return SpecialistResult(
        specialist_name=refused.specialist,
        status=ExecutionStatus.FAILED,
        error=f"Nobody on the team can do this: the step {refused.refused}",
        step_id=refused.step_id,
        round=state.get("current_round", 1),
        retry=False,
    )


def _leading_context(
    ready: Sequence[PlanStep], state: EnhancedState, services: Services
) -> ExecutionContext | None:
    """The context of the first step that can start, without what the state has anyway."""
    if not ready:
        return None
    step, plan = ready[0], plan_of(state)
    name = seats_of(step, services.team)[0].specialist
    inputs = inputs_of(step, plan.by_id, results_by_step(state))
    key = keys_in(state, step, name, inputs).idempotency
    # The conversation is in the state already, and so are the results.
    return context_of(step, {}, key, state, services, Seen([]))


def _steps_of_round(
    state: EnhancedState, plan: TaskPlan, ready: tuple[PlanStep, ...]
) -> Iterable[PlanStep]:
    """The steps to send, by the scope of a round that the settings name."""
    match settings_of(state).round_scope:
        case "step":
            return ready[:1]
        case "ready":
            return ready
        case "plan":
            # Nothing to send if nothing can start, though some steps may still wait.
            allowed = within_limit(plan, settings_of(state).limits.max_steps)
            blocked = {step.id for step in blocked_steps(plan)}
            held = blocked | waiting_steps(state)
            unblocked = (step for step in allowed.open_steps() if step.id not in held)
            by_urgency = sorted(unblocked, key=lambda step: (-step.priority, step.id))
            return by_urgency if ready else []
