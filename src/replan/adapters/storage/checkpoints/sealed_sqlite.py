"""Encrypted checkpoints in a SQLite file: each value is bound to the place where it is.

LangGraph's serializer does not learn where a value was read. So all reads use a separate
connection, where views with the names of LangGraph's tables add the place to the kind of a value.
"""
# LangGraph leaves the type arguments of savers open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from collections.abc import AsyncIterator, Mapping, Sequence
from copy import copy
from typing import Any

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from replan.adapters.storage.checkpoints.savers import SqliteSaver
from replan.adapters.storage.faults import Part
from replan.adapters.storage.stored_values import places
from replan.adapters.storage.stored_values.sealing import placed_writes, tagged
from replan.langgraph_inside.checkpoints import DeltaChannelHistory

_PLACES = {
    "checkpoints": (
        "thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id",
        "checkpoint",
    ),
    "writes": ("thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel", "value"),
}
"""The columns of a row's place, and the column of its value, by table."""


async def show_places(connection: aiosqlite.Connection) -> None:
    """Let a connection read kinds of values with their places; it can no longer write."""

    def placed(kind: str, *place: Part) -> str:
        return tagged(kind, *place)

    await connection.create_function("placed", -1, placed, deterministic=True)
    for table, (row, column) in _PLACES.items():
        found = await connection.execute_fetchall(f"PRAGMA main.table_info({table})")
        place = f"placed(type, '{table}', {row}, '{column}') AS type"
        columns = [place if name == "type" else name for _, name, *_ in found]
        await connection.execute(
            f"CREATE TEMP VIEW {table} AS SELECT {', '.join(columns)} FROM main.{table}"  # noqa: S608 - ours
        )


class _SealedRows(AsyncSqliteSaver):
    """LangGraph's saver, which tells its serializer where values are."""

    serde: Any
    reading: aiosqlite.Connection

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        given: dict[str, Any] = config.get("configurable", {})
        thread, parent = str(given["thread_id"]), given.get("checkpoint_id")
        place = places.of_checkpoint(thread, given["checkpoint_ns"], checkpoint["id"], parent)
        twin = copy(self)
        twin.serde = self.serde.at(place)
        return await AsyncSqliteSaver.aput(twin, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        placed = placed_writes("writes", config, task_id, writes)
        await super().aput_writes(config, placed, task_id, task_path)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await AsyncSqliteSaver.aget_tuple(self._reader(), config)

    async def alist(
        self, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[CheckpointTuple]:
        async for each in AsyncSqliteSaver.alist(self._reader(), config, **options):
            yield each

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await AsyncSqliteSaver.aget_delta_channel_history(
            self._reader(), config=config, channels=channels
        )

    def _reader(self) -> Any:
        twin = copy(self)
        twin.conn = self.reading
        return twin


class SealedSqliteSaver(SqliteSaver, _SealedRows):
    """Checkpoints in a SQLite file, encrypted."""

    def __init__(self, plain: SqliteSaver, reading: aiosqlite.Connection) -> None:
        super().__init__(plain.conn, plain.serde, plain.patience, plain.holds, plain.database)
        # LangGraph would change its tables through the views.
        self.is_setup = True
        self.reading = reading
