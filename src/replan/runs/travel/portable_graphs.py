"""LangGraph graphs of steps that wait in the middle of their work: what of them travels.

Where such a graph stands is in checkpoints of its own, with values of the classes that its state
names. They travel as a storage writes them, and are restored as strictly: no other class is made.
LangGraph finds them by the ids of tasks, which follow from the checkpoint of the run that they are
tasks of (`task_around`). So the run goes on at a checkpoint of the same id.
"""
# LangGraph leaves the type arguments of savers open, so these methods read as unknown.
# pyright: reportUnknownMemberType=false

import base64
import binascii
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Annotated, Any, NotRequired, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import Interrupt, PregelTask, StateSnapshot
from pydantic import Field, TypeAdapter, ValidationError

# pydantic makes no schema of the TypedDict of Python 3.11.
from typing_extensions import TypedDict

from replan.calling.compiled import Graph, services_in
from replan.errors import ContextError, InputError
from replan.graph.branches import specialist_node
from replan.langgraph_inside.checkpoints import (
    INTERRUPT,
    RESUME,
    WRITES_IDX_MAP,
    advance_id_clock,
)
from replan.langgraph_inside.graphs import is_here, keeps_differences
from replan.langgraph_inside.tasks import channel_to, task_around
from replan.runs.asked.asks import seats_of
from replan.state.person.waiting import asks_of
from replan.state.session.context_fields import Path, ValueReader
from replan.storage.faults import UnreadableRecordError, UnstorableValueError
from replan.storage.serializer import StrictSerializer, strict_serializer, types_of_graph
from replan.values import Value

MOST_BYTES = 4_000_000
"""The size at most of what travels of graphs that wait, before it is written as text."""

_SPECIALIST = specialist_node("")
_NODE = channel_to("result_collector")
_OF_STEPS = frozenset({"current_specialist_results", "questions", "warnings", "limit_hits"})
_OF_FAILURES = WRITES_IDX_MAP.keys() - {INTERRUPT, RESUME}
_WRITTEN = {INTERRUPT, RESUME, _NODE, *_OF_STEPS}
_FIX = "Let its step ask with `ask_user`, or keep the run in a storage."

_Id = Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]

Write = tuple[str, str, Any]  # what a task wrote: its id, the channel, the value


class GraphAsked(Value):
    """What the graph of a step asks."""

    key: str  # the id of LangGraph's interrupt
    text: str  # the question
    step_id: int = 0
    who: str = ""  # the step and its specialist


class WaitingGraphs(Value):
    """The graphs of a round that wait."""

    asked: tuple[GraphAsked, ...] = ()  # what they ask, if nothing else of the round can be done
    # Their checkpoints, as a storage writes them, in base64.
    kept: str = Field(max_length=MOST_BYTES * 2)


class _Checkpoint(TypedDict):
    v: int
    ts: str
    id: _Id
    channel_values: dict[str, Any]
    channel_versions: dict[str, str | int | float]
    versions_seen: dict[str, dict[str, Any]]
    updated_channels: NotRequired[list[str] | None]


class _Kept(Value):
    id: _Id  # of the checkpoint of the run
    step: int
    writes: list[Write]
    graphs: list[tuple[str, _Checkpoint, dict[str, Any], list[Write]]]


