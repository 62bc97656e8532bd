"""What a call of a graph is to LangGraph: a separate run, or one that continues.

A run that continues keeps its name and its bounds, even if the caller does not give them again.
The input that began a run, given again under its name, continues it too: a queue may deliver a job
twice.
"""
# LangGraph leaves the type arguments of savers and commands open, so these methods read as unknown.
# pyright: reportUnknownMemberType=false

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, merge_configs
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.constants import START
from langgraph.types import Command, Interrupt, StateSnapshot

from replan.base.errors import InputError
from replan.base.langgraph_inside.tasks import inherited_config
from replan.base.texts.storable import unstorable
from replan.nodes.host.handed_plan import NOTHING_TO_DO
from replan.nodes.host.new_settings import changed_settings
from replan.runs.calling.barred import check_not_barred
from replan.runs.calling.compiled import (
    Graph,
    input_guard_of,
    is_served,
    loosened,
    services_in,
)
from replan.runs.calling.given_input import (
    Input,
    check_fields,
    messages_in,
    of_client,
    with_request,
)
from replan.state.enhanced import EnhancedState, settings_of
from replan.state.limits import RunSettings
from replan.state.person.reviews import holds_review
from replan.state.person.waiting import addressed
from replan.state.team import specialist_node

NOTHING_TO_CONTINUE = (
    "There is nothing to continue: the state of this team's runs is not kept. Give a request; or "
    "give the team a storage, such as open_runtime(team, storage=...), and resume a run by its id."
)
"""The error for no input, where no run can be continued."""

_BEGIN = "begin"  # the node that begins a run


@dataclass(frozen=True)
class Call:
    input: Input  # a request, or what continues a run
    settings: RunSettings | None
    config: RunnableConfig
    name: str = ""  # the name that the caller gave the run, or empty
    warnings: tuple[str, ...] = ()  # what is to be known of a run that continues
    is_first: bool = False  # whether it begins a run on a thread that is new


async def normalise_call(graph: Graph, call: Call) -> Call:
    check_call(graph, call)
    if is_served(graph):
        call = replace(call, input=of_client(call.input))
    if isinstance(call.input, Command):
        input_guard_of(graph).check_command(call.input)
    is_kept = isinstance(graph.checkpointer, BaseCheckpointSaver)
    if isinstance(call.input, Command) and call.input.resume is not None and is_kept:
        snapshot = await graph.aget_state(call.config)
        await _check_not_barred(graph, snapshot)
        return replace(call, input=_address_answer(graph, call.input, snapshot.interrupts))
    if call.input is None and is_kept:
        return await _named(graph, call)
    if not isinstance(call.input, Mapping):
        return call
    _check_fields(call.input, call.config)
    if not call.input:
        # The state of an old thread would be taken for a request.
        raise InputError(NOTHING_TO_DO)
    if is_served(graph) and is_kept and call.input.get("plan"):
        await _check_plan(graph, call)
    name = str(call.config.get("metadata", {}).get("run_id") or "")
    return await _continued_if_same(graph, replace(call, name=name)) if name and is_kept else call


def _check_fields(run_input: Mapping[str, Any], config: RunnableConfig) -> None:
    # A graph around this one may hand on its own state.
    is_inside = config.get("configurable", {}).get("checkpoint_ns")
    if inherited_config.get() is None and not is_inside:
        check_fields(run_input, EnhancedState.__annotations__)


async def _named(graph: Graph, call: Call) -> Call:
    """A call that continues a run, with the name of that; one that has begun may be given another.

    LangGraph's server calls each continuation by a name of its own.
    """
    ids = call.config.get("configurable", {})
    if ids.get("thread_id") is None or ids.get("checkpoint_ns"):
        return call
    snapshot = await graph.aget_state(call.config)
    if is_not_begun(snapshot):
        return _with_name(replace(call, name=_name_in(snapshot)))
    await _check_not_barred(graph, snapshot)
    if call.config.get("metadata", {}).get("run_id"):
        return call
    return _with_name(replace(call, name=str(snapshot.values.get("run_id") or "")))


