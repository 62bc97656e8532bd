"""Processes that are killed while they make or upgrade storage."""

import sqlite3
from collections.abc import Callable
from typing import Any

import psycopg

from kills import Life
from replan import open_storage
from replan.storage.databases import schema
from replan.storage.databases.database import Connection

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


async def open_it(life: Life) -> int:
    """Open storage as every program does; give how many moments there were.

    A moment is before a statement that changes something, and before each statement that comes
    behind it: the commit, and what is done after it.
    """
    _at_each_moment(life.wrote)
    async with open_storage(life.where, key=life.given):
        return len(life.written)


async def widen_it(life: Life) -> int:
    """Open storage as a release does whose format is what `widen` makes."""
    schema.MIGRATIONS = (*schema.MIGRATIONS, widen)
    schema.FORMAT = len(schema.MIGRATIONS) + 1
    return await open_it(life)


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
