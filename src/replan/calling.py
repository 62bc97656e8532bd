"""What a call of a graph is to LangGraph: a separate run, or one that continues.

A run that continues keeps its name and its bounds, even if the caller does not give them again.
The input that began a run, given again under its name, continues it too: a queue may deliver a job
twice.

LangGraph's own bounds would end or starve a run: an error at some super-step, tasks that wait for
places that others hold who wait for them. A run has bounds of its own in their place.
"""
# LangGraph leaves the type arguments of savers and commands open, so these methods read as unknown.
# pyright: reportUnknownMemberType=false

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.constants import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Interrupt, StateSnapshot, StateUpdate

from replan.errors import InputError
from replan.events.trace import Trace, Tracing, as_traced, trace_at_work, worked_before
from replan.graph.branches import specialist_node
from replan.host.handed_plan import NOTHING_TO_DO
from replan.host.new_settings import resumed_with
from replan.langgraph_inside.tasks import CallerBounds, inherited_config, with_bounds
from replan.own_loop import completed
from replan.ports.ownership import Owner, as_owner, owner_in
from replan.ports.tool_provider import ToolProvider
from replan.replies.shape import Shape
from replan.state.channels import conversation
from replan.state.enhanced import EnhancedState, has_begun, settings_of
from replan.state.entrance import Entrance
from replan.state.limits import RunSettings
from replan.state.plan_edits import EditablePlan
from replan.state.team import SpecialistCard
from replan.state.tightening import told_loosened
from replan.state.waiting import resumption
from replan.texts.storable import unstorable

Input = str | Mapping[str, Any] | Command[Any] | None
"""A request; or `messages` and `plan`; or what continues an interrupted thread."""

Graph = CompiledStateGraph[Any, Any, Any, Any]

_BEFORE = {START, "begin"}
_TRACE = "replan_trace"


@dataclass(frozen=True)
class Call:
    """What a graph is called with."""

    input: Input  # a request, or what continues a run
    settings: RunSettings | None
    config: RunnableConfig
    name: str = ""  # the name that the caller gave the run, or empty


def check_input(graph: Graph, given: Mapping[str, Any]) -> None:
    """Refuse invalid input before anything is reported or stored."""
    _entrance(graph).check(given)


class TeamGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """The compiled graph of a team; inputs of LangGraph's own methods are checked, too."""

    @classmethod
    def of(cls, compiled: Graph) -> Self:
        """Create one from a compiled LangGraph graph, as its own `copy` does."""
        fields = {name: each for name, each in vars(compiled).items() if name != "__orig_class__"}
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
            return completed(lambda: invoke(input, config, **options))
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
        """Stream as LangGraph does; a run's own input again continues that run."""
        config = config or {}
        async with alone(self, config, within=True) as owner:
            given = await _entering(self, Call(input, options.get("context"), config))
            if given.input is not input:
                options["context"] = given.settings
            bounded = _unbounded(given.config, self.config or {})
            trace = await _traced(self, given)
            if trace is not None:
                bounded = merge_configs(bounded, {"metadata": {_TRACE: trace.ref}})
            parts = cast("Any", super().astream(given.input, bounded, **options))
            parts = as_owner(owner, parts)
            async with aclosing(as_traced(trace, parts) if trace else parts) as given_parts:
                async for part in given_parts:
                    yield part

    def bulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Edit the state as LangGraph does; a client of a server may edit some keys only."""
        _check_edits(self, supersteps)
        return super().bulk_update_state(config, supersteps)

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Edit the state as LangGraph does, while no run works on the thread."""
        # A client of a server may edit some keys only.
        _check_edits(self, supersteps)
        async with alone(self, config, within=True) as owner:
            with owner.at_work() if owner else nullcontext():
                return await super().abulk_update_state(config, supersteps)


@asynccontextmanager
async def alone(
    graph: Graph, config: RunnableConfig, *, within: bool = False
) -> AsyncGenerator[Owner | None]:
    """Hold the thread of a call, if its store can, so that no other process works on it."""
    saver = cast("Any", graph).checkpointer
    holds = getattr(saver, "holds", None)
    call = merge_configs(graph.config, config).get("configurable", {}) if holds else {}
    thread, is_inner = call.get("thread_id"), bool(call.get("checkpoint_ns"))
    if holds is None or thread is None or is_inner:
        yield None
        return
    _check_call(graph, Call(None, None, config))
    if within and owner_in(holds.where, str(thread)):
        yield None
        return
    async with holds.holding(str(thread)) as owner:
        try:
            yield owner
        except BaseException:
            # LangGraph still has writes in progress; no other process may take the thread before.
            await saver.at_rest()
            raise