async def waiting_graphs(graph: Graph, snapshot: StateSnapshot) -> WaitingGraphs | None:
    """Take the graphs that wait in a round; None if there are none."""
    tasks = [
        each for each in snapshot.tasks if each.interrupts and each.name.startswith(_SPECIALIST)
    ]
    if not tasks:
        return None
    for task in tasks:
        _check_kind(task.name, services_in(graph).specialists[_specialist_of(task.name)])
    asks = asks_of(snapshot.interrupts, seats_of(snapshot))
    if any(ask.is_keyed or ask.kind != "question" for ask in asks):
        raise _cannot_travel(tasks[0].name, "its questions are those of a team in it")
    saver = cast("BaseCheckpointSaver[Any]", graph.checkpointer)
    here = await saver.aget_tuple(snapshot.config)
    if here is None:
        raise InputError("The thread of this run was changed meanwhile. Try it once more.")
    found = here.pending_writes or ()
    # What was cut off has yet to be done.
    cut_off = {task_id for task_id, channel, _ in found if channel in _OF_FAILURES}
    own = {task.id for task in snapshot.tasks} - cut_off
    writes = [each for each in found if each[0] in own]
    if other := {channel for _, channel, _ in writes} - _WRITTEN:
        raise _cannot_travel(
            tasks[0].name, f"a step beside it ended with {', '.join(sorted(other))}"
        )
    kept = _Kept(
        id=here.checkpoint["id"],
        step=here.metadata.get("step", 0),
        writes=writes,
        graphs=[
            (
                ns,
                cast("_Checkpoint", {**each.checkpoint}),
                dict(each.metadata),
                [*(each.pending_writes or ())],
            )
            for ns, each in (await _inside(saver, snapshot, tasks)).items()
        ],
    )
    done = {task_id for task_id, _, _ in writes}
    is_rest_done = all(task.id in done for task in snapshot.tasks)
    return WaitingGraphs(
        asked=tuple(
            GraphAsked(key=ask.key, text=ask.text, step_id=ask.step_id, who=ask.who) for ask in asks
        )
        if is_rest_done
        else (),
        kept=_pack(kept, _serializer(graph), tasks[0].name),
    )


def kept_in(graphs: WaitingGraphs, graph: Graph, path: Path = ()) -> "_Kept":
    """Read what travelled, for a graph of the same team."""
    reading = ValueReader()
    try:
        packed = base64.b64decode(graphs.kept, validate=True)
        value = _serializer(graph).loads_typed(("msgpack", packed))
        kept = TypeAdapter(_Kept).validate_python(value)
    except (binascii.Error, UnreadableRecordError, ValidationError, RecursionError):
        reading.refuse((*path, "kept"), None, "it is damaged", "Send the run as it was.")
        raise ContextError(list(reading.mistakes.values())) from None
    ids = {task_id for task_id, channel, _ in kept.writes if channel == INTERRUPT}
    written = [*kept.writes, *(each for *_, writes in kept.graphs for each in writes)]
    asked = [value for _, channel, value in written if channel == INTERRUPT]
    is_own = all(_is_inside(ns, ids) for ns, *_ in kept.graphs) and all(map(_are_interrupts, asked))
    if not is_own or any(channel not in _WRITTEN for _, channel, _ in kept.writes):
        reading.refuse((*path, "kept"), None, "not all of it is graphs that wait", "Leave it out.")
        raise ContextError(list(reading.mistakes.values()))
    return kept


async def put_back(kept: "_Kept", state: CheckpointTuple, graph: Graph, thread_id: str) -> None:
    """Put a run with its waiting graphs on a new thread; `state` is of the same run elsewhere."""
    saver = cast("BaseCheckpointSaver[Any]", graph.checkpointer)
    advance_id_clock(max([kept.id, *(checkpoint["id"] for _, checkpoint, _, _ in kept.graphs)]))
    run = {**state.checkpoint, "id": kept.id}
    metadata = {**state.metadata, "step": kept.step}
    await _put(saver, thread_id, "", run, metadata, kept.writes)
    for ns, checkpoint, about, writes in kept.graphs:
        await _put(saver, thread_id, ns, checkpoint, about, writes)
    place: RunnableConfig = {"configurable": {"thread_id": thread_id}}
    snapshot = await graph.aget_state(place)
    if not {task_id for task_id, _, _ in kept.writes} <= {task.id for task in snapshot.tasks}:
        raise InputError(
            "This version of LangGraph does not find the graphs that wait in this run. Continue "
            "it with the version with which they began, or start a new run."
        )


async def _put(
    saver: BaseCheckpointSaver[Any],
    thread_id: str,
    ns: str,
    checkpoint: Mapping[str, Any],
    metadata: Mapping[str, Any],
    writes: Sequence[Write],
) -> None:
    place = {"thread_id": thread_id, "checkpoint_ns": ns}
    config: RunnableConfig = {"configurable": place}
    versions = checkpoint["channel_versions"]
    await saver.aput(config, cast("Any", checkpoint), cast("Any", metadata), versions)
    config = {"configurable": {**place, "checkpoint_id": checkpoint["id"]}}
    for task_id, of_task in groupby(sorted(writes, key=_task_of), _task_of):
        await saver.aput_writes(config, [write[1:] for write in of_task], task_id)


