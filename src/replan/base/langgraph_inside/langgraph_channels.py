"""Channels that store what is new, and one channel for all keys of a state that nothing keeps.

LangGraph goes through all channels in each super-step and wherever it makes, writes or reads a
checkpoint. Most keys of the state do not change in a short run, and no store gains from having
them apart.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Self, cast

from langgraph.channels import DeltaChannel, LastValue
from langgraph.channels.base import BaseChannel
from langgraph.constants import START
from langgraph.pregel._write import ChannelWrite, ChannelWriteTupleEntry
from langgraph.types import Overwrite
from pydantic import Field

SNAPSHOT_AFTER = 10
"""Writes of a channel until its first snapshot; a larger value has fewer snapshots."""

LONGEST_IDLE = 500
"""Super-steps without a write until a snapshot, so that the value is found quickly."""

NOTHING: object = LastValue[Any](object).value
"""The value that LangGraph stores in a channel that was never written."""


# A snapshot after every so many writes would make a growing value grow with its square. So the
# writes between two snapshots grow with the value: all snapshots together are at most twice as
# large as the last one, and a restore replays at most half of the writes. A restore also looks
# through every checkpoint since the last snapshot, so a channel that rests gets one, too.
# Measured with a thread of 200 runs in SQLite: whole values make the file 22 times as large and
# double the CPU time; LangGraph's own rhythm, a snapshot after 100 writes, makes the same file and
# takes a fifth more CPU time.
class Delta(DeltaChannel[Any]):
    """A value of which a checkpoint stores the new writes, and sometimes a snapshot."""

    __slots__ = ("idle", "kind", "least", "text")

    def __init__(
        self,
        reducer: Callable[[Any, Sequence[Any]], Any],
        typ: Any = None,
        *,
        snapshot_frequency: int = SNAPSHOT_AFTER,
    ) -> None:
        self.idle = 0
        super().__init__(reducer, typ, snapshot_frequency=snapshot_frequency)
        # The parent keeps `dict` of `dict[str, X]`, which is too little for a check.
        self.kind = typ

    @property
    def UpdateType(self) -> Any:  # noqa: N802 - LangGraph's name
        """What a form offers to write, with its text where the channel has one."""
        return with_text(super().UpdateType, self)

    @property
    def snapshot_frequency(self) -> int:
        """Writes between two snapshots; 0 asks for one now."""
        is_due = self.idle > 0 and self.idle % LONGEST_IDLE == 0
        return 0 if is_due else max(self.least, self.size() // 2)

    @snapshot_frequency.setter
    def snapshot_frequency(self, least: int) -> None:
        # The parent sets what a channel was made with.
        self.least = least

    def update(self, values: Sequence[Any]) -> bool:
        """Take the writes of a super-step; LangGraph also calls this without writes."""
        self.idle = 0 if values else self.idle + 1
        return bool(values) and super().update([self.written(value) for value in values])

    def replay_writes(self, writes: Sequence[tuple[str, str, Any]]) -> None:
        """Apply stored writes, which a server may return as plain dicts."""
        super().replay_writes(
            [(task, key, self.written(value, is_stored=True)) for task, key, value in writes]
        )

    def written(self, value: Any, *, is_stored: bool = False) -> Any:
        """Apply one write, unchanged unless a subclass checks it."""
        return value

    def size(self) -> int:
        """How many parts the value has, which a snapshot writes all."""
        held = self.value if self.is_available() else None
        return len(cast("list[Any]", held)) if isinstance(held, list | dict) else 0

    def copy(self) -> Self:
        """Copy; the value may be shared, since no reducer changes it in its place."""
        twin = self.empty_twin()
        twin.value = self.value
        return twin

    def in_snapshot(self, checkpoint: Any) -> Any:
        """The value in a snapshot, in whatever form LangGraph wrote it."""
        return DeltaChannel[Any](self.reducer, list).from_checkpoint(checkpoint).value

    def empty_twin(self) -> Self:
        """A channel like this one without a value."""
        # For each fork, a copy of each channel: making it again takes eight times as long.
        twin = object.__new__(type(self))
        twin.key, twin.typ, twin.reducer = self.key, self.typ, self.reducer  # pyright: ignore[reportUnknownMemberType]
        twin.kind, twin.least, twin.idle = self.kind, self.least, 0
        return twin


def with_text(kind: Any, channel: object) -> Any:
    """A type for forms: LangGraph's server makes its forms from the types of channels."""
    text = getattr(channel, "text", "")
    return Annotated[kind, Field(description=text)] if text else kind


def overwriting(value: Any) -> Overwrite | None:
    """The new value of a write that replaces the value, in its two forms; else None."""
    if isinstance(value, Overwrite):
        return value
    form = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return Overwrite(form["__overwrite__"]) if "__overwrite__" in form else None


_BRANCH = "branch:to:"  # what the channel that lets a node begin is called, before its name

_STATE_AND_BEGIN = 2  # the channels of an input whose first node is asked for what follows it

STATE = "whole_state"
"""The channel that has all keys."""

Write = tuple[str, Any]


class Made(dict[str, Any]):
    """A whole state that a channel like the one that is to take it has made, and checked."""