async def _traced(graph: Graph, call: Call) -> Trace | None:
    """The trace of a call, if its team, or the call around it, is traced."""
    around = trace_at_work.get()
    tracing: Tracing | None = _entrance(graph).tracing
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
    counted = worked_before.get()
    # What is called inside a run has another thread.
    worked: Mapping[object, float] = {}
    if counted is not None and counted[0] == thread:
        worked = counted[1]()
    return tracing.begun(graph.get_name(), str(thread or ""), earlier, worked)


def _check_edits(graph: Graph, supersteps: Sequence[Sequence[StateUpdate]]) -> None:
    for edit in (edit for superstep in supersteps for edit in superstep):
        _entrance(graph).check_edit(edit.values, edit.as_node)


def is_served(graph: Graph) -> bool:
    """Whether the caller of a graph, or the editor of its state, may be a client of a server."""
    return _entrance(graph).editable is not None


def shapes_of(graph: Graph) -> Mapping[str, Shape]:
    """The types of results by specialist, and that of the answer under ""."""
    # A graph that was compiled by other means has no such entrance.
    return getattr(cast("Any", graph).channels[START], "shapes", {})


def services_in(graph: Graph) -> Any:
    """The live things of a graph that `build_graph` made; None for any other."""
    return getattr(cast("Any", graph).channels[START], "services", None)


def tool_servers_of(graph: Graph) -> Mapping[str, ToolProvider]:
    """The tool servers of a graph's team, by their names."""
    services = services_in(graph)
    return {} if services is None else services.tool_servers


def team_of(graph: Graph) -> Sequence[SpecialistCard]:
    """The cards of the specialists, with the effects of their work."""
    return cast("EditablePlan", graph.channels["current_plan"]).team


def loosened(graph: Graph, before: RunSettings, after: RunSettings, by: str) -> list[str]:
    """Say who loosens which settings of a run that is under way now; at most one sentence."""
    return told_loosened(before, after, by, _entrance(graph).clock())


def _entrance(graph: Graph) -> Entrance:
    return cast("Entrance", graph.channels[START])


async def _entering(graph: Graph, call: Call) -> Call:
    _check_call(graph, call)
    if isinstance(call.input, Command):
        _entrance(graph).check_command(call.input)
    is_kept = isinstance(graph.checkpointer, BaseCheckpointSaver)
    if isinstance(call.input, Command) and call.input.resume is not None and is_kept:
        snapshot = await graph.aget_state(call.config)
        return replace(call, input=_directed(call.input, snapshot.interrupts))
    if not isinstance(call.input, Mapping):
        return call
    if not call.input:
        # The state of an old thread would be taken for a request.
        raise InputError(NOTHING_TO_DO)
    name = str(call.config.get("metadata", {}).get("run_id") or "")
    return await _delivered(graph, replace(call, name=name)) if name and is_kept else call


async def prepared(graph: Graph, call: Call) -> Call:
    """Return the call as LangGraph takes it."""
    name = call.name or str(call.config.get("metadata", {}).get("run_id") or "")
    given = {"messages": [HumanMessage(call.input)]} if isinstance(call.input, str) else call.input
    call = replace(call, input=given, name=name)
    _check_call(graph, call)
    if graph.checkpointer and not isinstance(given, Command | None):
        call = await _delivered(graph, call)
    if graph.checkpointer and isinstance(call.input, Command | None):
        return await _resumed(graph, call)
    return _named(call)


def _check_call(graph: Graph, call: Call) -> None:
    """Refuse values that no store can keep, before the run begins."""
    if isinstance(graph.checkpointer, BaseCheckpointSaver):
        # A graph that calls this one may hand its thread on.
        around = ensure_config(merge_configs(graph.config, call.config)).get("configurable", {})
        if around.get("thread_id") is None and not around.get("checkpoint_ns"):
            raise InputError(
                "The graph keeps its threads, and this call names none. Give it one, such as "
                'config={"configurable": {"thread_id": "shop"}}; `open_runtime` does so by itself.'
            )
    given, ids = call.input, call.config.get("configurable", {})
    names = {"run_id": call.name or call.config.get("metadata", {}).get("run_id")}
    told = {"thread_id": ids.get("thread_id"), **names}
    if isinstance(given, Command):
        told |= {"answer": given.resume, "update": given.update}
    elif isinstance(given, Mapping):
        told |= dict(given)
        # Of half a character in a plan, its reader says where.
        told["plan"] = "\0" if "\0" in str(given.get("plan") or "") else ""
    for name, value in told.items():
        if problem := unstorable(value):
            raise InputError(f"The {name} cannot be kept. {problem}")


async def _delivered(graph: Graph, call: Call) -> Call:
    """What an input is under its name: a run's own input again continues that run."""
    newest = await _newest_start(graph, call) if call.name else None
    if newest is None or newest.metadata.get("run_id") != call.name:
        return call
    if not _is_same(newest.checkpoint["channel_values"].get(START), call.input):
        # LangGraph would take any input under the newest name for the one that it has.
        return _nameless(call)
    # What it may do is in its state, and may have been raised since.
    begins = _begins(await graph.aget_state(call.config))
    return replace(call, input=None, settings=call.settings if begins else None)


