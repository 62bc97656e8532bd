"""The summary of a thread, outside its runs: read it, write it, take it away."""
# LangGraph leaves the type arguments of savers open, so these methods read as partly unknown.
# pyright: reportUnknownMemberType=false

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import StateSnapshot

from replan.base.errors import InputError
from replan.nodes.host.host_call import host_call
from replan.nodes.summarise import written_summary
from replan.runs.calling.compiled import Graph, services_in
from replan.runs.calling.team_graph import alone
from replan.state.conversation.conversation import to_cover
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings
from replan.state.options import Summary

_NODE = "summarise"


async def read_summary(graph: Graph, config: RunnableConfig) -> Summary | None:
    """Return the summary of a thread; None where there is none.

    Args:
        graph: From `build_graph`, with the storage or the checkpointer of the thread.
        config: LangChain's configuration; the thread's id is in it under `configurable`.
    """
    return _state_of(await graph.aget_state(config)).get("memory_summary")


async def reset_summary(graph: Graph, config: RunnableConfig) -> None:
    """Remove the summary of a thread; models see the covered messages again.

    Raises:
        InputError: A run of the thread is not over.
        ThreadBusyError: Another process works on the thread.
    """
    async with _hold_thread(graph, config) as state:
        if state.get("memory_summary") is not None:
            await graph.aupdate_state(config, {"memory_summary": None}, as_node=_NODE)


async def summarise(graph: Graph, config: RunnableConfig) -> Summary | None:
    """Write the summary of a thread now, also where runs write none, and return it.

    All messages are covered but the newest ones, as many as a window has; of a very long
    conversation this takes several calls. They count for the newest run of the thread, in its
    usage and for its limits. None where there is nothing to cover.

    Args:
        graph: From `build_graph`, with the storage or the checkpointer of the thread.
        config: LangChain's configuration; the thread's id is in it under `configurable`.

    Raises:
        InputError: A run of the thread is not over, or its memory is not in mode `summary`.
        ThreadBusyError: Another process works on the thread.
        ModelCallError: The model failed, refused or wrote nothing; what there was stays.
        LimitReachedError: The newest run has no room left for it.
    """
    async with _hold_thread(graph, config) as held:
        state = held
        services = services_in(graph)
        memory = services.prompts.memory_in(state)
        if memory.mode != "summary":
            raise InputError(
                f"This thread's memory is in mode '{memory.mode}', which shows no summary. Give "
                "the team memory=MemoryOptions(mode='summary')."
            )
        while to_cover(state, memory)[1]:
            state = await _write_next(state, graph, config)
        return state.get("memory_summary")


async def _write_next(state: EnhancedState, graph: Graph, config: RunnableConfig) -> EnhancedState:
    """Write a new summary and its usage into the state of a thread."""
    call = host_call(
        "memory_summary",
        state,
        services_in(graph),
        cast("Runtime[RunSettings]", Runtime()),
        config,
    )
    update: EnhancedState = {}
    try:
        update["memory_summary"] = await written_summary(state, call)
    finally:
        update["usage"] = await call.usage(state)
        await call.release()
        await graph.aupdate_state(config, cast("Any", update), as_node=_NODE)
    return {**state, **update}


@asynccontextmanager
async def _hold_thread(graph: Graph, config: RunnableConfig) -> AsyncGenerator[EnhancedState]:
    """Hold a thread of which no run is under way, and return its state."""
    if not graph.checkpointer or services_in(graph) is None:
        raise InputError("This graph keeps no threads. Give build_graph(team, storage=...).")
    async with alone(graph, config) as owner:
        with owner.at_work() if owner else nullcontext():
            snapshot = await graph.aget_state(config)
            if set(snapshot.next) - {_NODE}:
                raise InputError(
                    "A run of this thread is not over. Continue it or answer it first."
                )
            yield _state_of(snapshot)


def _state_of(snapshot: StateSnapshot) -> EnhancedState:
    return cast("EnhancedState", snapshot.values)
