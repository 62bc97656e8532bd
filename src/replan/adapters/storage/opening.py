"""Open storage: a SQLite file, a PostgreSQL database, or the memory of the process."""

import asyncio
import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiosqlite
from langgraph.checkpoint.serde.base import SerializerProtocol
from sqlalchemy import URL, AsyncAdaptedQueuePool, Table, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.schema import CreateTable

from replan.adapters.memory_journal import MemoryJournal
from replan.adapters.memory_run_book import MemoryRunBook
from replan.adapters.memory_sessions import MemorySessions
from replan.adapters.storage.checkpoints.savers import MemorySaver, SqliteSaver
from replan.adapters.storage.checkpoints.sealed_sqlite import SealedSqliteSaver, show_places
from replan.adapters.storage.database import Database, Patience
from replan.adapters.storage.holds.file_holds import FileHolds
from replan.adapters.storage.sqlite_file import (
    file_errors,
    lock_of,
    make_private,
    prepare,
    same_file,
    upgrade,
)
from replan.adapters.storage.store.sql_store import SqlStore
from replan.adapters.storage.stored_values.sealing import (
    Key,
    Seal,
    SealedSerializer,
    new_facts,
    opened_with,
)
from replan.adapters.storage.stored_values.serializer import strict_serializer
from replan.adapters.storage.tables import schema
from replan.adapters.storage.tables.sql_journal import SqlJournal
from replan.adapters.storage.tables.sql_run_book import SqlRunBook
from replan.adapters.storage.tables.sql_sessions import SqlSessions
from replan.adapters.storage.tables.sql_threads import SqlThreads
from replan.adapters.storage.whole_writes import WholeWrites
from replan.adapters.thread_holds import Holds
from replan.adapters.thread_repositories import MemoryThreads
from replan.errors import ConfigurationError
from replan.ports.ownership import Owner
from replan.ports.storage import Storage
from replan.secrets.sources import learn_address, learn_values

PATIENCE = 30.0  # seconds for which a database that is away, locked or full is asked again
OPENING = 5.0  # seconds at most for which a database that is away is asked again when it is opened
BUSY = 10.0  # seconds that SQLite waits by itself for another process to end its write
_MOST_DAYS = 36_500


@asynccontextmanager
async def open_storage(
    where: str | Path,
    *,
    key: Key = None,
    patience: float = PATIENCE,
    allow: Sequence[type] = (),
    keep_days: float | None = None,
    connections: int = 16,
) -> AsyncGenerator[Storage]:
    """Open the storage of runs. Leaving the block closes it.

    Args:
        where: The path of a SQLite file, or `sqlite:///path`; `postgresql://...`; or `:memory:`.
            A missing file is created, for this user alone.
        key: Encrypts what people, models and tools said. Encrypted storage needs the key that it
            was created with. Storage that was created without a key must be opened without one.
        patience: Seconds for which work on an unreachable, locked or full database is repeated.
        allow: Further classes in the states of graphs, for specialists that are compiled graphs
            with their own state.
        keep_days: Days for which prompts, replies and other long texts of events are kept; older
            texts are removed whenever a run begins. None means as long as their runs.
        connections: The maximum number of connections to PostgreSQL, 2 or more, in addition to the
            one that holds threads.

    Raises:
        StorageError: It cannot be opened; says why, and what to do. Nothing was changed.
        ConfigurationError: Replan does not know the storage `where`, a package is missing, or
            `keep_days` is not a number of days.
    """
    if keep_days is not None and not 0 <= keep_days <= _MOST_DAYS:
        problem = "It is not a number of days."
        raise ConfigurationError("keep_days", keep_days, problem, "Give a number such as 30.")
    learn_address(str(where))
    learn_values([key])
    async with _open(str(where), key, patience, allow, connections) as storage:
        yield replace(storage, keep_days=keep_days)


@asynccontextmanager
async def _open(
    text: str, key: Key, patience: float, allow: Sequence[type], connections: int
) -> AsyncGenerator[Storage]:
    plain = strict_serializer(allow)
    scheme, separator, _ = text.partition("://")
    if text == ":memory:":
        async with _memory_storage(MemorySaver(plain, Holds())) as storage:
            yield storage
    elif not separator or scheme == "sqlite":
        async with _sqlite_storage(_path_of(text), key, patience, allow) as storage:
            yield storage
    elif scheme in ("postgresql", "postgres"):
        async with _postgres_storage(text, key, patience, allow, connections) as storage:
            yield storage
    else:
        raise ConfigurationError(
            "storage",
            f"{scheme}://...",
            "Replan does not know this kind of storage.",
            "Give a path, `sqlite:///path` or `postgresql://user@host/database`.",
        )


def _path_of(where: str) -> Path:
    # Who comes by another name, or from another folder, meets the same locks.
    return Path(os.path.realpath(Path(where.removeprefix("sqlite:///")).expanduser()))


