"""What a run leaves behind in a store: rows and bytes, of LangGraph's savers and of the journal."""

import secrets
import sqlite3
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from replan import Storage, open_storage

JOURNAL = "replan_"
"""How the names of the tables begin that are not LangGraph's."""

_CHECKPOINTS = "select count(*), sum(length(checkpoint) + length(metadata)) from checkpoints"
_WRITES = "select channel, count(*), sum(length(value)) from writes group by channel"
_TABLES = "select name from sqlite_master where type = 'table'"
_PG_CHECKPOINTS = """
    select count(*), sum(octet_length(checkpoint::text) + octet_length(metadata::text))
    from checkpoints
"""
_PG_WHOLE = "select coalesce(sum(octet_length(blob)), 0) from checkpoint_blobs"
_PG_WRITES = """
    select channel, count(*), sum(octet_length(blob)) from checkpoint_writes group by channel
"""
_PG_TABLES = "select tablename from pg_tables where schemaname = 'public'"


@dataclass(frozen=True)
class Stored:
    """The content of a store's tables.

    Attributes:
        checkpoints: Rows with a checkpoint, one for each super-step.
        checkpoint_bytes: Their length, metadata and whole values included.
        writes: Rows with a write, one for each channel that a task wrote.
        bytes_by_channel: The length of the writes of each channel.
        journal_bytes: The length of all values in the tables of the journal.
    """

    checkpoints: int
    checkpoint_bytes: int
    writes: int
    bytes_by_channel: dict[str, int]
    journal_bytes: int = 0

    @property
    def bytes(self) -> int:
        """All that was written."""
        return self.checkpoint_bytes + sum(self.bytes_by_channel.values()) + self.journal_bytes


Count = Callable[[], Stored]


@asynccontextmanager
async def fresh_saver() -> AsyncGenerator[tuple[Any, Path]]:
    """LangGraph's own saver on a new SQLite file, with its tables made."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoints.sqlite"
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            await saver.setup()
            yield saver, path


@asynccontextmanager
async def fresh_storage(where: str) -> AsyncGenerator[tuple[Storage, Count]]:
    """New storage, and what counts its content.

    Args:
        where: `memory`, `sqlite`, or the address of a PostgreSQL server, on which a database is
            made and dropped again.
    """
    if where.startswith("postgresql://"):
        with fresh_database(where) as address:
            async with open_storage(address) as storage:
                yield storage, lambda: _in_postgres(address)
    elif where == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "runs.sqlite"
            async with open_storage(path) as storage:
                yield storage, lambda: stored(path)
    else:
        async with open_storage(":memory:") as storage:
            yield storage, lambda: _in_memory(storage.checkpointer)


def stored(path: Path) -> Stored:
    """Read what stands in a SQLite file."""
    with closing(sqlite3.connect(path)) as database:
        checkpoints, length = database.execute(_CHECKPOINTS).fetchone()
        writes = database.execute(_WRITES).fetchall()
        tables = [name for (name,) in database.execute(_TABLES) if name.startswith(JOURNAL)]
        journal = sum(_bytes_of(database.execute(f"select * from {name}")) for name in tables)  # noqa: S608
    return _stored(checkpoints, length, writes, journal)


def _stored(checkpoints: int, length: int, writes: list[Any], journal: int = 0) -> Stored:
    return Stored(
        checkpoints=checkpoints,
        checkpoint_bytes=int(length),
        writes=sum(rows for _, rows, _ in writes),
        bytes_by_channel={channel: int(length or 0) for channel, _, length in writes},
        journal_bytes=journal,
    )


def _bytes_of(rows: Iterable[tuple[Any, ...]]) -> int:
    values = (value for row in rows for value in row if value is not None)
    return sum(len(v) if isinstance(v, bytes) else len(str(v).encode()) for v in values)


def _in_memory(saver: Any) -> Stored:
    """Count what the memory of the process holds: it holds what a file would, serialised."""
    if not isinstance(saver, InMemorySaver):
        raise TypeError(type(saver).__name__)
    threads = (thread.values() for thread in saver.storage.values())
    rows = [row for each in threads for namespace in each for row in namespace.values()]
    whole = [value for value in saver.blobs.values() if value[0] != "empty"]
    writes = [write for task in saver.writes.values() for write in task.values()]
    by_channel, rows_of = Counter[str](), Counter[str]()
    for _, channel, (_, value), _ in writes:
        by_channel[channel] += len(value)
        rows_of[channel] += 1
    length = sum(len(value) for row in rows for _, value in row[:2])
    length += sum(len(value) for _, value in whole)
    return _stored(len(rows), length, [(name, rows_of[name], by_channel[name]) for name in rows_of])


@contextmanager
def fresh_database(server: str) -> Iterator[str]:
    """A new database on a server, and its address; gone at the end."""
    name = f"replan_benchmark_{secrets.token_hex(8)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"drop database {name} with (force)")


def _in_postgres(address: str) -> Stored:
    with psycopg.connect(address) as connection:
        checkpoints, length = _only(connection.execute(_PG_CHECKPOINTS))
        (whole,) = _only(connection.execute(_PG_WHOLE))
        writes = connection.execute(_PG_WRITES).fetchall()
        tables = [name for (name,) in connection.execute(_PG_TABLES) if name.startswith(JOURNAL)]
        journal = sum(_bytes_of(connection.execute(f"select * from {name}")) for name in tables)  # noqa: S608
    return _stored(checkpoints, int(length) + int(whole), writes, journal)


def _only(cursor: Any) -> Any:
    return cursor.fetchone()