def _task_of(write: Write) -> str:
    return write[0]


async def _inside(
    saver: BaseCheckpointSaver[Any], snapshot: StateSnapshot, tasks: Sequence[PregelTask]
) -> dict[str, CheckpointTuple]:
    """The newest checkpoint of each graph inside tasks, by its place."""
    ids = {task.id for task in tasks}
    thread = snapshot.config.get("configurable", {})["thread_id"]
    newest: dict[str, CheckpointTuple] = {}
    async for each in saver.alist({"configurable": {"thread_id": thread}}):
        ns = str(each.config.get("configurable", {}).get("checkpoint_ns", ""))
        is_newer = ns not in newest or each.checkpoint["id"] > newest[ns].checkpoint["id"]
        if _is_inside(ns, ids) and is_newer:
            newest[ns] = each
    return newest


def _is_inside(ns: str, task_ids: set[str]) -> bool:
    name, task_id = task_around(ns)
    return name.startswith(_SPECIALIST) and task_id in task_ids


def _are_interrupts(value: Any) -> bool:
    parts = cast("Sequence[Any]", value) if isinstance(value, list | tuple) else [value]
    return all(isinstance(each, Interrupt) for each in parts)


def _specialist_of(node: str) -> str:
    return node.removeprefix(_SPECIALIST)


def _check_kind(node: str, specialist: Any) -> None:
    """Refuse a graph of which more than its newest checkpoints would have to travel."""
    graph = getattr(specialist, "graph", None)
    if graph is None:
        return
    if not is_here(graph):
        raise _cannot_travel(node, "it is on a server")
    if keeps_differences(graph):
        raise _cannot_travel(node, "its checkpoints have only what changed since earlier ones")


def _serializer(graph: Graph) -> StrictSerializer:
    """Restores what the states of the specialists' graphs may hold."""
    found = (getattr(each, "graph", None) for each in services_in(graph).specialists.values())
    allowed = frozenset[type]().union(*(types_of_graph(each) for each in found if each))
    return strict_serializer(allowed)


def _pack(kept: _Kept, serializer: StrictSerializer, node: str) -> str:
    plain = {name: getattr(kept, name) for name in _Kept.model_fields}
    try:
        _, packed = serializer.dumps_typed(plain)
        whole = serializer.loads_typed(("msgpack", packed))
    except (UnstorableValueError, UnreadableRecordError) as error:
        raise _cannot_travel(node, "its state has a value that cannot be written") from error
    if lost := _lost_class(plain, whole):
        raise _cannot_travel(node, f"its state has a {lost}, which its schema does not name")
    if len(packed) > MOST_BYTES:
        raise _cannot_travel(node, f"its state has more than {MOST_BYTES:,} bytes")
    return base64.b64encode(packed).decode()


def _lost_class(value: Any, restored: Any) -> str:
    """The class of a value that does not come back as what it is; empty if all do."""
    kind = cast("type[Any]", type(value))
    is_same = kind is type(restored)
    if isinstance(value, dict) and isinstance(restored, dict):
        given, found = cast("dict[Any, Any]", value), cast("dict[Any, Any]", restored)
        return next(
            filter(None, (_lost_class(each, found.get(key)) for key, each in given.items())), ""
        )
    if isinstance(value, list | tuple) and isinstance(restored, list | tuple):
        pairs = zip(cast("Sequence[Any]", value), cast("Sequence[Any]", restored), strict=False)
        return next(filter(None, (_lost_class(*pair) for pair in pairs)), "")
    return "" if is_same else kind.__name__


def _cannot_travel(node: str, why: str) -> InputError:
    return InputError(
        f"The graph of @{_specialist_of(node)} waits in the middle of its work, and its state "
        f"cannot travel: {why}. {_FIX}"
    )
