"""What depends on the checkpoints before one: delta channels, pruning, forks, taking runs back.

A delta channel stores what was written to it, and sometimes a whole value: reading it goes back
along the parents of a checkpoint to the last whole value. So what lies between stays.

The log says what happened, the checkpoint where the graph stands. Who goes back to an older
checkpoint, by a call, an edit or a rollback, leaves rows of the log behind that did happen, and
that this branch has not seen: from then on a result counts for it only if it answers for the same
work.
"""

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

from langgraph.checkpoint.base import PendingWrite
from langgraph.checkpoint.serde.base import SerializerProtocol
from pydantic import JsonValue

from replan.base.langgraph_inside.checkpoints import INPUT, INTERRUPT, RESUME, DeltaChannelHistory
from replan.log.rows import FORKED, NewRow, span
from replan.log.run_log import BEGAN
from replan.storage.checkpoints.checkpoint_rows import (
    AT,
    NewCheckpoint,
    ThreadKey,
    Value,
    newest_id,
    read_versions,
    stored_values,
)
from replan.storage.databases.database import Connection, marks
from replan.storage.log_rows import SqlLogs

# LangGraph leaves parts of a checkpoint's types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false


Lineage = Mapping[str, str | None]
"""Checkpoints, with the one that each continues from."""

_PAGE = 64  # checkpoints that are looked at with one statement on the way back
_COUNTERS = "counters_since_delta_snapshot"  # metadata: the delta channels that have no whole value

# `CROSS JOIN` lets SQLite look each parent up by its key, whatever it knows of the table.
_PATH = f"""
WITH RECURSIVE path (checkpoint_id, parent_id, versions, depth) AS (
    SELECT checkpoint_id, parent_id, versions, 0 FROM replan_checkpoints
    WHERE thread_id = ? AND namespace = ? AND checkpoint_id = ?
    UNION ALL
    SELECT one.checkpoint_id, one.parent_id, one.versions, path.depth + 1
    FROM path CROSS JOIN replan_checkpoints AS one
    WHERE one.thread_id = ? AND one.namespace = ? AND one.checkpoint_id = path.parent_id
    AND path.depth < {_PAGE}
)
SELECT checkpoint_id, versions FROM path WHERE depth > 0 ORDER BY depth
"""
_WRITES = """
SELECT checkpoint_id, task_id, channel, kind, value FROM replan_writes
WHERE thread_id = ? AND namespace = ? AND checkpoint_id >= ? AND checkpoint_id < ?
AND channel IN ({channels}) ORDER BY checkpoint_id, task_path, task_id, number
"""
_COPIED = {
    "replan_checkpoints": "namespace, checkpoint_id, parent_id, versions, run_id, kind, checkpoint,"
    " metadata_kind, metadata",
    "replan_channels": "namespace, channel, version, kind, value",
    "replan_writes": "namespace, checkpoint_id, task_id, number, task_path, channel, kind, value",
}
_CHANNELS = f"SELECT channel, version FROM replan_channels WHERE {AT}"
_VERSIONS = f"SELECT versions FROM replan_checkpoints WHERE {AT}"
_LEFT_ON = f"""
DELETE FROM replan_writes WHERE {AT} AND checkpoint_id = ? AND (
    task_id = ? OR channel = ? OR (channel <> ? AND task_id IN (
        SELECT task_id FROM replan_writes WHERE {AT} AND checkpoint_id = ? AND channel = ?)))
"""

logger = logging.getLogger(__name__)


class _Path:
    """The way back from a checkpoint, as far as some channels have no whole value."""

    def __init__(
        self,
        connection: Connection,
        thread_key: ThreadKey,
        start: str,
        channels: Sequence[str],
    ) -> None:
        self.ids: list[str] = []  # the checkpoints before it, the nearest first
        self.seeds: dict[str, tuple[str, Value]] = {}  # where the whole value is, and the value
        self._missing = set(channels)
        while self._missing and (
            rows := connection.query(_PATH, [*thread_key, start, *thread_key])
        ):
            self._look_at(
                connection,
                thread_key,
                [(row, read_versions(versions)) for row, versions in rows],
            )
            start = rows[-1][0]

    def _look_at(
        self,
        connection: Connection,
        thread_key: ThreadKey,
        page: Sequence[tuple[str, dict[str, str]]],
    ) -> None:
        wanted = {
            (channel, str(versions[channel]))
            for _, versions in page
            for channel in self._missing & versions.keys()
        }
        stored = stored_values(connection, thread_key, wanted)
        for checkpoint_id, versions in page:
            if not self._missing:
                return
            self.ids.append(checkpoint_id)
            for channel in self._missing & versions.keys():
                if (value := stored.get((channel, str(versions[channel])))) is not None:
                    self.seeds[channel] = checkpoint_id, value
            self._missing -= self.seeds.keys()


