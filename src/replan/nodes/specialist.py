"""`specialist_<name>`: wait for what the step depends on, then do it, once and on record."""

import asyncio
from functools import partial

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime

from replan.host.new_settings import asked_in, resumed_with, within_team
from replan.services import Services
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings
from replan.steps.board import Boards
from replan.steps.superstep import Sent, bounds_in, read_state
from replan.steps.turn import Turn


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
    turn = Turn.of(sent, board, services, runtime, config)
    with turn.board.seat(turn.key):
        # All siblings of the super-step take their seats before anybody looks for one.
        await asyncio.sleep(0)
        result = await turn.recorded() or await turn.take() or turn.part
    # By now nobody waits for this step any more, and its place is free.
    await turn.emitter.hooks.heard()
    update: EnhancedState = {}
    if result is not None:
        update["current_specialist_results"] = {turn.key: result}
    if turn.asked:
        update["questions"] = {question.key: question for question in turn.asked}
    if turn.limit is not None:
        update["limit_hits"] = {turn.key: turn.limit}
    return update


def _state_of_round(
    sent: Sent, runtime: Runtime[RunSettings], config: RunnableConfig, services: Services
) -> EnhancedState:
    kept = within_team(read_state(sent, config), services)
    # What came with the call holds at once; the collector puts it into the state.
    return {**kept, **resumed_with(kept, asked_in(runtime, services))}
