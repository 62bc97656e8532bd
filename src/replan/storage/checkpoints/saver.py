"""The saver of LangGraph's checkpoints: one for SQLite, the memory and PostgreSQL.

Beside what LangGraph's own savers do:

- a cancelled write goes to its end, what can pass is tried again, and what cannot is a
  `StorageError` that says what is safe;
- what a run writes whose thread is another's now is refused;
- the ids of a thread's checkpoints grow, whatever the clocks say;
- deleting a thread deletes the runs on it, and taking a run back leaves its thread as it was;
- with a key, nothing that people or models said is written in the clear, nor any metadata.
"""

import asyncio
import secrets
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Collection,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from copy import copy
from functools import partial
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from replan.base.errors import StorageError, ThreadBusyError
from replan.base.langgraph_inside.checkpoints import DeltaChannelHistory, advance_id_clock
from replan.base.langgraph_inside.tasks import of_whole_tasks
from replan.log.run_log import RunLog
from replan.log.uninterrupted import uninterrupted
from replan.ports.ownership import Owner, owner_in
from replan.storage.checkpoints.checkpoint_history import (
    Lineage,
    checkpoints_of_run,
    copy_thread,
    delta_history,
    keep_newest,
    note_fork,
    note_removal,
    note_rollback,
    take_back,
)
from replan.storage.checkpoints.checkpoint_rows import (
    NewCheckpoint,
    NewWrites,
    ThreadKey,
    conditions_of,
    config_of,
    find_all,
    has_writes,
    newest_id,
    thread_key_in,
)
from replan.storage.databases.database import Connection, Database, Work
from replan.storage.databases.encryption import SealedSerializer
from replan.storage.databases.faults import fault_of, readable, storage_error
from replan.storage.databases.schema import delete_checkpoints, delete_thread
from replan.storage.databases.sqlite import MemoryDatabase
from replan.storage.holds import ThreadLocks
from replan.storage.log_rows import SqlLogs

# LangGraph leaves the type arguments of savers open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportIncompatibleMethodOverride=false


T = TypeVar("T")

_STRATEGIES = ("keep_latest", "delete")

_AWAIT = (
    "Synchronous calls to the saver are only allowed from a thread without an event loop. "
    "Use the asynchronous interface here, for example `await checkpointer.aget_tuple(...)` or "
    "`await graph.ainvoke(...)`."
)


