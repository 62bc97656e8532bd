"""`specialist_<name>`: wait for the dependencies of a step, then do it once and on record.

The path of a step: its node creates a `StepRun`, which waits on the `Board` for its dependencies.
Its `Attempts` call the specialist, and its `StepRecord` keeps what must survive a crash.
"""

import asyncio
from functools import partial
from typing import cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.runtime import Runtime

from replan.base.errors import InputError
from replan.base.langgraph_inside.tasks import bounds_in, checkpoint_of
from replan.log.whole_results import short_results
from replan.nodes.host.new_settings import with_settings_of_call
from replan.nodes.host.steered_plan import is_same_work, taken_edit, waits_for_approval
from replan.nodes.result_collector import with_results_of_round
from replan.ports.run_context import here
from replan.ports.steering import Steering
from replan.specialists.services import Services
from replan.specialists.steps.board import Boards, Sent, read_state
from replan.specialists.steps.early_steps import EarlySteps, do_beside, joined
from replan.specialists.steps.step_run import StepRun
from replan.state.enhanced import EnhancedState, plan_of, rounds_of, with_history
from replan.state.limits import RunSettings
from replan.state.results import Assignment


async def specialist(
    sent: Sent,
    runtime: Runtime[RunSettings],
    config: RunnableConfig,
    *,
    services: Services,
    boards: Boards,
) -> EnhancedState:
    """Do one step with one specialist; without a result, the step stays pending."""
    if "raised" in sent:
        raise sent["raised"]
    early = found if isinstance(found := here().early, EarlySteps) else None
    board = boards.join(
        sent["run_id"],
        checkpoint_of(runtime),
        partial(_state_of_round, sent, runtime, config, services),
        bounds_in(config).max_concurrency,
        early.board if early is not None and early.is_at_work else None,
    )
    assignment = Assignment(step_id=sent["step_id"], specialist=sent["specialist"])
    step = StepRun.of(assignment, board, services, runtime, config)
    async with board.seat(step.key):
        if (steering := here().steering) is not None:
            board.beside(partial(_follow_edit, steering, step))
        # All siblings of the super-step take their seats before any of them looks for one.
        await asyncio.sleep(0)
        await board.load(services.log)
        try:
            result = await (step.result() if early is None else early.outcome(step))
        except GraphDrained:
            # What began beside the round may end as its steps may.
            await board.end_beside()
            raise
        beside = await board.end_beside()
    # Nothing waits for this step any longer, and its place is free.
    await step.emitter.hooks.wait()
    update = joined(step.update(result), beside)
    return cast("EnhancedState", short_results(update, services.log))


async def _follow_edit(steering: Steering, step: StepRun) -> EnhancedState:
    """Begin steps of an edited plan at once, while others of the round are still at work."""
    board, services = step.board, step.services
    if board.settings.round_scope != "plan" or board.round >= rounds_of(board.state):
        return {}
    await steering.edited.wait()
    edit = steering.waiting("edit")[0]
    await board.load(services.log)
    state = board.state_so_far
    plan = with_history(with_results_of_round(plan_of(state), state, services.clock()), state)
    try:
        edited = taken_edit(plan, edit, state, services, services.clock())
    except InputError:
        # Its merge says why, when the round is over.
        return {}
    at_work = [plan.step(step_id) for step_id in board.begun]
    is_kept = all(
        step.id in edited.by_id and is_same_work(step, edited.step(step.id)) for step in at_work
    )
    if not is_kept or steering.waiting("message"):
        return {}
    if waits_for_approval(plan, edited, board.settings, services):
        return {}
    return await do_beside(state, edited, edit.name, step)


def _state_of_round(
    sent: Sent, runtime: Runtime[RunSettings], config: RunnableConfig, services: Services
) -> EnhancedState:
    state = read_state(sent, config)
    if services.is_served or cast("object", runtime.context) is not None:
        # Settings of the call apply immediately; the collector puts them into the state.
        return with_settings_of_call(state, runtime, services)
    return state
