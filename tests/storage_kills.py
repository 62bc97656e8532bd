"""Processes that are killed while they make or upgrade storage."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from itertools import count
from typing import Any

import psycopg

import warm
from replan import open_storage
from replan.storage import schema
from replan.storage.database import Connection

_CHANGES = ("INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP")


def widen(connection: Connection) -> None:
    """A migration with all that migrations do."""
    for statement in (
        "CREATE TABLE replan_extra (name TEXT PRIMARY KEY, run_id TEXT)",
        "ALTER TABLE replan_runs ADD COLUMN extra TEXT NOT NULL DEFAULT ''",
        "UPDATE replan_runs SET extra = thread_id",
        "CREATE INDEX replan_runs_by_extra ON replan_runs (extra)",
        "INSERT INTO replan_extra SELECT run_id, run_id FROM replan_runs",
        "DELETE FROM replan_writes",
        "DROP TABLE replan_labels",
        "CREATE TABLE replan_labels (name TEXT PRIMARY KEY)",
    ):
        connection.change(statement)


def open_it(where: str, key: str | None) -> None:
    """Open storage as every program does."""

    async def opened() -> None:
        async with open_storage(where, key=key):
            pass

    asyncio.run(opened())


def widen_it(where: str, key: str | None) -> None:
    """Open storage as a release does whose format is what `widen` makes."""
    schema.MIGRATIONS = (*schema.MIGRATIONS, widen)
    schema.FORMAT = len(schema.MIGRATIONS) + 1
    open_it(where, key)


Work = Callable[[str, str | None], None]


def moments_of(work: Work, where: str) -> int:
    """Do it, and count its moments."""
    counted = warm.call(_count, work, where)
    assert counted.returncode == 0, counted.stderr
    return int(counted.stdout)


def killed(work: Work, where: str, key: str | None, at: int) -> bool:
    """Do it in a process that is killed at a moment; tell whether there was such a moment.

    A moment is before a statement that changes something, and before each statement that comes
    behind it: the commit, and what is done after it.
    """
    ended = warm.call(_until, work, where, key, at)
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode != 0


def _until(work: Work, where: str, key: str | None, at: int) -> None:
    moments = count(1)

    def strike() -> None:
        if next(moments) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    _at_each_moment(strike)
    work(where, key)


def _count(work: Work, where: str) -> None:
    met: list[None] = []
    _at_each_moment(lambda: met.append(None))
    work(where, None)
    sys.stdout.write(str(len(met)))


def _at_each_moment(strike: Callable[[], None]) -> None:
    """Have both drivers tell of their statements."""
    has_changed = False

    def met(statement: str) -> None:
        nonlocal has_changed
        has_changed = has_changed or statement.lstrip().startswith(_CHANGES)
        if has_changed:
            strike()

    connect, execute, send = sqlite3.connect, psycopg.Cursor.execute, psycopg.Connection.wait

    def connected(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(met)
        return connection

    def executed(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        nonlocal has_changed
        has_changed = has_changed or query.lstrip().startswith(_CHANGES)
        return execute(cursor, query, *args, **options)

    def sent(connection: Any, *args: Any, **options: Any) -> Any:
        # Also the ends of transactions, which no cursor executes.
        met("")
        return send(connection, *args, **options)

    sqlite3.connect = connected
    psycopg.Cursor.execute = executed
    psycopg.Connection.wait = sent