class OneChannel(BaseChannel[Any, Any, Any]):
    """A whole state, whose keys change as in channels of their own."""

    __slots__ = ("keys", "value")

    def __init__(
        self, keys: Mapping[str, BaseChannel[Any, Any, Any]], first: Mapping[str, Any]
    ) -> None:
        """Prepare; `keys` are the channels that the keys would have."""
        super().__init__(dict, STATE)
        self.keys = keys
        empty = {key: channel.from_checkpoint(NOTHING) for key, channel in keys.items()}
        there = {key: each.get() for key, each in empty.items() if each.is_available()}
        self.value = self._in_order({**there, **first})

    @property
    def ValueType(self) -> Any:  # noqa: N802 - LangGraph's name
        """The type of the value."""
        return dict

    @property
    def UpdateType(self) -> Any:  # noqa: N802 - LangGraph's name
        """The type of a write."""
        return dict

    def copy(self) -> Self:
        """Copy; the value may be shared, since nothing changes it in its place."""
        twin = object.__new__(type(self))
        twin.key, twin.typ, twin.keys, twin.value = self.key, self.typ, self.keys, self.value
        return twin

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Restore what the same process has kept in memory."""
        twin = self.copy()
        if checkpoint is not NOTHING:
            twin.value = checkpoint
        return twin

    def get(self) -> dict[str, Any]:
        """Return the state, to which LangGraph adds what a run waits for."""
        return {**self.value}

    def is_available(self) -> bool:
        """Whether there is a state, which there always is."""
        return True

    def update(self, values: Sequence[Mapping[str, Any]]) -> bool:
        """Take the writes of a super-step; LangGraph also calls this without writes."""
        if not values:
            return False
        if isinstance(values[0], Made):
            self.value = values[0]
            return True
        written = dict[str, list[Any]]()
        for key, value in (write for each in values for write in each.items()):
            written.setdefault(key, []).append(value)
        changed = {key: self._changed(key, writes) for key, writes in written.items()}
        self.value = self._in_order({**self.value, **changed})
        return True

    def _in_order(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The same state, whichever key was written first: sessions carry it as text."""
        return {key: state[key] for key in self.keys if key in state}

    def _changed(self, key: str, writes: Sequence[Any]) -> Any:
        channel: Any = self.keys[key].copy()
        channel.value = self.value.get(key, NOTHING)
        channel.update(writes)
        return channel.get()


def with_one_channel(graph: Any, first: Mapping[str, Any]) -> None:
    """Let a compiled graph have all keys of its state in one channel.

    Args:
        graph: The graph, which nothing has called yet.
        first: What keys hold on a new thread.
    """
    keys: dict[str, Any] = {**graph.builder.channels}
    for node in graph.nodes.values():
        if isinstance(node.channels, list):
            node.channels = STATE
        for writer in node.writers:
            if isinstance(writer, ChannelWrite):
                writer.writes = [_together(entry, keys) for entry in writer.writes]
            options: dict[str, Any] = getattr(writer, "kwargs", {})
            if isinstance(reader := options.get("reader"), partial):
                options["reader"] = partial(reader, select=STATE)
    others = {key: channel for key, channel in graph.channels.items() if key not in keys}
    graph.channels = {**others, STATE: OneChannel(keys, first)}
    graph.stream_channels = graph.output_channels = STATE
    edges = graph.builder.edges
    begin = next(node for start, node in edges if start == START)
    behind = (node for start, node in edges if start == begin)
    graph.input_channels = [STATE, *(f"{_BRANCH}{node}" for node in (begin, *behind))]


def is_in_one_channel(graph: Any) -> bool:
    """Whether a compiled graph has all keys of its state in one channel."""
    return STATE in graph.channels


def begins_apart(graph: Any) -> bool:
    """Whether the node that a run begins with is a super-step of its own."""
    return len(graph.input_channels) > _STATE_AND_BEGIN


def given_at_once(graph: Any, given: Any) -> Any:
    """An input as the channels of a graph take it: no super-step does nothing but hand it on."""
    state, begins, *_ = graph.input_channels
    return {state: given, begins: None}


async def begun_at_once(graph: Any, given: Any, begin: Callable[[Any], Awaitable[Any]]) -> Any:
    """The input of a new thread behind the node that a run begins with, which needs no super-step.

    Args:
        graph: The graph.
        given: The input.
        begin: Does what that node does with the state.
    """
    state, _, *behind = graph.input_channels
    channel = graph.channels[state].copy()
    channel.update([given])
    channel.update([await begin(channel.get())])
    return {state: Made(channel.value), **dict.fromkeys(behind)}


def _together(entry: Any, keys: Mapping[str, object]) -> Any:
    """An entry of a writer that writes all changed keys at once."""
    if not isinstance(entry, ChannelWriteTupleEntry):
        return entry
    apart: Callable[[Any], Sequence[Write] | None] = entry.mapper

    def mapper(value: Any) -> Sequence[Write]:
        writes = apart(value) or ()
        state = {key: each for key, each in writes if key in keys}
        others = [write for write in writes if write[0] not in keys]
        return [(STATE, state), *others] if state else others

    return entry._replace(mapper=mapper)
