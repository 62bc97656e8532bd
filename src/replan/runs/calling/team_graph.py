"""The graph of a team as people call it: held by one run at a time, traced, without bounds.

LangGraph's own bounds would end or starve a run: an error at some super-step, tasks that wait for
places that others hold who wait for them. A run has bounds of its own in their place.
"""
# LangGraph leaves the type arguments of savers and commands open, so these methods read as unknown.
# pyright: reportUnknownMemberType=false

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Self, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.constants import END
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl, Runtime
from langgraph.types import Command, StateSnapshot, StateUpdate

from replan.base.langgraph_inside.checkpoints import CheckpointIds
from replan.base.langgraph_inside.langgraph_channels import (
    begins_apart,
    begun_at_once,
    given_at_once,
    is_in_one_channel,
)
from replan.base.langgraph_inside.tasks import CallerBounds, inherited_config, with_bounds
from replan.base.own_loop import run_in_own_loop
from replan.log.events.listeners import Listener, Trace, Tracing
from replan.nodes.begin import begin
from replan.ports.ownership import Owner, as_owner, in_each, local_threads, owner_in
from replan.ports.run_context import here, using
from replan.runs.calling.compiled import Graph, input_guard_of, is_served, services_in, team_of
from replan.runs.calling.edits import changes_work, on_record, own_edits, taken_edits
from replan.runs.calling.given_input import of_client
from replan.runs.calling.new_or_continued import Call, check_call, normalise_call
from replan.specialists.steps.early_steps import EarlySteps
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings

_TRACE = "replan_trace"
_EDIT = "edit"  # in the place of a run's id, for the ids of checkpoints


class TeamGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """The compiled graph of a team; inputs of LangGraph's own methods are checked, too."""

    @classmethod
    def of(cls, compiled: Graph) -> Self:
        """Create one from a compiled LangGraph graph, as its own `copy` does."""
        fields = {name: value for name, value in vars(compiled).items() if name != "__orig_class__"}
        return cls(**fields)

    def invoke(
        self,
        input: Any,  # noqa: A002 - as LangGraph calls it
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> Any:
        """Invoke as `ainvoke` does, in its own loop; where a loop runs, await that instead."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            invoke = cast("Any", self).ainvoke
            return run_in_own_loop(lambda: invoke(input, config, **options))
        raise RuntimeError("An event loop is running: use `await graph.ainvoke(...)` here.")

    def stream(self, *_: Any, **__: Any) -> Any:
        """Say what to call instead: an asynchronous graph has no synchronous stream."""
        raise TypeError(
            "The graph is asynchronous: use `async for part in graph.astream(...)`, or "
            "`replan.open_runtime`, whose `events` synchronous code can follow."
        )

    async def astream(
        self,
        input: Any,  # noqa: A002 - as LangGraph calls it
        config: RunnableConfig | None = None,
        **options: Any,
    ) -> AsyncIterator[Any]:
        """Stream as LangGraph does; a run's own input again continues that run.

        Instead of an input it takes a call that was prepared, whose settings are the context.

        Without a `durability`, checkpoints are written before the next super-step: a step that has
        begun is known by the name of its run, which another process has to find.
        """
        config = config or {}
        is_inner = bool(config.get("configurable", {}).get("checkpoint_ns"))
        is_chosen = options.get("durability") or "checkpoint_during" in options
        if isinstance(self.checkpointer, BaseCheckpointSaver) and not (is_inner or is_chosen):
            options["durability"] = "sync"
        async with alone(self, config, within=True) as owner:
            if isinstance(input, Call):
                call = input
            else:
                call = await normalise_call(self, Call(input, options.get("context"), config))
            await self.before_input(call)
            parts = await self._parts(call, {**options, "context": call.settings}, owner)
            if here().listener is not None:
                # Whoever hears the run around this one does not hear this one.
                parts = in_each(lambda: using(listener=None), parts)
            async with aclosing(parts) as stream:
                async for part in stream:
                    yield part

    async def close_step(self, config: RunnableConfig) -> StateSnapshot:
        """Return the newest state, with a checkpoint behind tasks that have all ended.

        A process that was killed between the last of them and the checkpoint has left none.
        """
        newest = await self.aget_state(config)
        if newest.next or not newest.tasks:
            return newest
        run_id = str((newest.metadata or {}).get("run_id") or "")
        named = merge_configs(config, {"metadata": {"run_id": run_id}})
        with CheckpointIds(services_in(self).clock, run_id).at_work():
            await super().abulk_update_state(named, [[StateUpdate(None, END)]])
        return await self.aget_state(config)

    async def before_input(self, call: Call) -> None:
        """Keep what the run before came to: for a new input, LangGraph drops ended tasks."""
        has_writes = getattr(cast("Any", self).checkpointer, "has_writes", None)
        config = merge_configs(self.config, call.config)
        is_inner = bool(config.get("configurable", {}).get("checkpoint_ns"))
        if is_inner or has_writes is None or not isinstance(call.input, Mapping):
            return
        if await has_writes(config):
            await self.close_step(call.config)

    async def run_to_rest(
        self, call: Call, listener: Listener, control: RunControl, **options: Any
    ) -> dict[str, Any]:
        """Work until the work rests, and return its state; the listener hears its events.

        Args:
            call: What `prepared` returned, or what begins a run on a new thread.
            listener: Hears the events where they happen.
            control: Stops the work.
            options: LangGraph's, such as `durability`.
        """
        options = {**options, "context": call.settings, "stream_mode": "values"}
        state = dict[str, Any]()
        with using(listener=listener):
            async with aclosing(await self._parts(call, {**options, "control": control})) as parts:
                async for part in parts:
                    state = part
        return state

    async def _parts(
        self, call: Call, options: Mapping[str, Any], owner: Owner | None = None
    ) -> AsyncGenerator[Any]:
        """The parts of LangGraph's stream of a call."""
        call = await self._with_edits(call)
        bounded = _without_bounds(call.config, self.config or {})
        trace = await _begin_trace(self, call)
        if trace is not None:
            bounded = merge_configs(bounded, {"metadata": {_TRACE: trace.ref}})
        parts = as_owner(owner, self._begun(call, bounded, options))
        services = services_in(self)
        if services.early_members:
            parts = _with_early_steps(EarlySteps(services), parts)
        run_id = call.name or str(
            call.config.get("metadata", {}).get("run_id") or services.new_id()
        )
        parts = in_each(CheckpointIds(services.clock, run_id).at_work, parts)
        return _traced(trace, parts) if trace else parts

    async def _begun(
        self, call: Call, config: RunnableConfig, options: Mapping[str, Any]
    ) -> AsyncGenerator[Any]:
        """LangGraph's stream of a call; a run that is seen at rest only has begun before it."""
        given: Any = call.input
        if isinstance(given, Mapping) and is_in_one_channel(self):
            given = input_guard_of(self).taken(given)
            if call.is_first and begins_apart(self):
                runtime = Runtime(context=cast("RunSettings", call.settings), store=self.store)
                work = partial(begin, runtime=runtime, config=config, services=services_in(self))
                given = await begun_at_once(self, given, work)
            else:
                given = given_at_once(self, given)
        async with aclosing(cast("Any", super().astream(given, config, **options))) as parts:
            async for part in parts:
                yield part

    def bulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Edit the state as LangGraph does; a client of a server may edit some keys only."""
        supersteps = _checked_edits(self, supersteps)
        if changes_work(supersteps):
            # A storage of ours has no synchronous methods, so all results are whole.
            state = cast("EnhancedState", self.get_state(config).values)
            supersteps = own_edits(
                state, supersteps, team_of(self), input_guard_of(self).check_plan
            )
        return super().bulk_update_state(config, supersteps)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Edit the state as LangGraph does, while no run works on the thread."""
        # A client of a server may edit some keys only.
        supersteps = _checked_edits(self, supersteps)
        async with alone(self, config, within=True) as owner:
            ids = CheckpointIds(services_in(self).clock, _EDIT)
            with ids.at_work(), owner.at_work() if owner else nullcontext():
                async with self._on_record(config, supersteps) as taken:
                    return await super().abulk_update_state(config, taken)

    async def _with_edits(self, call: Call) -> Call:
        """The call, with what its command edits as the state takes it."""
        command = call.input
        if not isinstance(command, Command) or not isinstance(
            self.checkpointer, BaseCheckpointSaver
        ):
            return call
        edits = [[StateUpdate(cast("Any", command.update), None)]]
        if not changes_work(edits):
            return call
        async with self._on_record(call.config, edits) as taken:
            update = taken[0][0].values
        return replace(call, input=replace(command, update=update))

    @asynccontextmanager
    async def _on_record(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> AsyncGenerator[Sequence[Sequence[StateUpdate]]]:
        """The edits as the state takes them; those of plans and results are in the log."""
        if not changes_work(supersteps):
            yield supersteps
            return
        services = services_in(self)
        state = cast("EnhancedState", (await self.aget_state(config)).values)
        taken = await taken_edits(
            state, supersteps, team_of(self), services.log, input_guard_of(self).check_plan
        )
        run_id, name = state.get("run_id", ""), services.new_id()
        async with on_record(run_id, name, taken, config, services.log):
            yield taken


@asynccontextmanager
async def alone(
    graph: Graph, config: RunnableConfig, *, within: bool = False
) -> AsyncGenerator[Owner | None]:
    """Hold the thread of a call, so that no other run works on it.

    A storage holds it against other processes, too. With any other checkpointer, this is for runs
    of this process alone, and not for calls of LangGraph's own methods (`within`).
    """
    saver = cast("Any", graph).checkpointer
    is_saver = isinstance(saver, BaseCheckpointSaver)
    call = merge_configs(graph.config, config).get("configurable", {}) if is_saver else {}
    thread, is_inner = call.get("thread_id"), bool(call.get("checkpoint_ns"))
    holds = getattr(saver, "holds", None)
    if thread is None or is_inner or (within and holds is None):
        yield None
        return
    if holds is None:
        async with local_threads(saver).lock(str(thread)):
            yield None
        return
    check_call(graph, Call(None, None, config))
    if within and owner_in(holds.where, str(thread)):
        yield None
        return
    async with holds.lock(str(thread)) as owner:
        try:
            yield owner
        except BaseException:
            # LangGraph still has writes in progress; no other process may take the thread before.
            await saver.at_rest()
            raise


async def _with_early_steps(early: EarlySteps, parts: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
    """Yield the parts of a call's stream; what began early ends with it."""
    try:
        async with aclosing(in_each(lambda: using(early=early), parts)) as stream:
            async for part in stream:
                yield part
    finally:
        await early.end()


async def _begin_trace(graph: Graph, call: Call) -> Trace | None:
    """The trace of a call, if its team, or the call around it, is traced."""
    around = here().trace
    tracing: Tracing | None = input_guard_of(graph).tracing
    if tracing is None and around is not None:
        tracing = around.tracing
    if tracing is None:
        return None
    thread = call.config.get("configurable", {}).get("thread_id")
    goes_on = not isinstance(call.input, Mapping)
    earlier = ""
    if goes_on and isinstance(graph.checkpointer, BaseCheckpointSaver):
        # Each checkpoint names the call that it was made in.
        metadata = (await graph.aget_state(call.config)).metadata
        earlier = str((metadata or {}).get(_TRACE, ""))
    counted = here().prior_durations
    # What is called inside a run has another thread.
    worked: Mapping[object, float] = {}
    if counted is not None and counted[0] == thread:
        worked = counted[1]()
    return tracing.begin(graph.get_name(), str(thread or ""), earlier, worked)


async def _traced(trace: Trace, parts: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
    """Yield the parts of a call's stream; its work is traced, its reader is not."""
    error: BaseException | None = None
    try:
        async with aclosing(in_each(lambda: using(trace=trace), parts)) as stream:
            async for part in stream:
                yield part
    except BaseException as raised:
        error = raised
        raise
    finally:
        trace.end(error)


def _checked_edits(
    graph: Graph, supersteps: Sequence[Sequence[StateUpdate]]
) -> Sequence[Sequence[StateUpdate]]:
    for edit in (edit for superstep in supersteps for edit in superstep):
        input_guard_of(graph).check_edit(edit.values, edit.as_node)
    if not is_served(graph):
        return supersteps
    return [
        [edit._replace(values=of_client(edit.values)) for edit in superstep]
        for superstep in supersteps
    ]


def _without_bounds(config: RunnableConfig, own_config: RunnableConfig) -> RunnableConfig:
    """Remove LangGraph's bounds from the config; the nodes find them as the caller set them."""
    configs: list[RunnableConfig] = [config, own_config, inherited_config.get() or {}]
    steps = next(
        (config["recursion_limit"] for config in configs if "recursion_limit" in config), None
    )
    at_once = next(filter(None, (config.get("max_concurrency") for config in configs)), None)
    free: RunnableConfig = {**config, "recursion_limit": sys.maxsize}
    if at_once:
        free["max_concurrency"] = sys.maxsize
    return with_bounds(free, CallerBounds(recursion_limit=steps, max_concurrency=at_once))
