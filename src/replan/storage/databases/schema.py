"""The tables of storage: how they are made, known and upgraded, and what is removed with a run.

Everything here works in the transaction that is open on a connection, so that a process that is
killed leaves what was there before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from replan.base.errors import StorageError
from replan.storage.databases.database import Connection, Row
from replan.storage.databases.faults import DAMAGED

if TYPE_CHECKING:
    from replan.storage.databases.encryption import Facts

# `checkpoints`: each says of which run it is, and the newest row of its log that it has seen.
# `log`: what happened in a run. A row that others may see has a number among those, `seq`, and an
# `event`; what only the run's own doors show is in `value`. The first row of a key counts; that of
# a row that is superseded begins with `~` and its number.
# `spent`: sums of the log, so that a reservation costs the same after ten thousand calls.
# `versions`: those of a checkpoint's channels, as JSON; a value is in `channels` once per version.
_TABLES: dict[str, str] = {
    "replan_facts": "name {text} PRIMARY KEY, value {bytes} NOT NULL",
    "replan_runs": """
        run_id {text} PRIMARY KEY, thread_id {text} NOT NULL, title {bytes} NOT NULL,
        team_order {bytes} NOT NULL, settings {bytes} NOT NULL, team {bytes} NOT NULL,
        outcome {text} NOT NULL, started_at {text} NOT NULL, updated_at {text} NOT NULL""",
    "replan_labels": """
        run_id {text} NOT NULL, name {text} NOT NULL, value {text} NOT NULL,
        PRIMARY KEY (run_id, name)""",
    "replan_logs": "run_id {text} PRIMARY KEY, thread_id {text} NOT NULL",
    "replan_log": """
        run_id {text} NOT NULL, number BIGINT NOT NULL, key {text} NOT NULL, kind {text} NOT NULL,
        at {text} NOT NULL, seq BIGINT, event {bytes}, value {bytes},
        PRIMARY KEY (run_id, number), UNIQUE (run_id, key)""",
    "replan_texts": """
        run_id {text} NOT NULL, ref {text} NOT NULL, at {text}, text {bytes} NOT NULL,
        PRIMARY KEY (run_id, ref)""",
    "replan_spent": """
        run_id {text} NOT NULL, scope {text} NOT NULL, settled_calls BIGINT NOT NULL,
        settled_tokens BIGINT NOT NULL, settled_cost DOUBLE PRECISION NOT NULL,
        reserved_calls BIGINT NOT NULL, reserved_tokens BIGINT NOT NULL,
        reserved_cost DOUBLE PRECISION NOT NULL, PRIMARY KEY (run_id, scope)""",
    "replan_threads": "thread_id {text} PRIMARY KEY, epoch BIGINT NOT NULL",
    "replan_checkpoints": """
        thread_id {text} NOT NULL, namespace {text} NOT NULL, checkpoint_id {text} NOT NULL,
        parent_id {text}, versions {bytes} NOT NULL, run_id {text} NOT NULL, kind {text} NOT NULL,
        checkpoint {bytes} NOT NULL, metadata_kind {text} NOT NULL, metadata {bytes} NOT NULL,
        log_id {text} NOT NULL DEFAULT '', log_row BIGINT NOT NULL DEFAULT 0,
        PRIMARY KEY (thread_id, namespace, checkpoint_id)""",
    "replan_channels": """
        thread_id {text} NOT NULL, namespace {text} NOT NULL, channel {text} NOT NULL,
        version {text} NOT NULL, kind {text} NOT NULL, value {bytes} NOT NULL,
        PRIMARY KEY (thread_id, namespace, channel, version)""",
    "replan_writes": """
        thread_id {text} NOT NULL, namespace {text} NOT NULL, checkpoint_id {text} NOT NULL,
        task_id {text} NOT NULL, number BIGINT NOT NULL, task_path {text} NOT NULL,
        channel {text} NOT NULL, kind {text} NOT NULL, value {bytes} NOT NULL,
        PRIMARY KEY (thread_id, namespace, checkpoint_id, task_id, number)""",
    "replan_items": """
        id {serial}, namespace {text} NOT NULL, key {text} NOT NULL, value {bytes} NOT NULL,
        created_at {text} NOT NULL, updated_at {text} NOT NULL, UNIQUE (namespace, key)""",
    "replan_sessions": """
        tenant {text} NOT NULL, user_id {text} NOT NULL, session_id {text} NOT NULL,
        version BIGINT NOT NULL, created_at {text} NOT NULL, updated_at {text} NOT NULL,
        title {bytes} NOT NULL, stage {bytes} NOT NULL,
        PRIMARY KEY (tenant, user_id, session_id)""",
    "replan_turns": """
        tenant {text} NOT NULL, user_id {text} NOT NULL, session_id {text} NOT NULL,
        number BIGINT NOT NULL, turn_id {text} NOT NULL, at {text} NOT NULL, given {text} NOT NULL,
        run_id {text} NOT NULL, takes_back BIGINT, result {bytes} NOT NULL,
        histories {bytes} NOT NULL, PRIMARY KEY (tenant, user_id, session_id, number),
        UNIQUE (tenant, user_id, session_id, turn_id)""",
    "replan_parts": """
        tenant {text} NOT NULL, user_id {text} NOT NULL, session_id {text} NOT NULL,
        name {text} NOT NULL, turn BIGINT NOT NULL, value {bytes} NOT NULL,
        PRIMARY KEY (tenant, user_id, session_id, name, turn)""",
    "replan_thread_rows": """
        thread_id {text} NOT NULL, path {text} NOT NULL, run_id {text} NOT NULL,
        revision BIGINT NOT NULL, write_id {text} NOT NULL, value {bytes} NOT NULL,
        PRIMARY KEY (thread_id, path)""",
}

_INDEXES = (
    "replan_runs_by_thread ON replan_runs (thread_id)",
    "replan_runs_by_start ON replan_runs (started_at)",
    "replan_labels_by_value ON replan_labels (name, value)",
    "replan_logs_by_thread ON replan_logs (thread_id)",
    "replan_texts_by_time ON replan_texts (at)",
    "replan_checkpoints_by_run ON replan_checkpoints (run_id)",
    "replan_sessions_by_use ON replan_sessions (tenant, user_id, updated_at)",
    "replan_sessions_by_time ON replan_sessions (updated_at)",
    "replan_thread_rows_by_run ON replan_thread_rows (run_id)",
)

OF_A_RUN = (
    "replan_log",
    "replan_logs",
    "replan_texts",
    "replan_spent",
    "replan_labels",
    "replan_thread_rows",
    "replan_runs",
)
"""Every table with rows of a run."""

_SQLITE = {
    "text": "TEXT",
    "bytes": "BLOB",
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
}
# PostgreSQL would else compare by the rules of a language, in which no prefix is a range.
_POSTGRES = {
    "text": 'TEXT COLLATE "C"',
    "bytes": "BYTEA",
    "serial": "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
}

_LONG_ROWS = ("replan_log", "replan_writes")

Migration = Callable[[Connection], None]
"""Changes storage of one format into the next, inside the transaction open on the connection."""

MIGRATIONS: tuple[Migration, ...] = ()
"""From format 1 to 2, and so on. Each speaks SQL of its own: `_TABLES` is the newest format."""

FORMAT = len(MIGRATIONS) + 1
"""The format that this version makes, and to which it upgrades older ones."""

LEFT = f"It was left as it was. {DAMAGED.fix}"
"""What to do with what is damaged, where nothing of it was touched."""

_NEEDED = frozenset({"salt", "token"})
_UNRELEASED = (
    "It was made by a state of Replan before its first release, which this version does not read."
)


def read_facts(connection: Connection, where: str) -> Facts:
    """Read the storage's data about itself; empty without any."""
    tables = _tables_in(connection)
    if "replan_facts" not in tables:
        return {}
    facts = {name: bytes(value) for name, value in connection.query("SELECT * FROM replan_facts")}
    try:
        version, release = _format_of(connection), facts.get("release", b"").decode()
    except ValueError as error:
        raise StorageError(where, DAMAGED.problem, LEFT) from error
    schema = facts.get("schema", b"").decode(errors="replace")
    if facts and not schema:
        raise StorageError(where, _UNRELEASED, "It is unchanged: name another place.")
    if version > FORMAT:
        release = release or "a newer release"
        raise StorageError(
            where,
            f"It was written by a newer version of Replan ({release}, format {version}; this one "
            f"knows format {FORMAT}).",
            "It is unchanged: upgrade Replan, or name another place.",
        )
    if schema and version == FORMAT and schema != SCHEMA:
        raise StorageError(where, _UNRELEASED, "It is unchanged: name another place.")
    # What tables an older format has, its migrations know.
    has_tables = 0 < version < FORMAT or (version == FORMAT and tables >= _TABLES.keys())
    if facts and not (has_tables and facts.keys() >= _NEEDED):
        raise StorageError(where, DAMAGED.problem, LEFT)
    return facts