async def _check_not_barred(graph: Graph, snapshot: StateSnapshot) -> None:
    """Refuse to continue a run that must not go on here."""
    if run_id := str(snapshot.values.get("run_id") or ""):
        await check_not_barred(services_in(graph).log, run_id)


async def _check_plan(graph: Graph, call: Call) -> None:
    """Refuse a client's plan that loosens the unfinished one of its thread, before it is stored."""
    state = cast("EnhancedState", (await graph.aget_state(call.config)).values)
    before = None if state.get("is_completed") else state.get("current_plan")
    input_guard_of(graph).check_plan(str(cast("Any", call.input)["plan"]), before)


async def prepared(graph: Graph, call: Call) -> Call:
    """Return the call as LangGraph takes it."""
    name = call.name or str(call.config.get("metadata", {}).get("run_id") or "")
    call = replace(call, name=name, input=with_request(call.input))
    check_call(graph, call)
    if call.input is None and not graph.checkpointer and inherited_config.get() is None:
        raise InputError(NOTHING_TO_CONTINUE)
    if graph.checkpointer and not isinstance(call.input, Command | None):
        call = await _continued_if_same(graph, call)
    if graph.checkpointer and isinstance(call.input, Command | None):
        return await _resumed(graph, call)
    return _with_name(call)


def check_call(graph: Graph, call: Call) -> None:
    """Refuse values that no store can keep, before the run begins."""
    if isinstance(graph.checkpointer, BaseCheckpointSaver):
        # A graph that calls this one may hand its thread on.
        around = ensure_config(merge_configs(graph.config, call.config)).get("configurable", {})
        if around.get("thread_id") is None and not around.get("checkpoint_ns"):
            raise InputError(
                "The graph keeps its threads, and this call names none. Give it one, such as "
                'config={"configurable": {"thread_id": "shop"}}; `open_runtime` does so by itself.'
            )
    sent, ids = call.input, call.config.get("configurable", {})
    names = {"run_id": call.name or call.config.get("metadata", {}).get("run_id")}
    values = {"thread_id": ids.get("thread_id"), **names}
    if isinstance(sent, Command):
        values |= {"answer": sent.resume, "update": sent.update}
    elif isinstance(sent, Mapping):
        values |= dict(sent)
        # Of half a character in a plan, its reader says where.
        values["plan"] = "\0" if "\0" in str(sent.get("plan") or "") else ""
    check_storable(values)


def check_storable(values: Mapping[str, object]) -> None:
    """Refuse what not every store keeps, by its name."""
    for name, value in values.items():
        if problem := unstorable(value):
            raise InputError(f"The {name} cannot be kept. {problem}")


async def _continued_if_same(graph: Graph, call: Call) -> Call:
    """What an input is under its name: a run's own input again continues that run."""
    newest = await _newest_start(graph, call) if call.name else None
    if newest is None or newest.metadata.get("run_id") != call.name:
        return call
    if not _is_same(_input_of(newest), call.input):
        # LangGraph would take any input under the newest name for the one that it has.
        return _without_name(call)
    # What it may do is in its state, and may have been raised since.
    begins = is_not_begun(await graph.aget_state(call.config))
    return replace(call, input=None, settings=call.settings if begins else None)


async def began_otherwise(graph: Graph, thread_id: str, run_id: str, sent: Input) -> bool:
    """Whether the run of an id on a thread was begun with another input than this."""
    started = await _newest_input(graph, thread_id, {"run_id": run_id})
    return started is not None and not _is_same(_input_of(started), sent)


async def _newest_start(graph: Graph, call: Call) -> CheckpointTuple | None:
    """The checkpoint of the thread's newest input; what continues a run leaves none."""
    thread = call.config.get("configurable", {}).get("thread_id")
    return None if thread is None else await _newest_input(graph, thread, {})


async def _newest_input(
    graph: Graph, thread_id: str, wanted: Mapping[str, str]
) -> CheckpointTuple | None:
    """The checkpoint of the newest input of a thread, of those with this in their metadata."""
    config: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    checkpoints = cast("Any", graph).checkpointer.alist(
        config, filter={"source": "input", **wanted}, limit=1
    )
    async with aclosing(checkpoints):
        return await anext(checkpoints, None)


