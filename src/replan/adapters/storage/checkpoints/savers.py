"""LangGraph's savers, completed: writes are not interrupted, retried, and read immediately.

Beside what LangGraph's own do:

- a cancelled write goes to its end, so that no transaction stays open on a shared connection;
- what can pass is tried again, what cannot is a `StorageError` that says what is safe;
- what a run writes whose thread is another's now is refused;
- the ids of a thread's checkpoints grow, whatever the clocks say;
- a history is read before the first entry is given: the parent holds its lock in between, and a
  consumer that asks for anything else meanwhile would wait forever;
- with a key, nothing that people or models said is written in the clear.
"""
# LangGraph leaves the type arguments of savers open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

import asyncio
import sqlite3
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager
from copy import copy
from typing import Any, TypeVar, cast

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from sqlalchemy import text

from replan.adapters.storage.checkpoints.rolling_back import places_of, take_away
from replan.adapters.storage.database import Database, Patience
from replan.adapters.storage.faults import UnreadableRecordError, readable
from replan.adapters.storage.stored_values.sealing import with_allowed
from replan.adapters.thread_holds import Holds
from replan.errors import StorageError, ThreadLostError
from replan.langgraph_inside.checkpoints import DeltaChannelHistory, advance_id_clock
from replan.langgraph_inside.tasks import of_whole_tasks
from replan.ports.ownership import Owner

T = TypeVar("T")
Work = Callable[[], Coroutine[Any, Any, T]]
Found = TypeVar("Found", bound=CheckpointTuple | None)

_LOST = "the thread is not that of the run any more"
_FENCE = """
CREATE TEMP TRIGGER IF NOT EXISTS replan_fence_{table} BEFORE INSERT ON main.{table}
WHEN replan_epoch(NEW.thread_id) IS NOT NULL
AND replan_epoch(NEW.thread_id) IS NOT
    (SELECT epoch FROM main.replan_threads WHERE thread_id = NEW.thread_id)
BEGIN SELECT RAISE(ABORT, '{lost}'); END
"""
"""Checks a write inside its own statement, on this connection alone."""

_NEWEST = text(
    "SELECT max(checkpoint_id) FROM checkpoints "
    "WHERE thread_id = :thread AND checkpoint_ns = :namespace"
)
_PARTS = frozenset({"v", "id", "channel_values", "channel_versions", "versions_seen"})


class Holding:
    """A saver that knows whose its threads are."""

    holds: Holds  # the threads that are worked on

    def holding(self, thread_id: str) -> AbstractAsyncContextManager[Owner]:
        return self.holds.holding(thread_id)

    async def at_rest(self) -> None:
        """Wait for the writes that LangGraph leaves on their way when a run is cancelled."""


class MemorySaver(Holding, InMemorySaver):
    def __init__(self, serde: SerializerProtocol, holds: Holds) -> None:
        super().__init__(serde=serde)
        self.holds = holds

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        names = config.get("configurable", {})
        if get_checkpoint_id(config) is not None:
            # What continues from an older checkpoint must be above the newest, too.
            stored = self.storage[str(names["thread_id"])][names.get("checkpoint_ns", "")]
            advance_id_clock(max(stored, default=""))
        return await super().aget_tuple(config)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        super().put_writes(config, of_whole_tasks(writes), task_id, task_path)


