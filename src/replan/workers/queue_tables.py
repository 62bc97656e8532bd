"""The tables of the queue: Procrastinate's and ours, made and upgraded when the queue is opened."""

from pathlib import Path
from typing import Any, cast

import psycopg
from procrastinate.schema import SchemaManager

from replan.base.errors import StorageError
from replan.workers.patient_connector import SCHEMA

FIRST = "03.04.00_50_post_add_retry_failed_job_procedure"
"""The newest migration of Procrastinate when queues began to record theirs."""

_LOCK = int.from_bytes(b"ReplanQ", "big")
_OURS = """
CREATE TABLE replan_teams (
    digest text PRIMARY KEY, name text NOT NULL, content text NOT NULL,
    published_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX replan_turns ON procrastinate_jobs
    (queue_name, (args ->> 'tenant'), priority) WHERE status = 'todo';
"""
_NOTED = """
CREATE TABLE IF NOT EXISTS replan_schema (is_one boolean PRIMARY KEY DEFAULT true, migration text);
INSERT INTO replan_schema (migration) VALUES ('{migration}')
ON CONFLICT (is_one) DO UPDATE SET migration = excluded.migration;
"""
_ALIVE = """
SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - interval '30 seconds'
"""

Connection = psycopg.AsyncConnection[Any]


async def prepare(address: str, where: str) -> None:
    """Make the tables, or bring them to the installed Procrastinate, in one transaction.

    One process does it at a time.
    """
    async with await Connection.connect(address, connect_timeout=10) as connection:
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if not await _single_value(
            connection, "SELECT to_regclass(%s) IS NOT NULL", "replan_teams"
        ):
            await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
            await connection.execute(f"SET LOCAL search_path = {SCHEMA}")
            await connection.execute(SchemaManager.get_schema())
            await connection.execute(cast("Any", _OURS))
            await _note(connection, migrations()[-1].stem)
            return
        await connection.execute(f"SET LOCAL search_path = {SCHEMA}")
        await _upgrade(connection, where)


def migrations() -> list[Path]:
    """The migrations of the installed Procrastinate, the oldest first."""
    return sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))


async def _upgrade(connection: Connection, where: str) -> None:
    is_noted = await _single_value(
        connection, "SELECT to_regclass(%s) IS NOT NULL", "replan_schema"
    )
    migration = FIRST
    if is_noted:
        migration = str(await _single_value(connection, "SELECT migration FROM replan_schema"))
    newest = migrations()[-1].stem
    if migration > newest:
        # Its name begins with the release, such as 03.04.00.
        release = ".".join(str(int(part)) for part in migration.partition("_")[0].split("."))
        problem = f"A newer Procrastinate made its queue (migration {migration})."
        raise StorageError(where, problem, f"Install procrastinate>={release}.")
    missing = [path for path in migrations() if path.stem > migration]
    if missing and await _single_value(connection, _ALIVE):
        problem = "Its queue must be upgraded, but workers of an older version are running."
        fix = "Stop all workers and servers, then start them with the new version."
        raise StorageError(where, problem, fix)
    try:
        for path in missing:
            await connection.execute(cast("Any", path.read_text(encoding="utf-8")))
    except psycopg.DatabaseError as error:
        cause = " ".join(str(error).split())
        problem = f"Its queue cannot be upgraded to migration {newest} ({cause})."
        fix = "Nothing was changed. Let a user who owns the schema replan_queue open it first."
        raise StorageError(where, problem, fix) from error
    if missing or not is_noted:
        await _note(connection, newest)


async def _note(connection: Connection, migration: str) -> None:
    await connection.execute(cast("Any", _NOTED.format(migration=migration)))


async def _single_value(connection: Connection, query: str, *tables: str) -> Any:
    named = [f"{SCHEMA}.{table}" for table in tables]
    row = await (await connection.execute(cast("Any", query), named or None)).fetchone()
    return row[0] if row else None
