"""Run a graph: whole, followed, or as a stream of typed events."""
# LangGraph leaves the type arguments of savers and commands open, so these methods read as unknown.
# pyright: reportUnknownMemberType=false

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import aclosing, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import GraphOutput, StateSnapshot

from replan.base.errors import InputError
from replan.base.failures import is_signal
from replan.log.events.listeners import Listener
from replan.log.events.types import (
    ApprovalRequested,
    BaseEvent,
    Event,
    InputRequested,
    TaskCompleted,
    WarningReported,
)
from replan.ports.ownership import as_owner
from replan.runs.asked.asks import state_at_rest
from replan.runs.calling.compiled import Graph, unseen_in
from replan.runs.calling.new_or_continued import Call, prepared
from replan.runs.calling.team_graph import TeamGraph, alone
from replan.runs.stopping import GRACE, StopSignal, on_its_own, stoppable
from replan.runs.work_stream import stream_of
from replan.state.enhanced import EnhancedState

NOBODY_ANSWERS = (
    "Nothing can answer this run: it waits for a person, and its state is not kept. Give the team "
    "a storage, such as open_runtime(team, storage=...), or build_graph a checkpointer."
)
"""The warning of a run that waits and has no checkpointer."""

_ASKS = (ApprovalRequested, InputRequested)

logger = logging.getLogger(__name__)


async def run_graph(
    graph: Graph, call: Call, *, stop: asyncio.Event | None = None, grace: float = GRACE
) -> EnhancedState:
    """Run a graph to its end and return the final state; see `replan.run`."""
    # That of a run that waits has LangGraph's `__interrupt__`.
    graph = unseen_in(graph, call.config)

    async def work(control: RunControl | None = None) -> dict[str, Any]:
        ready = await prepared(graph, call)
        # In the first version of this format, LangGraph reports the update of each node, too.
        output: GraphOutput[dict[str, Any]] = await cast("Any", graph).ainvoke(
            config=ready.config, control=control, version="v2", **_input_of(graph, ready)
        )
        interrupts = {"__interrupt__": [*output.interrupts]} if output.interrupts else {}
        return {**output.value, **interrupts}

    async with alone(graph, call.config) as owner:
        try:
            with _log_end(call), owner.at_work() if owner else nullcontext():
                state = await (on_its_own(work()) if stop is None else stoppable(work, stop, grace))
        except StopSignal:
            state = _mark_interrupted(await _read_saved_state(graph, call.config))
    if "__interrupt__" in state:
        state["outcome"] = "waiting"
        if not graph.checkpointer:
            state["warnings"] = [*state.get("warnings", []), NOBODY_ANSWERS]
    return cast("EnhancedState", state)


async def stream_graph(
    graph: Graph, call: Call, *, stop: asyncio.Event | None = None, grace: float = GRACE
) -> AsyncIterator[Event]:
    """Run a graph and return its events as they happen; see `replan.stream`."""
    graph, controls = unseen_in(graph, call.config), list[RunControl]()
    with suppress(StopSignal):
        async with alone(graph, call.config) as owner:
            ready = await prepared(graph, call)

            def parts(control: RunControl) -> AsyncGenerator[Any]:
                controls.append(control)
                stream_of = cast("Any", graph).astream
                return stream_of(
                    config=ready.config,
                    control=control,
                    stream_mode="custom",
                    **_input_of(graph, ready),
                )

            stream = parts(RunControl()) if stop is None else _until_stopped(parts, stop, grace)
            with _log_end(call):
                async with (
                    aclosing(as_owner(owner, stream)) as owned,
                    aclosing(_events_in(owned, controls)) as events,
                ):
                    ask: BaseEvent | None = None
                    async for event in events:
                        ask = event if isinstance(event, _ASKS) else ask
                        ask = None if isinstance(event, TaskCompleted) else ask
                        yield event
                    if ask is not None and not graph.checkpointer:
                        yield WarningReported(
                            run_id=ask.run_id, round=ask.round, text=NOBODY_ANSWERS
                        )