def make(connection: Connection, facts: Facts, where: str) -> None:
    """Make all tables, and keep the facts in them."""
    if not _TABLES.keys().isdisjoint(_tables_in(connection)):
        raise StorageError(where, DAMAGED.problem, LEFT)
    for name in _TABLES:
        make_table(connection, name)
    for index in _INDEXES:
        connection.change(f"CREATE INDEX {index}")
    for name, value in facts.items():
        connection.change("INSERT INTO replan_facts (name, value) VALUES (?, ?)", [name, value])
    _sign(connection, FORMAT)


def make_table(connection: Connection, name: str) -> None:
    """Make one table."""
    columns, types = _TABLES[name], _POSTGRES if connection.is_postgres else _SQLITE
    # A small row is in its key's tree: SQLite would store the key, most of it, twice. In such a
    # tree all but the first 230 bytes of a row take pages of their own.
    is_keyed = not (connection.is_postgres or "{serial}" in columns or name in _LONG_ROWS)
    way = " WITHOUT ROWID" if is_keyed else ""
    connection.change(f"CREATE TABLE {name} ({columns.format(**types)}){way}")


def upgrade(connection: Connection, where: str) -> None:
    """Bring storage of an older format to the newest."""
    version = _format_of(connection)
    for migrate in MIGRATIONS[version - 1 :]:
        migrate(connection)
    if version < FORMAT:
        _sign(connection, FORMAT)
    if not _tables_in(connection) >= _TABLES.keys():
        raise StorageError(where, DAMAGED.problem, LEFT)


