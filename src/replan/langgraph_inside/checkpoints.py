"""What LangGraph's savers and serializers do that their documentation does not say."""

import logging
from collections.abc import Sequence
from typing import Any

from langgraph.checkpoint.base import WRITES_IDX_MAP, DeltaChannelHistory, id as ids
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME

__all__ = ["INPUT", "INTERRUPT", "RESUME", "WRITES_IDX_MAP", "DeltaChannelHistory", "ids"]

INPUT = "__input__"
"""The name of the writes that a new input leaves on the checkpoint before it."""

SERIALIZER_LOG = logging.getLogger(jsonplus.__name__)
"""Where LangGraph's serializer warns of classes that it will not restore one day."""

UNREGISTERED = "unregistered type"
"""The words of such a warning; its first argument is the class's module."""

Writes = Sequence[tuple[str, Any]]

_NEWEST = "_last_v6_timestamp"


def restores_everything(serializer: object) -> bool:
    """Whether this is LangGraph's own serializer, and makes an instance of any class."""
    # There is no public way to ask: one that does gives itself when it is asked to take more.
    return type(serializer) is jsonplus.JsonPlusSerializer and (
        serializer is serializer.with_msgpack_allowlist([("", "")])
    )


def of_whole_tasks(writes: Writes) -> Writes:
    """Leave out what a task wrote before it failed or was cancelled.

    LangGraph hands it to the saver beside the error, and then takes the task for done: a node whose
    branch was cancelled would be the last one of its run.
    """
    is_broken_off = any(channel == ERROR for channel, _ in writes)
    return [each for each in writes if each[0] in WRITES_IDX_MAP] if is_broken_off else writes


def newest_time() -> int:
    """The newest time that LangGraph made an id of a checkpoint of; 0 before the first."""
    return getattr(ids, _NEWEST) or 0


def go_on_after(time: int) -> None:
    """Let LangGraph make ids of later times only; it has no public way to tell it so."""
    setattr(ids, _NEWEST, time)


def known_migrations(saver: type[Any]) -> int:
    """How many changes of its tables LangGraph's saver for PostgreSQL knows."""
    return len(saver.MIGRATIONS)


MIGRATIONS_TABLE = "checkpoint_migrations"
"""Where that saver keeps which changes were made."""

NEWEST_MIGRATION = "SELECT coalesce(max(v), -1) FROM checkpoint_migrations"
"""Gives the number of the newest one."""
