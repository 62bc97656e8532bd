"""`result_collector`: write the round's results into the plan and sum them up, without a model."""

from collections.abc import Iterator
from datetime import datetime
from functools import partial

from langgraph.runtime import Runtime

from replan.base.langgraph_inside.tasks import checkpoint_of
from replan.log.events.types import PlanUpdated
from replan.log.events.warnings import secret_warnings
from replan.nodes.host.approvals import approval_of
from replan.nodes.host.host_call import emitter_of
from replan.nodes.host.new_settings import with_new_settings
from replan.nodes.host.steered_plan import UNSAFE, with_edits
from replan.plan.dependencies import settle_conditions
from replan.plan.model import TaskPlan
from replan.plan.statuses import made_progress, repeats_revision, with_statuses
from replan.ports.run_context import here
from replan.specialists.services import Services
from replan.state.enhanced import (
    EnhancedState,
    new_version,
    plan_of,
    with_history,
    without_history,
)
from replan.state.limits import RunSettings
from replan.state.results import (
    Assignment,
    ExecutionRecord,
    SpecialistResult,
    after_round,
    collect,
    round_results,
    settled,
)
from replan.state.rules import (
    asked_questions,
    get_current_execution_step,
    round_hits,
)
from replan.state.usage import TokenCount, Usage


@with_new_settings
async def result_collector(
    state: EnhancedState, runtime: Runtime[RunSettings], *, services: Services
) -> EnhancedState:
    """Settle the steps of the round, keep its digest, and merge what people edited meanwhile."""
    before, results = with_history(plan_of(state), state), round_results(state)
    now = services.clock()
    collected = collect(results)
    steering = here().steering
    is_cut_short = steering is not None and bool(steering.asked)
    edits = await steering.take("edit", checkpoint_of(runtime), services.log) if steering else ()
    emitter = emitter_of(state, services, runtime)
    ended = with_results_of_round(before, state, now)
    plan, waits = ended, False
    if edits:
        settled = partial(_settled_edit, state=state, now=now)
        plan, waits = await with_edits(ended, edits, settled, state, services, emitter)
    is_edited = plan.version > before.version
    if not is_edited:
        plan = settle_conditions(ended, now)
        # That another step leads the round is no news of the plan.
        if plan.replace(current_step=before.current_step) != before:
            await emitter.emit(PlanUpdated, plan=plan, markdown=plan.content, by="rule")
    await emitter.warn(*_warnings_about_secrets(results))
    stalls = state.get("stalls", 0)
    update: EnhancedState = {
        "current_plan": without_history(plan),
        "current_collected_results": collected,
        "execution_history": [
            ExecutionRecord(round=state.get("current_round", 1), results=collected, timestamp=now)
        ],
        "generations": after_round(state.get("generations", {}), before, plan),
        # What a person cut short is no round without progress.
        "stalls": stalls if is_cut_short else _count_stalls(before, plan, state),
        "usage": state.get("usage", Usage()).plus(*_used_in_round(state)),
        "warnings": emitter.warnings,
    }
    if is_edited:
        asked = {
            key
            for assignment in state.get("dispatched", [])
            for key in assignment.asked_by_edit or ()
        }
        update |= {
            "dispatched": _sent_with(plan, state),
            **new_version(plan, ended, state, asked),
        }
    if waits:
        following = state.get("current_round", 0) + 1
        update["approval"] = approval_of(plan, following, before=ended, reason=UNSAFE)
    return update


def _used_in_round(state: EnhancedState) -> Iterator[tuple[str, TokenCount]]:
    for result in round_results(state).values():
        yield result.specialist_name, result.usage
    for part in (*asked_questions(state), *round_hits(state).values()):
        yield part.specialist, part.usage


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
    return settle_conditions(with_results_of_round(plan, state, now), now)


def with_results_of_round(plan: TaskPlan, state: EnhancedState, now: datetime) -> TaskPlan:
    """Write the round's results into their steps.

    Those of steps that began with an edited plan count once it is the plan.
    """
    results, hits = round_results(state), round_hits(state)
    sent = state.get("dispatched", [])
    not_yet = hits.keys() | {
        assignment.key for assignment in sent if assignment.asked_by_edit is not None
    }
    by_step: dict[int, list[SpecialistResult | None]] = {}
    for assignment in sent:
        if assignment.asked_by_edit is None:
            # A part that a limit of the run left is shown, and its step stays open.
            result = None if assignment.key in not_yet else results.get(assignment.key)
            by_step.setdefault(assignment.step_id, []).append(result)
    ended = [
        settled(plan.step(step_id), [result for result in step_results if result is not None])
        for step_id, step_results in by_step.items()
        # A step is settled when every specialist that it was sent to has answered.
        if None not in step_results
    ]
    leading = get_current_execution_step(plan, state)
    if leading is not None:
        plan = plan.replace(current_step=leading.id)
    return with_statuses(plan, ended, now)


def _settled_edit(edited: TaskPlan, state: EnhancedState, now: datetime) -> TaskPlan:
    """A merged plan with the results of the steps that began with it."""
    state = {**state, "dispatched": _sent_with(edited, state)}
    return settle_round(edited, state, now)


def _sent_with(edited: TaskPlan, state: EnhancedState) -> list[Assignment]:
    """What the round sent, with the steps that began with an edited plan."""
    sent = state.get("dispatched", [])
    begun = [assignment for assignment in sent if assignment.asked_by_edit is not None]
    joined = {assignment.step_id for assignment in begun}
    return [
        assignment.replace(asked_by_edit=None)
        for assignment in sent
        if assignment.step_id in edited.by_id
        and (assignment in begun or assignment.step_id not in joined)
    ]
