"""Undocumented behaviour of LangGraph's savers and serializers."""

import hashlib
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import wraps
from threading import Lock
from typing import Any, cast

from langgraph.checkpoint.base import WRITES_IDX_MAP, DeltaChannelHistory, id as ids
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.pregel import _checkpoint, _loop, main

__all__ = ["INPUT", "INTERRUPT", "RESUME", "WRITES_IDX_MAP", "DeltaChannelHistory", "ids"]

INPUT = "__input__"  # the name of the writes that a new input leaves on the checkpoint before it

SERIALIZER_LOG = logging.getLogger(jsonplus.__name__)
"""Where LangGraph's serializer warns of classes that it will not restore one day."""

UNREGISTERED = "unregistered type"
"""The words of such a warning; its first argument is the class's module."""

_NEWEST = "_last_v6_timestamp"


def restores_everything(serializer: object) -> bool:
    """Whether this is LangGraph's own serializer, which creates instances of any class."""
    # There is no public way to ask: one that does gives itself when it is asked to take more.
    return type(serializer) is jsonplus.JsonPlusSerializer and (
        serializer is serializer.with_msgpack_allowlist([("", "")])
    )


_TIMED = 6  # the version of ids that begin with a time

_LATEST = 1 << 59
"""A time in the year 3409: an id beyond would leave no room for those of all other threads."""

_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)  # where the times of ids begin
_MICROSECOND = timedelta(microseconds=1)


class CheckpointIds:
    """Makes the ids of checkpoints from a clock and a name, in LangGraph's form.

    LangGraph makes them from the time of the system and random bits. Ids of tasks and of interrupts
    follow from those of checkpoints, so they are the same with the same clock and name, too.
    """

    def __init__(self, clock: Callable[[], datetime], name: str) -> None:
        """Prepare.

        Args:
            clock: Returns the time, with a time zone.
            name: Tells these ids from others of the same time.
        """
        self.clock = clock
        self._node = int.from_bytes(hashlib.sha256(name.encode()).digest()[:6])
        self._newest = 0  # the time of the newest id
        self.newest = ""  # the newest id
        self._turn = Lock()  # graphs may also work in threads

    def new(self, clock_seq: int) -> ids.UUID:
        """Make an id above all before it."""
        now = min((self.clock() - _EPOCH) // _MICROSECOND * 10, _LATEST)
        with self._turn:
            self._newest = time = max(now, self._newest + 1)
        high, low = time >> 12, time & 0x0FFF
        number = high << 80 | low << 64 | (clock_seq & 0x3FFF) << 48 | self._node
        made = ids.UUID(int=number, version=_TIMED)
        self.newest = str(made)
        return made

    @contextmanager
    def at_work(self) -> Generator[None]:
        """Make the ids of all checkpoints of a block."""
        before = current_ids.set(self)
        try:
            yield
        finally:
            current_ids.reset(before)

    def advance(self, time: int) -> None:
        """Make ids of later times only."""
        with self._turn:
            self._newest = max(self._newest, time)


current_ids: ContextVar[CheckpointIds | None] = ContextVar("replan_checkpoint_ids", default=None)
"""What makes the ids of checkpoints here; None: LangGraph does."""


def advance_id_clock(checkpoint_id: str) -> None:
    """Let every id of a checkpoint that is made here from now on be above this one."""
    time = _time_of(checkpoint_id)
    if time > (getattr(ids, _NEWEST) or 0):
        setattr(ids, _NEWEST, time)
    if (maker := current_ids.get()) is not None:
        maker.advance(time)


def _time_of(checkpoint_id: str) -> int:
    """The time of an id; 0 if it has none that can be followed."""
    try:
        found = ids.UUID(checkpoint_id)
    except ValueError:
        return 0
    return found.time if found.version == _TIMED and found.time < _LATEST else 0


def _new_id(node: int | None = None, clock_seq: int | None = None) -> ids.UUID:
    maker = current_ids.get()
    if maker is None or clock_seq is None:
        return ids.uuid6(node, clock_seq)
    return maker.new(clock_seq)


_langgraphs = cast("Any", _checkpoint).create_checkpoint


@wraps(_langgraphs)
def _create_checkpoint(checkpoint: Any, *args: Any, **options: Any) -> Any:
    """Create a checkpoint above the one before it, whatever the clock says."""
    maker = current_ids.get()
    if maker is None:
        return _langgraphs(checkpoint, *args, **options)
    if checkpoint["id"] != maker.newest:
        maker.advance(_time_of(checkpoint["id"]))
    created = _langgraphs(checkpoint, *args, **options)
    return {**created, "ts": maker.clock().astimezone(UTC).isoformat()}


# LangGraph takes no maker of ids. Outside a graph of ours, it makes them as before.
_checkpoint.uuid6 = _new_id
_loop.create_checkpoint = main.create_checkpoint = _create_checkpoint