@asynccontextmanager
async def _memory_storage(saver: MemorySaver) -> AsyncGenerator[Storage]:
    journal = MemoryJournal()
    threads = MemoryThreads()
    runs = MemoryRunBook(journal, saver.holds, saver.adelete_thread, threads)
    # The store is SQLite's in memory: what can be found there is what can be found in a file.
    engine, insisting = _sqlite_engine(":memory:", schema.items), Patience(":memory:", 0.0)
    store = SqlStore(Database(engine, insisting, _begin, asyncio.Lock()), Seal())
    try:
        yield Storage(
            checkpointer=saver,
            journal=journal,
            runs=runs,
            sessions=MemorySessions(),
            store=store,
            threads=threads,
        )
    finally:
        await insisting.end()
        await engine.dispose()


@asynccontextmanager
async def _sqlite_storage(
    path: Path, key: Key, patience: float, allow: Sequence[type]
) -> AsyncGenerator[Storage]:
    plain = strict_serializer(allow)
    async with AsyncExitStack() as stack:
        with file_errors(path):
            await asyncio.to_thread(make_private, path)
            lock = await asyncio.to_thread(lock_of, path)
            with closing(lock):
                facts = await asyncio.to_thread(prepare, path, lambda: new_facts(key))
                serde, seal = opened_with(key, facts, plain, str(path))
                await asyncio.to_thread(upgrade, path)
                connection = await stack.enter_async_context(aiosqlite.connect(path, timeout=BUSY))
                await connection.execute("PRAGMA synchronous = FULL")
                insisting = Patience(str(path), patience, same_file(path))
                engine = _sqlite_engine(path)
                stack.push_async_callback(engine.dispose)
                whole = WholeWrites(path, BUSY)
                stack.push_async_callback(whole.close)
                database = Database(engine, insisting, _begin, asyncio.Lock(), whole)
                holds = FileHolds(path, database)
                saver = SqliteSaver(connection, serde, insisting, holds, database)
                await saver.setup()
                if isinstance(serde, SealedSerializer):
                    reading = aiosqlite.connect(path, timeout=BUSY)
                    await show_places(await stack.enter_async_context(reading))
                    saver = SealedSqliteSaver(saver, reading)
        stack.push_async_callback(insisting.end)
        stack.push_async_callback(holds.close)
        yield _storage(saver, database, seal)


@asynccontextmanager
async def _postgres_storage(
    address: str, key: Key, patience: float, allow: Sequence[type], connections: int
) -> AsyncGenerator[Storage]:
    try:
        from replan.adapters.storage import postgres  # noqa: PLC0415 - an extra
        from replan.adapters.storage.checkpoints import postgres_saver  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(
            "storage",
            "postgresql://...",
            "PostgreSQL needs psycopg and LangGraph's saver for it.",
            "Install them with `pip install 'replan[postgres]'`.",
        ) from error
    plain, where = strict_serializer(allow), postgres.shown(address)
    insisting = Patience(where, patience)
    async with postgres.connected(address, patience, connections) as (pool, engine):
        holds = postgres.holds_of(address, insisting)
        database = Database(engine, insisting, postgres.begin)

        async def prepared() -> tuple[SerializerProtocol, Seal]:
            return await postgres.prepare_database(
                address,
                where,
                new_facts=lambda: new_facts(key),
                opened=lambda facts: opened_with(key, facts, plain, where),
            )

        # A wrong address should be reported sooner than a server that restarts.
        serde, seal = await Patience(where, min(patience, OPENING)).insist(prepared)
        is_sealed = isinstance(serde, SealedSerializer)
        kind = postgres_saver.SealedPostgresSaver if is_sealed else postgres_saver.PostgresSaver
        saver = kind(pool, serde, insisting, holds, database)
        try:
            yield _storage(saver, database, seal)
        finally:
            await insisting.end()
            await holds.close()


def _storage(saver: Any, database: Database, seal: Seal) -> Storage:
    return Storage(
        checkpointer=saver,
        journal=SqlJournal(database, seal),
        runs=SqlRunBook(database, seal, saver.holds, saver.adelete_thread),
        sessions=SqlSessions(database, seal),
        store=SqlStore(database, seal),
        threads=SqlThreads(database, seal),
    )


def _sqlite_engine(path: Path | str, *missing: Table) -> AsyncEngine:
    url = URL.create("sqlite+aiosqlite", database=str(path))
    pool: Any = {"poolclass": AsyncAdaptedQueuePool, "pool_size": 1, "max_overflow": 0}
    engine = create_async_engine(url, **pool, connect_args={"timeout": BUSY})

    @event.listens_for(engine.sync_engine, "connect")
    def begin_by_hand(connection: Any, _: Any) -> None:
        # The driver would begin a transaction only before its first write, which is too late: what
        # was read before it could be old by then.
        connection.isolation_level = None
        cursor = connection.cursor()
        cursor.execute("PRAGMA synchronous = FULL")
        for table in missing:
            cursor.execute(str(CreateTable(table).compile(dialect=engine.dialect)))
        cursor.close()

    return engine


async def _begin(driver: aiosqlite.Connection, *, writes: bool, owner: Owner | None) -> None:
    # By the driver alone, which hands each to its thread once; a cursor's would be three times.
    await driver.execute_fetchall("BEGIN IMMEDIATE" if writes else "BEGIN")
    if owner is not None:
        query = "SELECT epoch FROM replan_threads WHERE thread_id = ?"
        rows = await driver.execute_fetchall(query, (owner.thread_id,))
        owner.check(next((epoch for (epoch,) in rows), None))