def _input_of(started: CheckpointTuple) -> object:
    return started.checkpoint["channel_values"].get(START)


def _is_same(stored: object, sent: object) -> bool:
    return stored is None or _texts_of_input(stored) == _texts_of_input(sent)


def _texts_of_input(sent: Any) -> tuple[Any, ...]:
    """The text of an input, in whatever form its messages are."""
    if not isinstance(sent, Mapping):
        return (sent,)
    fields = cast("Mapping[str, Any]", sent)
    return (
        [(message.type, message.content) for message in messages_in(fields)],
        fields.get("plan"),
        fields.get("plan_by"),
        fields.get("answers"),
    )


async def _resumed(graph: Graph, call: Call) -> Call:
    """Continue a run: an answer finds its question, and new settings the state."""
    snapshot = await graph.aget_state(call.config)
    _check_team(graph, snapshot)
    command = cast("Command[Any] | None", call.input)
    if command is not None:
        command = _address_answer(graph, command, snapshot.interrupts)
    if is_not_begun(snapshot):
        # It takes its name and its settings when it does.
        name = _name_in(snapshot) or call.name
        return _with_name(replace(call, input=command, name=name))
    state = cast("EnhancedState", snapshot.values)
    call = _with_name(replace(call, name=state.get("run_id", "")))
    update = dict(changed_settings(state, call.settings))
    if update and not is_served(graph):
        new = cast("RunSettings", update["settings"])
        update["warnings"] = loosened(graph, settings_of(state), new, "the settings of a call")
    if call.warnings:
        update["warnings"] = [*call.warnings, *cast("Sequence[str]", update.get("warnings", ()))]
    if update and command is None:
        command = Command(update=update)
    elif update and command is not None:
        command = replace(
            command, update={**cast("dict[str, Any]", command.update or {}), **update}
        )
    return replace(call, input=command)


def is_not_begun(snapshot: StateSnapshot) -> bool:
    """Whether the newest run of a thread has not begun yet; then the state is an earlier run's."""
    state = cast("EnhancedState", snapshot.values)
    # A task that ended is not next any more, also before there is a checkpoint behind it.
    takes_input = any(task.name == START for task in snapshot.tasks)
    return "settings" not in state or takes_input or _BEGIN in snapshot.next


def _name_in(snapshot: StateSnapshot) -> str:
    """The name that a run was called by, which its checkpoints carry."""
    return str((snapshot.metadata or {}).get("run_id") or "")


def _with_name(call: Call) -> Call:
    if not call.name:
        return call
    return replace(call, config=merge_configs(call.config, {"metadata": {"run_id": call.name}}))


def _without_name(call: Call) -> Call:
    metadata = {**call.config.get("metadata", {})}
    metadata.pop("run_id", None)
    return replace(call, config={**call.config, "metadata": metadata}, name="")


def _address_answer(
    graph: Graph, command: Command[Any], interrupts: Sequence[Interrupt]
) -> Command[Any] | None:
    """Address an answer to its interrupts; LangGraph itself takes no empty one."""
    # Where nothing is asked, LangGraph would keep the answer for whatever is asked next, unseen.
    does_more = bool(command.update or command.goto)
    is_answer = command.resume is not None or not does_more
    if is_answer and interrupts:
        try:
            values = addressed(command.resume, interrupts)
        except InputError:
            draws_forms = is_served(graph) or holds_review(command.resume)
            if not draws_forms or len(interrupts) > 1:
                raise
            # Studio and such clients show no error of a run. Its node says what is wrong.
            values = _unread_answer(command.resume, interrupts[0].id)
        return replace(command, resume=values)
    return replace(command, resume=None) if does_more else None


def _unread_answer(answer: Any, interrupt_id: str) -> dict[str, Any]:
    """An answer that could not be read, under the id of its interrupt, as it may be already."""
    by_id = cast("Mapping[str, Any]", answer) if isinstance(answer, Mapping) else dict[str, Any]()
    return {interrupt_id: by_id.get(interrupt_id, answer)}


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
