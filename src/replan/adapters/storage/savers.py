"""LangGraph's savers, made whole: not stopped in the middle of a write, tried again, read at once.

Beside what LangGraph's own do:

- a cancelled write goes to its end, so that no transaction stays open on a shared connection;
- what can pass is tried again, what cannot is a `StorageError` that says what is safe;
- a history is read before the first entry is given: the parent holds its lock in between, and a
  consumer that asks for anything else meanwhile would wait for ever;
- with a key, nothing that people or models said is written in the clear.
"""
# LangGraph leaves the type arguments of savers open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from typing import Any, TypeVar

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from replan.adapters.storage.database import Patience
from replan.adapters.storage.faults import UnreadableRecordError, readable
from replan.adapters.storage.holding import Holds
from replan.adapters.storage.sealing import with_allowed

T = TypeVar("T")
Found = TypeVar("Found", bound=CheckpointTuple | None)

_PARTS = frozenset({"v", "id", "channel_values", "channel_versions", "versions_seen"})


class WholeSaver:
    """What a saver does differently here; mixed into LangGraph's own.

    Attributes:
        patience: Tries again what can pass.
        holds: The threads that are worked on.
    """

    serde: SerializerProtocol
    patience: Patience
    holds: Holds

    def holding(self, thread_id: str) -> AbstractAsyncContextManager[None]:
        """Hold a thread while this lasts.

        Raises:
            ThreadBusyError: Another run holds it.
            StorageError: Nobody can say.
        """
        return self.holds.holding(thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint."""
        parent: Any = super()

        async def read() -> CheckpointTuple | None:
            with readable():
                return _checked(await parent.aget_tuple(config))

        return await self._whole(read)

    async def alist(
        self, config: RunnableConfig | None, **options: Any
    ) -> AsyncIterator[CheckpointTuple]:
        """Read the checkpoints of a thread, the newest first, all before the first is given."""
        parent: Any = super()

        async def read() -> list[CheckpointTuple]:
            with readable():
                return [_checked(each) async for each in parent.alist(config, **options)]

        for each in await self._whole(read):
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint."""
        parent: Any = super()
        return await self._whole(lambda: parent.aput(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Write what a task returned."""
        parent: Any = super()
        await self._whole(lambda: parent.aput_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove a thread's checkpoints."""
        parent: Any = super()
        await self._whole(lambda: parent.adelete_thread(thread_id))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read the writes that make up the values of delta channels."""
        parent: Any = super()
        return await self._whole(
            lambda: parent.aget_delta_channel_history(config=config, channels=channels)
        )

    async def at_rest(self) -> None:
        """Wait for the writes that LangGraph leaves on their way when a run is cancelled."""
        await self.patience.at_rest()

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Any:
        """Give a saver on the same connection whose serializer restores these classes too."""
        twin = copy(self)
        twin.serde = with_allowed(self.serde, extra_allowlist)
        return twin

    async def _whole(self, work: Callable[[], Awaitable[T]]) -> T:
        async def attempt() -> T:
            try:
                return await work()
            except Exception:
                await self._roll_back()
                raise

        return await self.patience.insist(attempt)

    async def _roll_back(self) -> None:
        """Leave no transaction open after a failure."""


def _checked(found: Found) -> Found:
    """Refuse what stands in a checkpoint's place and is none."""
    checkpoint: Any = None if found is None else found.checkpoint
    if found is not None and not (isinstance(checkpoint, dict) and checkpoint.keys() >= _PARTS):
        raise UnreadableRecordError("a checkpoint lacks its parts")
    return found


class SqliteSaver(WholeSaver, AsyncSqliteSaver):
    """Checkpoints in a SQLite file."""

    def __init__(
        self,
        connection: aiosqlite.Connection,
        serde: SerializerProtocol,
        patience: Patience,
        holds: Holds,
    ) -> None:
        super().__init__(connection, serde=serde)
        self.patience = patience
        self.holds = holds

    async def _roll_back(self) -> None:
        async with self.lock:
            if self.conn.in_transaction:
                await self.conn.rollback()
