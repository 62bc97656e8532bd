"""LangGraph's saver for PostgreSQL, made whole: what is written to a thread, its owner writes.

Encrypted, each value is bound to the place where it is. A value of a channel is shared by the
checkpoints of its thread that have the same version of it; which versions a checkpoint has is in
the clear.
"""
# LangGraph leaves the type arguments of savers open; it has no public way to tell a serializer
# which row it reads.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from copy import copy
from typing import Any, TypeVar

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol

from replan.adapters.storage.checkpoints.savers import WholeSaver, Work
from replan.adapters.storage.database import Database, Patience
from replan.adapters.storage.faults import UnreadableRecordError
from replan.adapters.storage.stored_values import places
from replan.adapters.storage.stored_values.sealing import Hidden, Placed, placed_writes, tagged
from replan.adapters.thread_holds import Holds
from replan.langgraph_inside.checkpoints import DeltaChannelHistory

_FENCE = """
SELECT 1 / count(*) FROM (
    SELECT epoch FROM replan_threads WHERE thread_id = %s AND epoch = %s FOR SHARE
) AS owned
"""
"""Fails, and all that follows it in the pipeline, where the thread is another's."""

T = TypeVar("T")

_owned: ContextVar[tuple[str, int] | None] = ContextVar("owned", default=None)


class PostgresSaver(WholeSaver, AsyncPostgresSaver):
    """LangGraph's saver, made whole."""

    def __init__(
        self,
        pool: Any,
        serde: SerializerProtocol,
        patience: Patience,
        holds: Holds,
        database: Database,
    ) -> None:
        super().__init__(pool, serde=serde)
        self.patience = patience
        self.holds = holds
        self.database = database

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncGenerator[Any]:
        """Return a cursor; what is written with it begins with a look whose the thread is."""
        async with super()._cursor(pipeline=pipeline) as cursor:
            owned = _owned.get()
            if pipeline and owned is not None:
                await cursor.execute(_FENCE, owned)
            yield cursor

    async def _owned(self, config: RunnableConfig, work: Work[T]) -> T:
        thread_id = str(config.get("configurable", {}).get("thread_id"))
        epoch = self.holds.epoch_of(thread_id)
        token = _owned.set(None if epoch is None else (thread_id, epoch))
        try:
            return await super()._owned(config, work)
        finally:
            _owned.reset(token)

    def _tells_loss(self, error: Exception) -> bool:
        return isinstance(error, psycopg.errors.DivisionByZero)


_WRITES = "checkpoint_writes"
_EMPTY = b"empty"


class _SealedRows(AsyncPostgresSaver):
    """LangGraph's saver, which tells its serializer where values are."""

    within: tuple[str, str] = ("", "")  # the thread and the namespace whose history is read

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint; the parent would write short values past the serializer."""
        values = {
            name: Hidden(value) if isinstance(value, str | int | float) else value
            for name, value in checkpoint["channel_values"].items()
        }
        hidden: Any = {**checkpoint, "channel_values": values}
        return await super().aput(config, hidden, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        placed = placed_writes(_WRITES, config, task_id, writes)
        await super().aput_writes(config, placed, task_id, task_path)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        given: dict[str, Any] = config.get("configurable", {})
        twin = copy(self)
        twin.within = (given["thread_id"], given.get("checkpoint_ns", ""))
        return await AsyncPostgresSaver.aget_delta_channel_history(
            twin, config=config, channels=channels
        )

    def _dump_blobs(
        self, thread_id: str, checkpoint_ns: str, values: dict[str, Any], versions: ChannelVersions
    ) -> Any:
        placed = {
            channel: Placed(
                values[channel],
                places.of_blob(str(thread_id), checkpoint_ns, channel, str(version)),
            )
            for channel, version in versions.items()
            if channel in values
        }
        return super()._dump_blobs(thread_id, checkpoint_ns, placed, versions)

    async def _load_checkpoint_tuple(self, value: Any) -> CheckpointTuple:
        thread_id, namespace = value["thread_id"], value["checkpoint_ns"]
        checkpoint_id, checkpoint = value["checkpoint_id"], value["checkpoint"]
        versions = checkpoint["channel_versions"]

        def blob(channel: bytes, kind: bytes, data: bytes) -> list[bytes]:
            name = channel.decode()
            place = places.of_blob(thread_id, namespace, name, str(versions.get(name)))
            return [channel, kind if kind == _EMPTY else _tagged(kind, place), data]

        def write(task: bytes, channel: bytes, kind: bytes, *rest: bytes) -> list[bytes]:
            row = (task.decode(), int(rest[-1]), channel.decode())
            place = places.of_write(_WRITES, thread_id, namespace, checkpoint_id, *row)
            return [task, channel, _tagged(kind, place), *rest]

        blobs = [blob(*each) for each in value["channel_values"] or ()]
        writes = [write(*each) for each in value["pending_writes"] or ()]
        read = {channel.decode() for channel, kind, _ in blobs if kind != _EMPTY}
        inline = checkpoint.get("channel_values") or {}
        _refuse_plain(thread_id, namespace, {k: v for k, v in inline.items() if k not in read})
        row = {**value, "channel_values": blobs, "pending_writes": writes}
        return await super()._load_checkpoint_tuple(row)

    def _build_delta_channels_writes_history(
        self, *, seed_inline_by_ch: Mapping[str, Any], stage2_rows: Iterable[Any], **walked: Any
    ) -> dict[str, DeltaChannelHistory]:
        _refuse_plain(*self.within, seed_inline_by_ch)
        return super()._build_delta_channels_writes_history(
            seed_inline_by_ch=seed_inline_by_ch,
            stage2_rows=[self._placed(row) for row in stage2_rows],
            **walked,
        )

    def _placed(self, row: Mapping[str, Any]) -> Any:
        channel, kind = row["channel"], row["type"]
        if row["version"] is not None:
            place = places.of_blob(*self.within, channel, row["version"])
        else:
            told = (row["task_id"], row["idx"], channel)
            place = places.of_write(_WRITES, *self.within, row["checkpoint_id"], *told)
        return {**row, "type": tagged(kind, *place)}

    def _migrate_pending_sends(
        self, pending_sends: Any, checkpoint: Any, channel_values: Any
    ) -> None:
        if pending_sends:
            raise UnreadableRecordError("a checkpoint is of a form that was never written here")


class SealedPostgresSaver(PostgresSaver, _SealedRows):
    """Checkpoints in PostgreSQL, encrypted."""


def _tagged(kind: bytes, place: Any) -> bytes:
    return tagged(kind.decode(), *place).encode("ascii")


def _refuse_plain(thread_id: str, namespace: str, inline: Mapping[str, Any]) -> None:
    for channel, value in inline.items():
        if value is not None:
            place = ("checkpoints", thread_id, namespace, channel)
            raise UnreadableRecordError("a plain value is in encrypted storage", place)