async def followed(  # noqa: PLR0913 - how a run is followed and stopped
    graph: Graph,
    call: Call,
    take: Callable[[Event], None],  # takes the events where they happen, and raises nothing
    *,
    stop: asyncio.Event | None = None,  # stops the run; None if nobody does
    grace: float = GRACE,  # seconds that running steps have to end once `stop` is set
    at_once: asyncio.Event | None = None,  # set it to wait for them no longer
    begins: bool = False,  # whether it begins on a new thread, with a checked input
    models: bool = True,  # whether there are events of the calls of models
    is_passing: bool = False,  # whether its thread lives as long as its caller's work
) -> EnhancedState:
    """Run a graph until it rests, hand on its events as they happen, and return its state."""
    graph, listener = unseen_in(graph, call.config), Listener(take, hears_models=models)

    async def work(control: RunControl) -> dict[str, Any]:
        ready = call if begins else await prepared(graph, call)
        if not begins:
            await cast("TeamGraph", graph).before_input(ready)
        # A thread that is passing is written once, when the work comes to rest.
        durability = "exit" if is_passing else "sync"
        options = {"durability": durability} if graph.checkpointer else {}
        return await cast("TeamGraph", graph).run_to_rest(ready, listener, control, **options)

    with _log_end(call):
        try:
            state = await (
                on_its_own(work(RunControl()))
                if stop is None
                else stoppable(work, stop, grace, at_once)
            )
        except StopSignal:
            saved = await _read_saved_state(graph, call.config)
            return cast("EnhancedState", _mark_interrupted(saved))
        finally:
            listener.close()
    if graph.checkpointer and not state.get("is_completed"):
        # Only a snapshot shows what is asked, and by whom.
        snapshot: StateSnapshot = await graph.aget_state(call.config)
        state = state_at_rest(snapshot)
        if snapshot.interrupts:
            state["outcome"] = "waiting"
    return cast("EnhancedState", state)


async def _events_in(
    parts: AsyncGenerator[Any], controls: Sequence[RunControl]
) -> AsyncGenerator[Event]:
    """Yield the events of a run; if the reader leaves, an answer is kept and nothing new begins."""
    async for part in parts:
        if not isinstance(part, BaseEvent):
            continue
        try:
            yield cast(Event, part)
        except GeneratorExit:
            if isinstance(part, TaskCompleted):
                for control in controls:
                    control.request_drain("its reader left")
                with suppress(GraphDrained, StopSignal):
                    async for _ in parts:
                        pass
            raise


def _until_stopped(
    parts: Callable[[RunControl], AsyncGenerator[Any]], stop: asyncio.Event, grace: float
) -> AsyncGenerator[Any]:
    """Yield the parts of a stream until it ends."""

    async def work(report: Callable[[Any], None], control: RunControl) -> None:
        async with aclosing(parts(control)) as stream:
            async for part in stream:
                report(part)

    return stream_of(lambda report: stoppable(partial(work, report), stop, grace))


@contextmanager
def _log_end(call: Call) -> Generator[None]:
    """Log how a run was cut off; a normal end is in its last event."""
    thread = call.config.get("configurable", {}).get("thread_id")
    about = {"run_id": call.name, "thread_id": thread}
    try:
        yield
    except InputError:
        # Nothing was started.
        raise
    except StopSignal:
        logger.info("run stopped", extra=about)
        raise
    except Exception as error:
        if is_signal(error):
            logger.info("run waits", extra=about)
            raise
        logger.error("run failed", extra={**about, "error": type(error).__name__})  # noqa: TRY400
        raise
    except BaseException:
        logger.info("run cancelled", extra=about)
        raise


async def _read_saved_state(graph: Graph, config: RunnableConfig) -> dict[str, Any]:
    """The state of a stopped run after it came to rest; empty without a checkpointer."""
    if not graph.checkpointer:
        return {}
    at_rest = getattr(cast("Any", graph).checkpointer, "at_rest", None)
    if at_rest is not None:
        await at_rest()
    return dict((await graph.aget_state(config)).values)


def _mark_interrupted(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a run that was stopped; one whose answer was reported lacks only its summary."""
    return state if state.get("is_completed") else {**state, "outcome": "interrupted"}


def _input_of(graph: Graph, ready: Call) -> dict[str, Any]:
    """What a graph is called with: ours takes the prepared call, so that it is not prepared again.

    A graph that LangGraph compiled, and `build_graph` did not, takes its input and its settings.
    """
    if isinstance(graph, TeamGraph):
        return {"input": ready}
    durability = {"durability": "sync"} if graph.checkpointer else {}
    return {"input": ready.input, "context": ready.settings, **durability}
