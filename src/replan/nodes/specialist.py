"""`specialist_<name>`: wait for what the step depends on, then do it, once and on record."""

import asyncio
from functools import partial
from typing import cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from replan.host.new_settings import as_called
from replan.langgraph_inside.tasks import bounds_in
from replan.services import Services
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings
from replan.steps.board import Boards, Sent, read_state
from replan.steps.step_run import StepRun


async def specialist(
    sent: Sent,
    runtime: Runtime[RunSettings],
    config: RunnableConfig,
    *,
    services: Services,
    boards: Boards,
) -> EnhancedState:
    """Do one step at one specialist; without a result the step stays pending."""
    info = runtime.execution_info
    board = boards.join(
        sent["run_id"],
        "" if info is None else info.checkpoint_id,
        partial(_state_of_round, sent, runtime, config, services),
        bounds_in(config).max_concurrency,
    )
    step = StepRun.of(sent, board, services, runtime, config)
    with board.seat(step.key):
        # All siblings of the super-step take their seats before anybody looks for one.
        await asyncio.sleep(0)
        result = await step.result()
    # By now nobody waits for this step any more, and its place is free.
    await step.emitter.hooks.heard()
    update: EnhancedState = {}
    if result is not None:
        update["current_specialist_results"] = {step.key: result}
    if step.asked:
        update["questions"] = {question.key: question for question in step.asked}
    if step.emitter.warnings:
        update["warnings"] = step.emitter.warnings
    if step.limit is not None:
        update["limit_hits"] = {step.key: step.limit}
    return update


def _state_of_round(
    sent: Sent, runtime: Runtime[RunSettings], config: RunnableConfig, services: Services
) -> EnhancedState:
    state = read_state(sent, config)
    if services.is_served or cast("object", runtime.context) is not None:
        # What came with the call holds at once; the collector puts it into the state.
        return as_called(state, runtime, services)
    return state