def delta_history(
    connection: Connection,
    serde: SerializerProtocol,
    thread_key: ThreadKey,
    checkpoint_id: str | None,
    channels: Sequence[str],
) -> dict[str, DeltaChannelHistory]:
    """What was written to channels before a checkpoint, since their last whole values."""
    start = checkpoint_id or newest_id(connection, thread_key) or ""
    path = _Path(connection, thread_key, start, channels)
    history: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
    if not path.ids:
        return history
    for channel, (_, value) in path.seeds.items():
        history[channel]["seed"] = serde.loads_typed(value)
    on_path, oldest = frozenset(path.ids), path.ids[-1]
    query = _WRITES.format(channels=marks(len(channels)))
    for row in connection.query(query, [*thread_key, oldest, start, *channels]):
        at, task_id, channel, kind, value = row
        # An older write is in the whole value; one of another branch is none of this checkpoint.
        if at in on_path and at >= path.seeds.get(channel, ("",))[0]:
            write: PendingWrite = (task_id, channel, serde.loads_typed((kind, value)))
            history[channel]["writes"].append(write)
    return history


def copy_thread(connection: Connection, source: str, target: str) -> None:
    """Put all checkpoints of a thread on another one, too."""
    for table, columns in _COPIED.items():
        copy = (
            f"INSERT INTO {table} (thread_id, {columns})"
            f" SELECT CAST(? AS TEXT), {columns} FROM {table} WHERE thread_id = ?"
            " ON CONFLICT DO NOTHING"
        )
        connection.change(copy, [target, source])


def keep_newest(connection: Connection, serde: SerializerProtocol, thread_id: str) -> None:
    """Remove all checkpoints of a thread but the newest of each namespace, and what that needs."""
    heads = connection.query(
        "SELECT namespace, max(checkpoint_id) FROM replan_checkpoints"
        " WHERE thread_id = ? GROUP BY namespace",
        [thread_id],
    )
    for namespace, newest in heads:
        thread_key = ThreadKey(thread_id, namespace)
        needed = _delta_channels(connection, serde, thread_key, [newest])
        kept = [newest, *_Path(connection, thread_key, newest, sorted(needed)).ids]
        _delete(
            connection,
            thread_key,
            sorted(_ids(connection, thread_key).difference(kept)),
        )
        connection.change(
            f"UPDATE replan_checkpoints SET parent_id = NULL WHERE {AT} AND checkpoint_id = ?",
            [*thread_key, kept[-1]],
        )


def _ids(connection: Connection, thread_key: ThreadKey) -> set[str]:
    query = f"SELECT checkpoint_id FROM replan_checkpoints WHERE {AT}"
    return {checkpoint_id for (checkpoint_id,) in connection.query(query, thread_key)}


def checkpoints_of_run(connection: Connection, run_id: str) -> Mapping[ThreadKey, Lineage]:
    """The checkpoints that a run wrote, by where they are."""
    query = (
        "SELECT thread_id, namespace, checkpoint_id, parent_id FROM replan_checkpoints"
        " WHERE run_id = ?"
    )
    parents: dict[ThreadKey, dict[str, str | None]] = defaultdict(dict)
    for thread_id, namespace, checkpoint_id, parent_id in connection.query(query, [run_id]):
        parents[ThreadKey(thread_id, namespace)][checkpoint_id] = parent_id
    return parents


