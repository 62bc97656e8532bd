"""What a run leaves behind in a store: rows and bytes, of its checkpoints and of its log."""

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
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from replan import Storage, open_storage

OF_LANGGRAPH = ("replan_checkpoints", "replan_channels", "replan_writes")
"""The tables of checkpoints; all others are of the log."""

_CHECKPOINTS = """
    select count(*), coalesce(sum(length(checkpoint) + length(metadata) + length(versions)), 0)
    from replan_checkpoints
"""
_CHANNELS = "select channel, sum(length(value)) from replan_channels group by channel"
_WRITES = "select channel, count(*), sum(length(value)) from replan_writes group by channel"
_TABLES = "select name from sqlite_master where type = 'table'"
_PG_TABLES = "select tablename from pg_tables where schemaname = 'public'"

Query = Callable[[str], Iterable[Any]]
"""Gives the rows of a statement."""


@dataclass(frozen=True)
class Stored:
    """The content of a store's tables.

    Attributes:
        checkpoints: Rows with a checkpoint, one for each super-step.
        checkpoint_bytes: Their length with their metadata, without the values of channels.
        writes: Rows with a write, one for each channel that a task wrote.
        bytes_by_channel: The length of the writes and of the stored values of each channel.
        log_bytes: The length of all values in the tables of the log.
    """

    checkpoints: int
    checkpoint_bytes: int
    writes: int
    bytes_by_channel: dict[str, int]
    log_bytes: int

    @property
    def bytes(self) -> int:
        """All that was written."""
        return self.checkpoint_bytes + sum(self.bytes_by_channel.values()) + self.log_bytes


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
            yield storage, lambda: _in_memory(storage)


def stored(path: Path) -> Stored:
    """Read what stands in a SQLite file."""
    with closing(sqlite3.connect(path)) as database:
        return _counted(database.execute, _TABLES)


def _counted(query: Query, tables: str) -> Stored:
    ((checkpoints, length),) = query(_CHECKPOINTS)
    rows, by_channel = 0, Counter[str]()
    for channel, value_length in query(_CHANNELS):
        by_channel[channel] += int(value_length)
    for channel, count, value_length in query(_WRITES):
        rows += count
        by_channel[channel] += int(value_length)
    names = [name for (name,) in query(tables) if name.startswith("replan_")]
    log = sum(_bytes_of(query(f"select * from {each}")) for each in {*names} - {*OF_LANGGRAPH})  # noqa: S608 - its own
    return Stored(checkpoints, int(length), rows, dict(by_channel), log)


def _bytes_of(rows: Iterable[tuple[Any, ...]]) -> int:
    values = (value for row in rows for value in row if value is not None)
    return sum(len(v) if isinstance(v, bytes) else len(str(v).encode()) for v in values)


def _in_memory(storage: Storage) -> Stored:
    """Count what the memory of the process holds: its database is one of SQLite."""
    database: Any = storage.checkpointer.database
    return database.run_here(lambda connection: _counted(connection.query, _TABLES), writes=False)


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
        return _counted(connection.execute, _PG_TABLES)
