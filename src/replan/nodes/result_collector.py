"""`result_collector`: write the round's results into the plan and sum them up, without a model."""

from datetime import datetime

from langgraph.runtime import Runtime

from replan.events.types import PlanUpdated
from replan.events.warnings import secret_warnings
from replan.host.host_call import emitter_of
from replan.host.new_settings import with_new_settings
from replan.host.steered_plan import with_edits
from replan.langgraph_inside.tasks import checkpoint_of
from replan.plan.dependencies import settle_conditions
from replan.plan.model import TaskPlan
from replan.plan.progress import made_progress, repeats_revision
from replan.plan.statuses import with_statuses
from replan.ports.run_context import here
from replan.services import Services
from replan.state.changed_steps import plan_write
from replan.state.digests import collect
from replan.state.enhanced import EnhancedState, plan_of, with_history
from replan.state.generations import after_round
from replan.state.limits import RunSettings
from replan.state.results import (
    ExecutionRecord,
    SpecialistResult,
)
from replan.state.rules import (
    asked_questions,
    get_current_execution_step,
    round_hits,
    round_results,
)
from replan.state.usage import Usage
from replan.steps.outcomes import settled


@with_new_settings
async def result_collector(
    state: EnhancedState, runtime: Runtime[RunSettings], *, services: Services
) -> EnhancedState:
    """Settle the steps of the round, keep its digest, and merge what people edited meanwhile."""
    before = plan_of(state)
    results = round_results(state)
    now = services.clock()
    plan = settle_round(before, state, now)
    collected = collect(results)
    steering = here().steering
    is_cut_short = steering is not None and bool(steering.asked)
    edits = await steering.take("edit", checkpoint_of(runtime), services.log) if steering else ()
    emitter = emitter_of(state, services, runtime)
    # That another step leads the round is no news of the plan.
    if plan.replace(current_step=before.current_step) != before:
        whole = with_history(plan, state)
        await emitter.emit(PlanUpdated, plan=whole, markdown=plan.content, by="rule")
    await emitter.warn(*_warnings_about_secrets(results))
    used = [(result.specialist_name, result.usage) for result in results.values()]
    used += [(question.specialist, question.usage) for question in asked_questions(state)]
    used += [(hit.specialist, hit.usage) for hit in round_hits(state).values()]
    edited = (
        await with_edits(with_history(plan, state), edits, state, services, emitter)
        if edits
        else EnhancedState()
    )
    stalls = state.get("stalls", 0)
    return {
        "current_plan": plan_write(state.get("current_plan"), plan),
        "current_collected_results": collected,
        "execution_history": [
            ExecutionRecord(round=state.get("current_round", 1), results=collected, timestamp=now)
        ],
        "generations": after_round(state.get("generations", {}), before, plan),
        # What a person cut short is no round without progress.
        "stalls": stalls if is_cut_short else _count_stalls(before, plan, state),
        "usage": state.get("usage", Usage()).plus(*used),
        "warnings": emitter.warnings,
        **edited,
    }


def _warnings_about_secrets(results: dict[str, SpecialistResult]) -> list[str]:
    return [
        warning
        for result in results.values()
        for warning in secret_warnings(f"The result of step {result.step_id}", result.text)
    ]


def _count_stalls(before: TaskPlan, after: TaskPlan, state: EnhancedState) -> int:
    """Count rounds without progress; results of a repeated revision do not count as progress."""
    stalls = state.get("stalls", 0)
    if not made_progress(before, after):
        # A person's turn is bounded by its own limit.
        return stalls if asked_questions(state) else stalls + 1
    history = state.get("plan_history", [])
    is_new = bool(history) and history[-1].version == after.version
    return stalls if is_new and repeats_revision(history, history[-1]) else 0


def settle_round(plan: TaskPlan, state: EnhancedState, now: datetime) -> TaskPlan:
    """Write the round's results into their steps, and skip the steps whose condition fails."""
    results, hits = round_results(state), round_hits(state)
    by_step: dict[int, list[SpecialistResult | None]] = {}
    for assignment in state.get("dispatched", []):
        # A part that a limit of the run left is shown, and its step stays open.
        result = None if assignment.key in hits else results.get(assignment.key)
        by_step.setdefault(assignment.step_id, []).append(result)
    ended = [
        settled(plan.step(step_id), [result for result in found if result is not None])
        for step_id, found in by_step.items()
        # A step is settled when every specialist that it was sent to has answered.
        if None not in found
    ]
    leading = get_current_execution_step(plan, state)
    if leading is not None:
        plan = plan.replace(current_step=leading.id)
    return settle_conditions(with_statuses(plan, ended, now), now)