def _format_of(connection: Connection) -> int:
    """The number of the format; 0 before it is made."""
    if not connection.is_postgres:
        return int(connection.query("PRAGMA user_version")[0][0])
    rows = connection.query("SELECT value FROM replan_facts WHERE name = 'version'")
    return int(bytes(rows[0][0])) if rows else 0


def _sign(connection: Connection, number: int) -> None:
    facts = {"release": _release(), "schema": SCHEMA}
    if connection.is_postgres:
        facts["version"] = str(number)
    else:
        connection.change(f"PRAGMA user_version = {number}")
    for name, value in facts.items():
        connection.change(
            "INSERT INTO replan_facts (name, value) VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [name, value.encode()],
        )


def _tables_in(connection: Connection) -> frozenset[str]:
    names = (
        "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        if connection.is_postgres
        else "SELECT name FROM sqlite_master WHERE type = 'table'"
    )
    return frozenset(name for (name,) in connection.query(names))


def _release() -> str:
    try:
        return version("replan")
    except PackageNotFoundError:
        return "0+source"


_ROWS = 2  # counts what rows came to mean while the format is not released

SCHEMA = hashlib.sha256(repr((_TABLES, _INDEXES, _ROWS)).encode()).hexdigest()[:16]
"""What tells one state of the unreleased format from another."""


_OF_CHECKPOINTS = ("replan_checkpoints", "replan_channels", "replan_writes")


def delete_thread(connection: Connection, thread_id: str) -> None:
    """Remove a thread, the runs on it, and all that is recorded of them."""
    runs = connection.query(
        "SELECT run_id FROM replan_runs WHERE thread_id = ?"
        " UNION SELECT run_id FROM replan_logs WHERE thread_id = ?",
        [thread_id, thread_id],
    )
    delete_runs(connection, runs)
    delete_checkpoints(connection, thread_id)
    connection.change("DELETE FROM replan_threads WHERE thread_id = ?", [thread_id])


def delete_runs(connection: Connection, run_ids: Sequence[Row]) -> None:
    """Remove all that is recorded of runs, but their checkpoints; each id is a row of its own."""
    if run_ids:
        for table in OF_A_RUN:
            connection.change_many(f"DELETE FROM {table} WHERE run_id = ?", run_ids)


def delete_checkpoints(connection: Connection, thread_id: str) -> None:
    """Remove the checkpoints of a thread."""
    for table in _OF_CHECKPOINTS:
        connection.change(f"DELETE FROM {table} WHERE thread_id = ?", [thread_id])