class Saver(BaseCheckpointSaver[str]):
    """Keeps checkpoints in a database."""

    def __init__(
        self,
        database: Database,
        serde: SerializerProtocol,
        holds: ThreadLocks,
        logs: SqlLogs,
        log: RunLog,
    ) -> None:
        """Prepare.

        Args:
            database: What has the tables.
            serde: Writes and reads values; with a key, encrypted.
            holds: The threads that are worked on.
            logs: The rows of the logs of runs, which say where a run was forked.
            log: The logs of runs, which a checkpoint is never ahead of.
        """
        super().__init__(serde=serde)
        self.database = database
        self.holds = holds
        self._logs = logs
        self._log = log
        self._loop = asyncio.get_running_loop()  # where threads are held

    def lock(self, thread_id: str) -> AbstractAsyncContextManager[Owner]:
        """Hold a thread while this lasts."""
        return self.holds.lock(thread_id)

    async def at_rest(self) -> None:
        """Wait for the writes that LangGraph leaves on their way when a run is cancelled."""
        await self.database.retrier.at_rest()

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> Any:
        """Return a saver of the same checkpoints whose serializer restores these classes too."""
        twin = copy(self)
        twin.serde = _allowing(self.serde, extra_allowlist)
        return twin

    def get_next_version(self, current: str | None, channel: None) -> str:
        """A version above another one; those of two branches differ."""
        # Every checkpoint has many of them, so that they are short.
        number = int(str(current).partition(".")[0]) + 1 if current else 1
        return f"{number:010}.{secrets.token_hex(6)}"

    async def has_writes(self, config: RunnableConfig) -> bool:
        """Whether tasks wrote something behind the newest checkpoint of a thread."""
        return await self.database.read(partial(has_writes, thread_key=thread_key_in(config)))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return _above(await self.database.read(self._find(config)))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, the newest first; all are read before the first is yielded."""
        for checkpoint in await self.database.read(self._find_all(config, filter, before, limit)):
            yield checkpoint

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        new = self._new_checkpoint(config, checkpoint, metadata, new_versions)
        work = partial(self._write_new, new=new)
        await self._write_behind_events(new.thread_key.thread_id, work)
        return config_of(new.thread_key, checkpoint["id"])

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        new = self._new_writes(config, writes, task_id, task_path)
        await self._write_behind_events(new.thread_key.thread_id, new.write)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self.database.read(self._history(config, channels)) if channels else {}

    async def adelete_thread(self, thread_id: str) -> None:
        """Remove a thread and the runs on it; a run that works on it is left alone."""
        async with self._owned(thread_id) as name:
            await self._write(name, partial(delete_thread, thread_id=name))

    async def adelete_for_runs(self, run_ids: Iterable[str]) -> None:
        """Take runs off their threads, which are then as they were before; for rollbacks."""
        for run_id in map(str, run_ids):
            thread_keys = await self.database.read(partial(checkpoints_of_run, run_id=run_id))
            for thread_key, lineage in thread_keys.items():
                async with self._owned(thread_key.thread_id) as name:
                    work = partial(
                        self._take_back, run_id=run_id, thread_key=thread_key, lineage=lineage
                    )
                    await self._write(name, _reading(work))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Put all checkpoints of a thread on another one, too."""
        source = str(source_thread_id)
        async with self._owned(target_thread_id) as name:
            await self._write(name, partial(copy_thread, source=source, target=name))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Remove the older checkpoints of threads, or all; what the newest needs stays."""
        if strategy not in _STRATEGIES:
            raise ValueError(f"Unknown strategy {strategy!r}: give one of {_STRATEGIES}.")
        for thread_id in thread_ids:
            async with self._owned(thread_id) as name:
                if strategy == "delete":
                    work: Work[None] = partial(delete_checkpoints, thread_id=name)
                else:
                    work = _reading(partial(keep_newest, serde=self.serde, thread_id=name))
                await self._write(name, work)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._here(self.aget_tuple(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        yield from self._here(self.database.read(self._find_all(config, filter, before, limit)))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self._here(self.aput(config, checkpoint, metadata, new_versions))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        self._here(self.aput_writes(config, writes, task_id, task_path))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return self._here(self.aget_delta_channel_history(config=config, channels=channels))

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread and the runs on it; a run that works on it is left alone."""
        self._here(self._delete_where_held(str(thread_id)))

    async def _delete_where_held(self, thread_id: str) -> None:
        if not isinstance(self.database, MemoryDatabase):
            # Where threads are held, also against other processes.
            deleting = asyncio.run_coroutine_threadsafe(self.adelete_thread(thread_id), self._loop)
            await asyncio.wrap_future(deleting)
            return
        if self.holds.owner_of(thread_id) is not owner_in(self.database.where, thread_id):
            raise ThreadBusyError(thread_id)
        await self._write(thread_id, partial(delete_thread, thread_id=thread_id))

    def _find(self, config: RunnableConfig) -> Work[tuple[CheckpointTuple | None, str | None]]:
        thread_key, wanted = thread_key_in(config), get_checkpoint_id(config)
        conditions = conditions_of(config_of(thread_key, wanted or None), {}, None)

        def work(connection: Connection) -> tuple[CheckpointTuple | None, str | None]:
            checkpoint = next(iter(find_all(connection, self.serde, conditions, {}, 1)), None)
            if checkpoint is None or wanted is None:
                return checkpoint, checkpoint and checkpoint.checkpoint["id"]
            return checkpoint, newest_id(connection, thread_key)

        return _reading(work)

    def _find_all(
        self,
        config: RunnableConfig | None,
        wanted: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Work["list[CheckpointTuple]"]:
        wanted = wanted or {}
        conditions = conditions_of(config, wanted, before)

        return _reading(
            lambda connection: find_all(connection, self.serde, conditions, wanted, limit)
        )

    def _history(
        self, config: RunnableConfig, channels: Sequence[str]
    ) -> Work[Mapping[str, DeltaChannelHistory]]:
        at = thread_key_in(config), get_checkpoint_id(config)
        return _reading(lambda connection: delta_history(connection, self.serde, *at, channels))

    def _write_new(self, connection: Connection, new: NewCheckpoint) -> None:
        note_fork(connection, self._logs, new)
        new.write(connection)

    def _take_back(
        self, connection: Connection, run_id: str, thread_key: ThreadKey, lineage: Lineage
    ) -> None:
        if not take_back(connection, self.serde, thread_key, lineage):
            return
        note_rollback(connection, self._logs, thread_key)
        if not thread_key.namespace:
            note_removal(connection, self._logs, run_id, max(lineage))

    def _new_checkpoint(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> NewCheckpoint:
        check_above(checkpoint["id"], get_checkpoint_id(config), self.database.where)
        with self._storable():
            return NewCheckpoint(self.serde, config, checkpoint, metadata, new_versions)

    def _new_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> NewWrites:
        with self._storable():
            return NewWrites(self.serde, config, of_whole_tasks(writes), task_id, task_path)

    @contextmanager
    def _storable(self) -> Generator[None]:
        """Raise what the serializer says of a value as a `StorageError`."""
        try:
            yield
        except Exception as error:
            fault = fault_of(error)
            if fault is None:
                raise
            raise storage_error(self.database.where, fault) from error

    @asynccontextmanager
    async def _owned(self, thread_id: object) -> AsyncGenerator[str]:
        name = str(thread_id)
        async with self.holds.lock_or_own(name):
            yield name

    async def _write_behind_events(self, thread_id: str, work: Work[None]) -> None:
        """Write what the run at work here came to, behind the events that tell of it."""
        unwritten = self._log.unwritten_events()
        if unwritten is None:
            await self._write(thread_id, work)
            return
        run_id, queue = unwritten

        async def whole() -> None:
            async with queue.before(None) as events:

                def behind(connection: Connection) -> None:
                    rows = self._logs.rows_of(connection, run_id)
                    events.write(rows, lambda _, __: work(connection))

                await self._write(thread_id, behind)

        # What is written is published, too.
        await uninterrupted(whole())

    async def _write(self, thread_id: str, work: Work[None]) -> None:
        await self.database.write(work, owner=self.holds.owner_of(thread_id))

    def _here(self, work: Coroutine[Any, Any, T]) -> T:
        return self.database.here(work, _AWAIT)


def _reading(work: Work[T]) -> Work[T]:
    """Let work say of rows that it cannot read that they are unreadable."""

    def reading(connection: Connection) -> T:
        with readable():
            return work(connection)

    return reading


def _above(found: tuple[CheckpointTuple | None, str | None]) -> CheckpointTuple | None:
    """Let what continues from a checkpoint be above the newest, also from an older one."""
    checkpoint, newest = found
    if newest:
        advance_id_clock(newest)
    return checkpoint


def _allowing(serde: Any, names: Collection[tuple[str, ...]]) -> Any:
    if isinstance(serde, SealedSerializer):
        # LangGraph would make one that reads plain values, too.
        return SealedSerializer(serde.cipher, _allowing(serde.serde, names))
    return serde.with_msgpack_allowlist(names) if isinstance(serde, JsonPlusSerializer) else serde


def check_above(checkpoint_id: str, parent: str | None, where: str) -> None:
    """See that a checkpoint will be found as newer than the one that it continues from."""
    if parent is not None and checkpoint_id <= parent:
        raise StorageError(
            where,
            f"The checkpoint {checkpoint_id} is not above its parent {parent}, so nothing "
            "would find it.",
            "Correct the clock of this host, then resume the run on its thread.",
        )
