"""Run a graph: whole, from synchronous code, or as a stream of typed events."""
# LangGraph leaves the type arguments of savers and commands open, so these methods read as unknown.
# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from replan.events.types import BaseEvent, Event
from replan.nodes.run_start import recursion_limit
from replan.specialists.threads import use_threads
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings

Input = str | Mapping[str, Any] | Command[Any] | None
"""A request; or `messages` and `plan`; or what goes on with an interrupted thread."""

Graph = CompiledStateGraph[Any, Any, Any, Any]


async def run(
    graph: Graph,
    input: Input,  # noqa: A002 - LangGraph calls it so
    *,
    settings: RunSettings | None = None,
    config: RunnableConfig | None = None,
) -> EnhancedState:
    """Run a graph to its end and give the final state.

    A run that was interrupted by a question has the outcome `waiting` and LangGraph's
    `__interrupt__`; go on with `Command(resume=...)` as the input.

    Args:
        graph: From `build_graph`.
        input: The request as a text, or a mapping with `messages` and optionally `plan`.
        settings: What this run may do; fields left out are as the graph was configured.
        config: LangChain's configuration; a thread's id stands in it under `configurable`.

    Raises:
        UsageError: The input cannot be used.
        ModelCallError: The thinking or planning model could not be reached.
    """
    use_threads()
    prepared = _prepared(settings, config)
    options = _options(graph, settings)
    state = await cast("Any", graph).ainvoke(_mapping(input), prepared, **options)
    if "__interrupt__" in state:
        state["outcome"] = "waiting"
    return cast("EnhancedState", state)


def run_sync(
    graph: Graph,
    input: Input,  # noqa: A002 - LangGraph calls it so
    *,
    settings: RunSettings | None = None,
    config: RunnableConfig | None = None,
) -> EnhancedState:
    """Run a graph from code that is not asynchronous; see `run`.

    Raises:
        RuntimeError: An event loop runs already; await `run` there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError("An event loop runs already: use `await replan.run(...)` here.")
    return asyncio.run(run(graph, input, settings=settings, config=config))


async def stream(
    graph: Graph,
    input: Input,  # noqa: A002 - LangGraph calls it so
    *,
    settings: RunSettings | None = None,
    config: RunnableConfig | None = None,
) -> AsyncIterator[Event]:
    """Run a graph and give its events as they happen; closing the iterator cancels the run.

    Raises:
        UsageError: The input cannot be used.
        ModelCallError: The thinking or planning model could not be reached.
    """
    use_threads()
    prepared = _prepared(settings, config)
    options = _options(graph, settings)
    parts = graph.astream(_mapping(input), prepared, stream_mode="custom", **options)
    async with aclosing(cast("Any", parts)):
        async for part in parts:
            if isinstance(part, BaseEvent):
                yield cast(Event, part)


def _mapping(given: Input) -> Mapping[str, Any] | Command[Any] | None:
    return {"messages": [HumanMessage(given)]} if isinstance(given, str) else given


def _prepared(settings: RunSettings | None, config: RunnableConfig | None) -> RunnableConfig:
    if settings is None or "limits" not in settings.model_fields_set:
        return config or {}
    bound = recursion_limit(settings.limits.max_rounds)
    return merge_configs({"recursion_limit": bound}, config)


def _options(graph: Graph, settings: RunSettings | None) -> dict[str, Any]:
    options: dict[str, Any] = {"context": settings}
    if graph.checkpointer:
        options["durability"] = "sync"
    return options
