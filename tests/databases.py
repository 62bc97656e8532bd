"""Databases with the tables of storage: a file, the memory, and PostgreSQL."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from replan.storage.databases.database import Database
from replan.storage.databases.encryption import new_facts
from replan.storage.databases.sqlite import SqliteDatabase
from replan.storage.databases.sqlite_file import prepare, same_file
from replan.storage.memory import memory_database


@asynccontextmanager
async def opened_database(kind: str, path: Path, address: str = "") -> AsyncGenerator[Database]:
    """A new database of a kind; `address` is that of an empty PostgreSQL database."""
    database = await _open(kind, path, address)
    try:
        yield database
    finally:
        await database.close()


async def _open(kind: str, path: Path, address: str) -> Database:
    if kind == "postgres":
        from replan.storage.databases.postgres import PostgresDatabase  # noqa: PLC0415 - an extra

        postgres = PostgresDatabase(address, 5.0, 8)
        await postgres.prepare(lambda: new_facts(None), lambda facts: facts, 5.0)
        return postgres
    if kind == "sqlite":
        prepare(path, lambda: new_facts(None))
        return SqliteDatabase(path, 5.0, same_file(path))
    return memory_database()