async def _newest_start(graph: Graph, call: Call) -> CheckpointTuple | None:
    """The checkpoint of the thread's newest input; what continues a run leaves none."""
    thread = call.config.get("configurable", {}).get("thread_id")
    if thread is None:
        return None
    config: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    found = cast("Any", graph).checkpointer.alist(config, filter={"source": "input"}, limit=1)
    async with aclosing(found):
        return await anext(found, None)


def _is_same(begun: object, given: object) -> bool:
    return begun is None or _said(begun) == _said(given)


def _said(given: Any) -> tuple[Any, ...]:
    """The text of an input, in whatever form its messages are."""
    if not isinstance(given, Mapping):
        return (given,)
    asked = cast("Mapping[str, Any]", given)
    messages = conversation([], [asked.get("messages") or []])
    return (
        [(each.type, each.content) for each in messages],
        asked.get("plan"),
        asked.get("answers"),
    )


async def _resumed(graph: Graph, call: Call) -> Call:
    """Continue a run: an answer finds its question, and new settings the state."""
    snapshot = await graph.aget_state(call.config)
    _check_team(graph, snapshot)
    given = cast("Command[Any] | None", call.input)
    if given is not None:
        given = _directed(given, snapshot.interrupts)
    if _begins(snapshot):
        # It takes its name and its settings when it does.
        name = str((snapshot.metadata or {}).get("run_id") or call.name)
        return _named(replace(call, input=given, name=name))
    state = cast("EnhancedState", snapshot.values)
    call = _named(replace(call, name=state.get("run_id", "")))
    update = dict(resumed_with(state, call.settings))
    if update and not is_served(graph):
        new = cast("RunSettings", update["settings"])
        update["warnings"] = loosened(graph, settings_of(state), new, "the settings of a call")
    if update and given is None:
        given = Command(update=update)
    elif update and given is not None:
        given = replace(given, update={**cast("dict[str, Any]", given.update or {}), **update})
    return replace(call, input=given)


def _begins(snapshot: StateSnapshot) -> bool:
    """Whether the newest run of a thread has not begun yet; then the state is an earlier run's."""
    state = cast("EnhancedState", snapshot.values)
    if "settings" not in state or not _BEFORE.isdisjoint(snapshot.next):
        return True
    return "think" in snapshot.next and not has_begun(state)


def _named(call: Call) -> Call:
    if not call.name:
        return call
    return replace(call, config=merge_configs(call.config, {"metadata": {"run_id": call.name}}))


def _nameless(call: Call) -> Call:
    metadata = {**call.config.get("metadata", {})}
    metadata.pop("run_id", None)
    return replace(call, config={**call.config, "metadata": metadata}, name="")


def _unbounded(config: RunnableConfig, own: RunnableConfig) -> RunnableConfig:
    """Remove LangGraph's bounds from the config; the nodes find them as the caller set them."""
    given: list[RunnableConfig] = [config, own, inherited_config.get() or {}]
    steps = next((each["recursion_limit"] for each in given if "recursion_limit" in each), None)
    at_once = next(filter(None, (each.get("max_concurrency") for each in given)), None)
    free: RunnableConfig = {**config, "recursion_limit": sys.maxsize}
    if at_once:
        free["max_concurrency"] = sys.maxsize
    return with_bounds(free, CallerBounds(recursion_limit=steps, max_concurrency=at_once))


def _directed(command: Command[Any], interrupts: Sequence[Interrupt]) -> Command[Any] | None:
    """Address an answer to its interrupts; LangGraph itself takes no empty one."""
    # Where nothing is asked, LangGraph would keep the answer for whatever is asked next, unseen.
    does_more = bool(command.update or command.goto)
    is_answer = command.resume is not None or not does_more
    if is_answer and interrupts:
        return replace(command, resume=resumption(command.resume, interrupts))
    return replace(command, resume=None) if does_more else None


def _check_team(graph: Graph, snapshot: StateSnapshot) -> None:
    """Check that the team has all specialists that the continued round has sent steps to."""
    # LangGraph would leave the others out in silence, and what they finished with them.
    state = cast("EnhancedState", snapshot.values)
    is_in_round = all(task.name.startswith(specialist_node("")) for task in snapshot.tasks)
    if state.get("is_completed") or not is_in_round:
        return
    sent = {assignment.specialist for assignment in state.get("dispatched", [])}
    gone = sorted(name for name in sent if specialist_node(name) not in graph.nodes)
    if gone:
        names = ", ".join(f"@{name}" for name in gone)
        raise InputError(
            f"Steps of this run were sent to {names}, whom the team does not have. Resume the run "
            "with the team that it began with. Finished steps stay finished."
        )
