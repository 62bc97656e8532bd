"""Rows of checkpoints: each value of a channel is stored once per version, beside them.

Everything here works in the transaction that is open on a connection. What the values are is known
to the serializer alone; which versions a checkpoint has of its channels is in the clear.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    PendingWrite,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from replan.base.langgraph_inside.checkpoints import WRITES_IDX_MAP
from replan.storage.databases.database import Connection, Row, first
from replan.storage.databases.faults import UnreadableRecordError
from replan.storage.databases.serializer import pack, unpack

# LangGraph leaves parts of a checkpoint's types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false


Filter = Mapping[str, Any]
Conditions = Mapping[str, object]
Version = tuple[str, str]
"""A channel, and a version of it."""

Value = tuple[str, bytes]
"""A kind, and a value that was written as such."""

_APART = ("channel_values", "channel_versions")  # what of a checkpoint is not inside its value
_PARTS = frozenset({"v", "id", "versions_seen"})

RUN_ID = "run_id"  # the channel that says of which run a checkpoint is

AT = "thread_id = ? AND namespace = ?"

_PUT_VALUE = (
    "INSERT INTO replan_channels (thread_id, namespace, channel, version, kind, value)"
    " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_PUT_CHECKPOINT = """
INSERT INTO replan_checkpoints (thread_id, namespace, checkpoint_id, parent_id, versions, run_id,
    kind, checkpoint, metadata_kind, metadata, log_id, log_row)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    (SELECT coalesce(max(number), 0) FROM replan_log WHERE run_id = ?))
ON CONFLICT (thread_id, namespace, checkpoint_id) DO UPDATE SET parent_id = excluded.parent_id,
    versions = excluded.versions, run_id = excluded.run_id, kind = excluded.kind,
    checkpoint = excluded.checkpoint, metadata_kind = excluded.metadata_kind,
    metadata = excluded.metadata, log_id = excluded.log_id, log_row = excluded.log_row
"""
# What a task wrote stays; errors, interrupts and answers, whose numbers are below 0, are replaced.
_PUT_WRITE = """
INSERT INTO replan_writes (thread_id, namespace, checkpoint_id, task_id, number, task_path, channel,
    kind, value)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (thread_id, namespace, checkpoint_id, task_id, number) DO UPDATE SET
    task_path = excluded.task_path, channel = excluded.channel, kind = excluded.kind,
    value = excluded.value
WHERE replan_writes.number < 0
"""
_CHECKPOINTS = """
SELECT thread_id, namespace, checkpoint_id, parent_id, versions, kind, checkpoint, metadata_kind,
    metadata