class WholeSaver(Holding):
    """What a saver does differently here; mixed into LangGraph's own."""

    serde: SerializerProtocol
    patience: Patience  # tries again what can pass
    database: Database  # where the checkpoints are, for what LangGraph's own cannot do

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        parent: Any = super()

        async def read() -> CheckpointTuple | None:
            with readable():
                found = _checked(await parent.aget_tuple(config))
            # What continues from an older checkpoint must be above the newest, too.
            is_older = found is not None and get_checkpoint_id(config) is not None
            newest = await self._newest_id(config) if is_older else found and found.checkpoint["id"]
            if newest:
                advance_id_clock(newest)
            return found

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
        parent: Any = super()
        check_above(checkpoint["id"], get_checkpoint_id(config), self.patience.where)
        return await self._owned(
            config, lambda: parent.aput(config, checkpoint, metadata, new_versions)
        )

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        parent: Any = super()
        whole = of_whole_tasks(writes)
        await self._owned(config, lambda: parent.aput_writes(config, whole, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove a thread's checkpoints; a run that works on it is left alone."""
        parent: Any = super()
        async with self.holds.owning(str(thread_id)):
            await self._whole(lambda: parent.adelete_thread(thread_id))
            await self.holds.forget(str(thread_id))

    async def adelete_for_runs(self, run_ids: Iterable[str]) -> None:
        """Take runs off their threads, which are then as they were before; for rollbacks."""
        for run_id in run_ids:
            for place, lineage in (await places_of(self.database, str(run_id))).items():
                async with self.holds.owning(place[0]):
                    await take_away(self.database, place, lineage)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        parent: Any = super()
        return await self._whole(
            lambda: parent.aget_delta_channel_history(config=config, channels=channels)
        )

    async def at_rest(self) -> None:
        """Wait for the writes that LangGraph leaves on their way when a run is cancelled."""
        await self.patience.at_rest()

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Any:
        """Return a saver on the same connection whose serializer restores these classes too."""
        twin = copy(self)
        twin.serde = with_allowed(self.serde, extra_allowlist)
        return twin

    async def _owned(self, config: RunnableConfig, work: Work[T]) -> T:
        """Write to a thread, if it still belongs to the run that holds it here."""
        thread_id = str(config.get("configurable", {}).get("thread_id"))

        async def attempt() -> T:
            try:
                return await work()
            except Exception as error:
                if self._tells_loss(error):
                    raise ThreadLostError(self.holds.where, thread_id) from error
                raise

        return await self._whole(attempt)

    async def _whole(self, work: Work[T]) -> T:
        return await self.patience.insist(work)

    async def _newest_id(self, config: RunnableConfig) -> str | None:
        names = config.get("configurable", {})
        place = {"thread": str(names["thread_id"]), "namespace": names.get("checkpoint_ns", "")}
        return await self.database.read(lambda connection: connection.scalar(_NEWEST, place))

    def _tells_loss(self, error: Exception) -> bool:
        """Whether a write was refused since the thread is another's."""
        raise NotImplementedError


def _checked(found: Found) -> Found:
    """Refuse what is stored in place of a checkpoint and is not one."""
    checkpoint: Any = None if found is None else found.checkpoint
    if found is not None and not (isinstance(checkpoint, dict) and checkpoint.keys() >= _PARTS):
        raise UnreadableRecordError("a checkpoint lacks its parts")
    return found


class _Turn:
    """A turn at the file, which leaves no transaction open: others would wait for its end."""

    def __init__(self, turn: asyncio.Lock, connection: aiosqlite.Connection) -> None:
        self._turn = turn
        self._connection = connection

    async def __aenter__(self) -> None:
        await self._turn.acquire()

    async def __aexit__(self, *raised: object) -> None:
        try:
            if self._connection.in_transaction:
                await self._connection.rollback()
        finally:
            self._turn.release()


class SqliteSaver(WholeSaver, AsyncSqliteSaver):
    def __init__(
        self,
        connection: aiosqlite.Connection,
        serde: SerializerProtocol,
        patience: Patience,
        holds: Holds,
        database: Database,
    ) -> None:
        super().__init__(connection, serde=serde)
        self.patience = patience
        self.holds = holds
        self.database = database
        # Within a process, nothing waits for a lock of the file.
        self.lock = cast("asyncio.Lock", _Turn(database.turn or asyncio.Lock(), connection))

    async def setup(self) -> None:
        """Make LangGraph's tables, and let each write to them look whose the thread is."""
        if not self.is_setup:
            await super().setup()
            await self.conn.create_function("replan_epoch", 1, self.holds.epoch_of)
            for table in ("checkpoints", "writes"):
                await self.conn.execute(_FENCE.format(table=table, lost=_LOST))
            await self.conn.commit()

    def _tells_loss(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.IntegrityError) and str(error) == _LOST


def check_above(checkpoint_id: str, parent: str | None, where: str) -> None:
    """See that a checkpoint will be found as newer than the one that it continues from."""
    if parent is not None and checkpoint_id <= parent:
        raise StorageError(
            where,
            f"The checkpoint {checkpoint_id} is not above its parent {parent}, so nothing "
            "would find it.",
            "Correct the clock of this host, then resume the run on its thread.",
        )
