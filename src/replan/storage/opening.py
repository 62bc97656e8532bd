"""Open storage: a SQLite file, a PostgreSQL database, or the memory of the process."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

from langgraph.checkpoint.serde.base import SerializerProtocol

from replan.base.errors import ConfigurationError
from replan.base.secrets.sources import learn_address, learn_values
from replan.log.run_log import RunLog
from replan.ports.storage import Storage
from replan.storage.checkpoints.saver import Saver
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.database import Database
from replan.storage.databases.encryption import Key, new_facts, opened_with
from replan.storage.databases.serializer import strict_serializer
from replan.storage.databases.sqlite import SqliteDatabase
from replan.storage.databases.sqlite_file import (
    file_errors,
    lock_of,
    make_private,
    prepare,
    same_file,
    upgrade,
)
from replan.storage.holds import FileHolds, ThreadLocks
from replan.storage.log_rows import SqlLogs
from replan.storage.memory import memory_database
from replan.storage.pipeline_threads import Threads
from replan.storage.runs import Runs
from replan.storage.sessions import Sessions
from replan.storage.store import Store

PATIENCE = 30.0  # seconds for which a database that is away, locked or full is asked again
OPENING = 5.0  # seconds at most for which a database that is away is asked again when it is opened
_MOST_DAYS = 36_500
_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")
# What begins as an address; `sqlite:runs.db` is not meant as the name of a file.
_ADDRESS = re.compile(r"(sqlite|postgres|postgresql):|[A-Za-z][\w+.-]*://")


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
    async with AsyncExitStack() as stack:
        text = str(where)
        if text == ":memory:":
            storage = await _memory(stack, allow)
        elif text.startswith(_SQLITE) or not _ADDRESS.match(text):
            # In a thread: some loops are watched for calls that block them.
            path = await asyncio.to_thread(_path_of, text)
            storage = await _sqlite(stack, path, key, patience, allow)
        elif text.startswith(_POSTGRES):
            storage = await _postgres(stack, text, key, patience, allow, connections)
        else:
            raise ConfigurationError(
                "storage",
                f"{text.partition(':')[0]}:...",
                "Replan does not know this kind of storage.",
                "Give a path, `sqlite:///path` or `postgresql://user@host/database`.",
            )
        yield replace(storage, keep_days=keep_days)


def _path_of(where: str) -> Path:
    # Who comes by another name, or from another folder, meets the same locks.
    return Path(os.path.realpath(Path(where.removeprefix(_SQLITE)).expanduser()))


async def _memory(stack: AsyncExitStack, allow: Sequence[type]) -> Storage:
    database = memory_database()
    stack.push_async_callback(database.close)
    holds = ThreadLocks(database)
    stack.push_async_callback(holds.close)
    return _storage(database, strict_serializer(allow), Cipher(), holds)


async def _sqlite(
    stack: AsyncExitStack, path: Path, key: Key, patience: float, allow: Sequence[type]
) -> Storage:
    with file_errors(path):
        await asyncio.to_thread(make_private, path)
        lock = await asyncio.to_thread(lock_of, path)
        with closing(lock):
            facts = await asyncio.to_thread(prepare, path, lambda: new_facts(key))
            serde, cipher = opened_with(key, facts, allow, str(path))
            await asyncio.to_thread(upgrade, path)
            check = await asyncio.to_thread(same_file, path)
            database = await asyncio.to_thread(SqliteDatabase, path, patience, check)
            stack.push_async_callback(database.close)
    holds = FileHolds(path, database)
    stack.push_async_callback(holds.close)
    return _storage(database, serde, cipher, holds)


async def _postgres(
    stack: AsyncExitStack,
    address: str,
    key: Key,
    patience: float,
    allow: Sequence[type],
    connections: int,
) -> Storage:
    try:
        from replan.storage.advisory_holds import AdvisoryHolds  # noqa: PLC0415 - an extra
        from replan.storage.databases.postgres import PostgresDatabase  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(
            "storage",
            "postgresql://...",
            "PostgreSQL needs psycopg.",
            "Install it with `pip install 'replan[postgres]'`.",
        ) from error
    database = PostgresDatabase(address, patience, connections)
    stack.push_async_callback(database.close)
    # A wrong address should be reported sooner than a server that restarts.
    serde, cipher = await database.prepare(
        lambda: new_facts(key),
        lambda facts: opened_with(key, facts, allow, database.where),
        min(patience, OPENING),
    )
    holds = AdvisoryHolds(database)
    stack.push_async_callback(holds.close)
    return _storage(database, serde, cipher, holds)


def _storage(
    database: Database, serde: SerializerProtocol, cipher: Cipher, holds: ThreadLocks
) -> Storage:
    logs = SqlLogs(database, cipher)
    log = RunLog(logs)
    saver = Saver(database, serde, holds, logs, log)
    return Storage(
        checkpointer=saver,
        log=log,
        runs=Runs(database, cipher, holds),
        sessions=Sessions(database, cipher),
        store=Store(database, cipher),
        threads=Threads(database, cipher),
    )