FROM replan_checkpoints
"""
_WRITES = (
    "SELECT checkpoint_id, task_id, channel, kind, value FROM replan_writes"
    " WHERE thread_id = ? AND namespace = ? AND checkpoint_id BETWEEN ? AND ?"
    " ORDER BY task_path, task_id, number"
)
# Versions are given as one JSON object, in which a channel may be several times.
_VALUES = (
    "SELECT stored.channel, stored.version, stored.kind, stored.value"
    " FROM {versions} AS wanted CROSS JOIN replan_channels AS stored"
    " WHERE stored.thread_id = ? AND stored.namespace = ?"
    " AND stored.channel = wanted.key AND stored.version = wanted.value"
)
_VALUES_OF = {
    False: _VALUES.format(versions="json_each(?)"),
    True: _VALUES.format(versions="json_each_text(CAST(? AS json))"),
}


class ThreadKey(NamedTuple):
    """A thread, and a namespace of its checkpoints."""

    thread_id: str
    namespace: str


def thread_key_in(config: RunnableConfig) -> ThreadKey:
    names = config.get("configurable", {})
    return ThreadKey(str(names["thread_id"]), names.get("checkpoint_ns", ""))


def config_of(thread_key: ThreadKey, checkpoint_id: str | None) -> RunnableConfig:
    thread_id, namespace = thread_key
    names = {
        "thread_id": thread_id,
        "checkpoint_ns": namespace,
        "checkpoint_id": checkpoint_id,
    }
    return {"configurable": names}


class NewCheckpoint:
    """A checkpoint as rows, to be written perhaps twice."""

    def __init__(
        self,
        serde: SerializerProtocol,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> None:
        self.thread_key = thread_key_in(config)
        about: Any = get_serializable_checkpoint_metadata(config, metadata)
        values = checkpoint["channel_values"]
        self.checkpoint_id, self.parent_id = checkpoint["id"], get_checkpoint_id(config)
        run_id = values.get(RUN_ID)
        self.log_id = run_id if isinstance(run_id, str) and not self.thread_key.namespace else ""
        rest = {name: part for name, part in checkpoint.items() if name not in _APART}
        self._values = [
            (*self.thread_key, channel, str(version), *serde.dumps_typed(values[channel]))
            for channel, version in new_versions.items()
            if channel in values
        ]
        self._row = (
            *self.thread_key,
            self.checkpoint_id,
            self.parent_id,
            pack(json.dumps(checkpoint["channel_versions"]).encode("ascii")),
            str(about.get("run_id") or ""),
            *serde.dumps_typed(rest),
            *serde.dumps_typed(about),
            *(2 * [self.log_id]),
        )

    def write(self, connection: Connection) -> None:
        if self._values:
            connection.change_many(_PUT_VALUE, self._values)
        connection.change(_PUT_CHECKPOINT, self._row)


class NewWrites:
    """What a task wrote, as rows, to be written perhaps twice."""

    def __init__(
        self,
        serde: SerializerProtocol,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> None:
        self.thread_key = thread_key_in(config)
        at = (*self.thread_key, get_checkpoint_id(config), task_id)
        self._rows = [
            (
                *at,
                WRITES_IDX_MAP.get(channel, number),
                task_path,
                channel,
                *serde.dumps_typed(value),
            )
            for number, (channel, value) in enumerate(writes)
        ]

    def write(self, connection: Connection) -> None:
        if self._rows:
            connection.change_many(_PUT_WRITE, self._rows)


def newest_id(connection: Connection, thread_key: ThreadKey) -> str | None:
    """The newest checkpoint at a place."""
    query = f"SELECT max(checkpoint_id) FROM replan_checkpoints WHERE {AT}"
    return first(connection.query(query, thread_key))


def has_writes(connection: Connection, thread_key: ThreadKey) -> bool:
    """Whether tasks wrote something behind the newest checkpoint at a place."""
    newest = newest_id(connection, thread_key)
    query = f"SELECT 1 FROM replan_writes WHERE {AT} AND checkpoint_id = ? LIMIT 1"
    return bool(newest and connection.query(query, [*thread_key, newest]))


def conditions_of(
    config: RunnableConfig | None, wanted: Filter, before: RunnableConfig | None
) -> Conditions:
    """What the rows of checkpoints must have that are looked for, with the values."""
    names = (config or {}).get("configurable", {})
    run_id = wanted.get("run_id")
    values = {
        "thread_id = ?": str(names["thread_id"]) if config else None,
        "namespace = ?": names.get("checkpoint_ns"),
        "checkpoint_id = ?": names.get("checkpoint_id"),
        "checkpoint_id < ?": before and get_checkpoint_id(before),
        "run_id = ?": run_id if isinstance(run_id, str) else None,
    }
    return {condition: value for condition, value in values.items() if value is not None}


def find_all(
    connection: Connection,
    serde: SerializerProtocol,
    conditions: Conditions,
    wanted: Filter,
    limit: int | None,
) -> list[CheckpointTuple]:
    """Read checkpoints, the newest first, whose metadata has the wanted values."""
    where = " AND ".join(conditions) or "1 = 1"
    query = f"{_CHECKPOINTS} WHERE {where} ORDER BY checkpoint_id DESC"
    values = [*conditions.values()]
    if limit is not None and not wanted:
        query, values = f"{query} LIMIT ?", [*values, limit]
    # The metadata may be encrypted, so that the database cannot look at it.
    rows = (row for row in connection.query(query, values) if _matches(serde, row, wanted))
    return _read(connection, serde, list(islice(rows, limit)))


def _matches(serde: SerializerProtocol, row: Row, wanted: Filter) -> bool:
    if not wanted:
        return True
    metadata = serde.loads_typed(row[-2:])
    return all(metadata.get(name) == value for name, value in wanted.items())


def _read(
    connection: Connection, serde: SerializerProtocol, rows: Sequence[Row]
) -> list[CheckpointTuple]:
    """Read what belongs to the rows of checkpoints; they stay in their order."""
    rows_by_place: dict[ThreadKey, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        rows_by_place[ThreadKey(*row[:2])][row[2]] = row
    tuples: dict[tuple[str, ...], CheckpointTuple] = {}
    for thread_key, by_id in rows_by_place.items():
        versions = {id_: read_versions(row[4]) for id_, row in by_id.items()}
        wanted = {(name, str(each)) for one in versions.values() for name, each in one.items()}
        values = stored_values(connection, thread_key, wanted)
        writes = _writes_at(connection, serde, thread_key, by_id.keys())
        for id_, row in by_id.items():
            tuples[row[:3]] = _tuple_of(serde, row, versions[id_], values, writes[id_])
    return [tuples[row[:3]] for row in rows]


def _tuple_of(
    serde: SerializerProtocol,
    row: Row,
    versions: dict[str, Any],
    stored: Mapping[Version, Value],
    writes: list[PendingWrite],
) -> CheckpointTuple:
    thread_key, checkpoint_id, parent_id = ThreadKey(*row[:2]), row[2], row[3]
    checkpoint = serde.loads_typed((row[5], row[6]))
    if not (isinstance(checkpoint, dict) and checkpoint.keys() >= _PARTS):
        raise UnreadableRecordError("a checkpoint lacks its parts")
    metadata = serde.loads_typed((row[7], row[8]))
    if not isinstance(metadata, dict):
        raise UnreadableRecordError("the metadata of a checkpoint is not a mapping")
    values = {
        channel: serde.loads_typed(value)
        for channel, version in versions.items()
        if (value := stored.get((channel, str(version)))) is not None
    }
    whole: Any = {**checkpoint, "channel_values": values, "channel_versions": versions}
    return CheckpointTuple(
        config_of(thread_key, checkpoint_id),
        whole,
        cast("CheckpointMetadata", metadata),
        config_of(thread_key, parent_id) if parent_id else None,
        writes,
    )


def _writes_at(
    connection: Connection, serde: SerializerProtocol, thread_key: ThreadKey, ids: Collection[str]
) -> Mapping[str, list[PendingWrite]]:
    """What was written to checkpoints at one place."""
    writes: dict[str, list[PendingWrite]] = defaultdict(list)
    rows = connection.query(_WRITES, [*thread_key, min(ids), max(ids)])
    for checkpoint_id, task_id, channel, kind, value in rows:
        # Between the first and the last may be others.
        if checkpoint_id in ids:
            writes[checkpoint_id].append((task_id, channel, serde.loads_typed((kind, value))))
    return writes


def read_versions(stored: bytes) -> dict[str, Any]:
    """The versions of a checkpoint's channels."""
    versions = json.loads(unpack(stored))
    if not isinstance(versions, dict):
        raise UnreadableRecordError("a checkpoint lacks the versions of its channels")
    return versions


def stored_values(
    connection: Connection, thread_key: ThreadKey, versions: Iterable[Version]
) -> dict[Version, Value]:
    """The values that are stored of some versions of channels."""
    wanted = ",".join(f"{json.dumps(each)}:{json.dumps(version)}" for each, version in versions)
    if not wanted:
        return {}
    rows = connection.query(_VALUES_OF[connection.is_postgres], [f"{{{wanted}}}", *thread_key])
    return {(channel, version): (kind, value) for channel, version, kind, value in rows}