def take_back(
    connection: Connection,
    serde: SerializerProtocol,
    thread_key: ThreadKey,
    lineage: Lineage,
) -> bool:
    """Take a run's checkpoints off its thread, and the input or the answers that it began with.

    They stay, and this is false, if the values of a later run are made of what was written to them.
    """
    ids = [*lineage]
    later = [
        row
        for (row,) in connection.query(
            f"SELECT checkpoint_id FROM replan_checkpoints WHERE {AT}"
            f" AND parent_id IN ({marks(len(ids))})",
            [*thread_key, *ids],
        )
        if row not in lineage
    ]
    if _delta_channels(connection, serde, thread_key, later):
        logger.warning("kept a run to be rolled back: another continues from it")
        return False
    for parent in {
        parent_id for parent_id in lineage.values() if parent_id and parent_id not in lineage
    }:
        at = (*thread_key, parent)
        given = str(uuid5(UUID(parent), INPUT))
        connection.change(_LEFT_ON, [*at, given, RESUME, INTERRUPT, *at, INTERRUPT])
    _delete(connection, thread_key, ids)
    return True


def _delta_channels(
    connection: Connection,
    serde: SerializerProtocol,
    thread_key: ThreadKey,
    ids: Sequence[str],
) -> set[str]:
    """The channels of checkpoints whose values are made of what was written before."""
    if not ids:
        return set()
    query = (
        f"SELECT metadata_kind, metadata FROM replan_checkpoints WHERE {AT}"
        f" AND checkpoint_id IN ({marks(len(ids))})"
    )
    rows = connection.query(query, [*thread_key, *ids])
    metadata: list[dict[str, Any]] = [serde.loads_typed((kind, value)) for kind, value in rows]
    return {channel for entry in metadata for channel in entry.get(_COUNTERS) or ()}


def _delete(connection: Connection, thread_key: ThreadKey, ids: Sequence[str]) -> None:
    """Remove checkpoints, with what was written to them and the values that no other has."""
    for table in ("replan_checkpoints", "replan_writes"):
        connection.change_many(
            f"DELETE FROM {table} WHERE {AT} AND checkpoint_id = ?",
            [(*thread_key, id_) for id_ in ids],
        )
    used = {
        (channel, str(version))
        for (versions,) in connection.query(_VERSIONS, thread_key)
        for channel, version in read_versions(versions).items()
    }
    unused = {*connection.query(_CHANNELS, thread_key)} - used
    connection.change_many(
        f"DELETE FROM replan_channels WHERE {AT} AND channel = ? AND version = ?",
        [(*thread_key, *row) for row in sorted(unused)],
    )


def note_fork(connection: Connection, logs: SqlLogs, new: NewCheckpoint) -> None:
    """Note that a checkpoint which is to be written continues from one that is not the newest."""
    if not new.log_id or new.parent_id is None:
        return
    newest = newest_id(connection, new.thread_key)
    # The same checkpoint again is one whose receipt was lost.
    if newest is not None and newest not in (new.parent_id, new.checkpoint_id):
        _note(connection, logs, new.thread_key, new.parent_id, new.checkpoint_id)


def note_rollback(connection: Connection, logs: SqlLogs, thread_key: ThreadKey) -> None:
    """Note that a thread was taken back to the checkpoint that is its newest one now."""
    newest = newest_id(connection, thread_key)
    if newest is not None and not thread_key.namespace:
        _note(connection, logs, thread_key, newest, "")


def note_removal(connection: Connection, logs: SqlLogs, run_id: str, checkpoint_id: str) -> None:
    """Note that a run was taken off its thread; what it did is on record if it begins again."""
    rows = logs.rows_of(connection, run_id)
    if rows.has(BEGAN):
        # The checkpoint at which its name began is gone.
        rows.supersede(*span(BEGAN))
        value: JsonValue = {"checkpoint": checkpoint_id, "row": 0}
        rows.append(NewRow(f"{FORKED}{checkpoint_id}", "forked", value))


def _note(
    connection: Connection,
    logs: SqlLogs,
    thread_key: ThreadKey,
    checkpoint_id: str,
    by: str,
) -> None:
    query = f"SELECT log_id, log_row FROM replan_checkpoints WHERE {AT} AND checkpoint_id = ?"
    rows = connection.query(query, [*thread_key, checkpoint_id])
    log_id, row = rows[0] if rows else ("", 0)
    if log_id:
        value = {"checkpoint": checkpoint_id, "row": row}
        key = f"{FORKED}{by or checkpoint_id}"
        logs.rows_of(connection, log_id).append(NewRow(key, "forked", value))
