"""The tables of storage, looked at and changed from outside."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import Any

import psycopg

from replan.storage.databases.database import Connection
from replan.storage.databases.postgres import PostgresConnection
from replan.storage.databases.sqlite import SqliteConnection

_OF_SQLITE = "SELECT name, sql FROM sqlite_master"
_OF_POSTGRES = """
    SELECT table_name, 'column ' || column_name,
        data_type || coalesce(collation_name, '') || is_nullable || coalesce(column_default, '')
    FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL
    SELECT tablename, 'index', indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL
    SELECT conrelid::regclass::text, 'constraint', pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
"""


@contextmanager
def changing(where: str) -> Generator[Connection]:
    """Change storage from outside, in one transaction."""
    if where.startswith("postgresql"):
        with psycopg.connect(where, autocommit=True) as driver, driver.transaction():
            yield PostgresConnection(driver)
    else:
        with closing(SqliteConnection(where)) as connection, connection.transaction():
            yield connection


def rows_of(connection: Connection, table: str) -> list[dict[str, Any]]:
    """The rows of a table, each by its columns."""
    names = columns_of(connection, table)
    query = f"SELECT {', '.join(names)} FROM {table} ORDER BY {', '.join(names)}"  # noqa: S608
    return [dict(zip(names, row, strict=True)) for row in connection.query(query)]


def tables_in(connection: Connection) -> list[str]:
    """The names of the tables.

    The index of words is none of them: it is no part of the format, and made when it is needed.
    """
    query = (
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        if connection.is_postgres
        else "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1"
    )
    return [
        name
        for (name,) in connection.query(query)
        if not name.startswith(("replan_words", "sqlite_"))
    ]


def columns_of(connection: Connection, table: str) -> dict[str, str]:
    """The columns of a table, with their types."""
    query = (
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name = ? ORDER BY ordinal_position"
        if connection.is_postgres
        else "SELECT name, type FROM pragma_table_info(?) ORDER BY cid"
    )
    return dict(connection.query(query, [table]))


def schema_of(connection: Connection) -> dict[str, list[str]]:
    """The tables with their columns, keys and indexes, in no order."""
    query = _OF_POSTGRES if connection.is_postgres else _OF_SQLITE
    found: dict[str, list[str]] = {}
    for name, *said in sorted(connection.query(query), key=str):
        if not name.startswith("replan_words"):
            found.setdefault(name, []).append(str(said))
    return found


def picture(where: str) -> dict[str, Any]:
    """All that storage holds: its format, its tables and their rows."""
    with changing(where) as connection:
        rows: dict[str, object] = {
            table: rows_of(connection, table) for table in tables_in(connection)
        }
        if not connection.is_postgres:
            rows["user_version"] = connection.query("PRAGMA user_version")
        return {"schema": schema_of(connection), "rows": rows}


def dump(where: str) -> bytes:
    """All that stands in all tables, also in those of the index of words, as bytes."""
    if where.startswith("postgresql"):
        with psycopg.connect(where) as driver:
            return b"\n".join(_of_postgres(driver))
    with closing(sqlite3.connect(where)) as driver:
        return b"\n".join(_of_sqlite(driver))


def _of_sqlite(driver: sqlite3.Connection) -> Generator[bytes]:
    yield "\n".join(driver.iterdump()).encode()
    names = driver.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in names:
        for row in driver.execute(f'SELECT * FROM "{name}"'):  # noqa: S608 - of the database
            yield from (value for value in row if isinstance(value, bytes))


def _of_postgres(driver: "psycopg.Connection[Any]") -> Generator[bytes]:
    query = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    for (name,) in driver.execute(query).fetchall():
        for row in driver.execute(f'SELECT * FROM "{name}"'):  # pyright: ignore[reportArgumentType]  # noqa: S608
            yield from (value if isinstance(value, bytes) else str(value).encode() for value in row)
