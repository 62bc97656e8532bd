"""Undocumented behaviour of LangGraph's savers and serializers."""

import logging
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, DeltaChannelHistory, id as ids
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME

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


def newest_time() -> int:
    """The latest time from which LangGraph made an id of a checkpoint; 0 before the first."""
    return getattr(ids, _NEWEST) or 0


def go_on_after(time: int) -> None:
    """Let LangGraph make ids of later times only; it has no public way for this."""
    setattr(ids, _NEWEST, time)


def known_migrations(saver: type[Any]) -> int:
    """How many changes of its tables LangGraph's saver for PostgreSQL knows."""
    return len(saver.MIGRATIONS)


MIGRATIONS_TABLE = "checkpoint_migrations"  # where that saver records its migrations

NEWEST_MIGRATION = "SELECT coalesce(max(v), -1) FROM checkpoint_migrations"
"""Returns the number of the newest one."""
