"""What turns storage of one format into storage of the next.

To add one: change `schema`, write the function, name it last in `MIGRATIONS`, and make a sample
(`tests/samples/make.py`). A migration speaks SQL of its own and leaves `schema` alone, which is
that of the newest format only. It holds for SQLite and PostgreSQL, and where something is encrypted
it is sealed.
"""

from collections.abc import Callable

from sqlalchemy import Connection, text

from replan.adapters.storage.stored_values.resealing import bind_all_values

Migration = Callable[[Connection], None]
"""Changes storage inside the transaction that is open on the connection."""


def _name_the_release(connection: Connection) -> None:
    """Make room for the release that wrote the format: an older one can say what to install."""
    statement = text("INSERT INTO replan_facts (name, value) VALUES ('release', :nothing)")
    connection.execute(statement, {"nothing": b""})


def _tell_keys_apart(connection: Connection) -> None:
    """Store the services' key separately from that of the attempt; they were one key."""
    added = "ALTER TABLE replan_attempts ADD COLUMN idempotency_key TEXT DEFAULT '' NOT NULL"
    connection.execute(text(added))
    connection.execute(text("UPDATE replan_attempts SET idempotency_key = key"))


def _number_the_takes(connection: Connection) -> None:
    """Count how often a thread is taken; an older version would write in spite of the owner."""
    table = (
        "replan_threads (thread_id TEXT NOT NULL, epoch BIGINT NOT NULL, PRIMARY KEY (thread_id))"
    )
    connection.execute(text(f"CREATE TABLE IF NOT EXISTS {table}"))


def _own_threads_and_bind_values(connection: Connection) -> None:
    _number_the_takes(connection)
    bind_all_values(connection)


_NUMBERED = """
UPDATE replan_events SET seq = numbered.number
FROM (
    SELECT id, row_number() OVER (PARTITION BY run_id ORDER BY id) AS number FROM replan_events
) AS numbered
WHERE numbered.id = replan_events.id
"""


def _number_events_and_take_requests(connection: Connection) -> None:
    """Number the events of each run, and make room for what others ask of a run."""
    connection.execute(text("ALTER TABLE replan_events ADD COLUMN seq BIGINT DEFAULT 0 NOT NULL"))
    connection.execute(text(_NUMBERED))
    connection.execute(text("DROP INDEX IF EXISTS replan_events_by_run"))
    index = "replan_events_by_number ON replan_events (run_id, seq)"
    connection.execute(text(f"CREATE UNIQUE INDEX {index}"))
    binary = "BLOB" if connection.dialect.name == "sqlite" else "BYTEA"
    columns = (
        "run_id TEXT NOT NULL, name TEXT NOT NULL, kind VARCHAR(32) NOT NULL, "
        f"at VARCHAR(32) NOT NULL, value {binary} NOT NULL, taken_at VARCHAR(32)"
    )
    table = f"replan_requests ({columns}, PRIMARY KEY (run_id, name))"
    connection.execute(text(f"CREATE TABLE {table}"))


def _keep_texts_and_labels(connection: Connection) -> None:
    """Make room for the long texts of events, and for what runs are found by."""
    # An older version would keep both when it removes a run.
    binary = "BLOB" if connection.dialect.name == "sqlite" else "BYTEA"
    texts = (
        "replan_texts (run_id TEXT NOT NULL, ref VARCHAR(64) NOT NULL, at VARCHAR(32) NOT NULL, "
        f"text {binary} NOT NULL, PRIMARY KEY (run_id, ref))"
    )
    labels = (
        "replan_labels (run_id TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, "
        "PRIMARY KEY (run_id, name))"
    )
    for table in (texts, labels):
        connection.execute(text(f"CREATE TABLE {table}"))
    connection.execute(text("CREATE INDEX replan_texts_by_time ON replan_texts (at)"))
    by_value = "replan_labels_by_value ON replan_labels (name, value)"
    connection.execute(text(f"CREATE INDEX {by_value}"))


def _keep_items(connection: Connection) -> None:
    """Make room for what outlives runs and threads."""
    is_sqlite = connection.dialect.name == "sqlite"
    number = "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT" if is_sqlite else "BIGSERIAL PRIMARY KEY"
    ordered = "TEXT NOT NULL" if is_sqlite else 'TEXT COLLATE "C" NOT NULL'
    columns = (
        f"id {number}, namespace {ordered}, key {ordered}, "
        f"value {'BLOB' if is_sqlite else 'BYTEA'} NOT NULL, created_at VARCHAR(32) NOT NULL, "
        "updated_at VARCHAR(32) NOT NULL, UNIQUE (namespace, key)"
    )
    connection.execute(text(f"CREATE TABLE replan_items ({columns})"))


def _keep_sessions(connection: Connection) -> None:
    """Make room for the sessions of clients: their turns, what was said, and what else changed."""
    is_sqlite = connection.dialect.name == "sqlite"
    binary = f"{'BLOB' if is_sqlite else 'BYTEA'} NOT NULL"
    number = "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT" if is_sqlite else "BIGSERIAL PRIMARY KEY"
    key, at = "tenant, user_id, session_id", "VARCHAR(32) NOT NULL"
    own = "tenant TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL"
    tables = {
        "replan_sessions": (
            f"{own}, version BIGINT NOT NULL, created_at {at}, updated_at {at}, title {binary}, "
            f"stage {binary}, PRIMARY KEY ({key})"
        ),
        "replan_turns": (
            f"{own}, number BIGINT NOT NULL, turn_id TEXT NOT NULL, at {at}, "
            "given VARCHAR(64) NOT NULL, run_id TEXT NOT NULL, takes_back BIGINT, "
            f"result {binary}, PRIMARY KEY ({key}, number), UNIQUE ({key}, turn_id)"
        ),
        "replan_messages": (
            f"id {number}, {own}, history VARCHAR(32) NOT NULL, turn BIGINT NOT NULL, "
            f"place INTEGER NOT NULL, value {binary}, UNIQUE ({key}, history, turn, place)"
        ),
        "replan_parts": (
            f"{own}, name TEXT NOT NULL, turn BIGINT NOT NULL, value {binary}, "
            f"PRIMARY KEY ({key}, name, turn)"
        ),
    }
    for name, columns in tables.items():
        connection.execute(text(f"CREATE TABLE {name} ({columns})"))
    by_use = "replan_sessions_by_use ON replan_sessions (tenant, user_id, updated_at)"
    by_time = "replan_sessions_by_time ON replan_sessions (updated_at)"
    for index in (by_use, by_time):
        connection.execute(text(f"CREATE INDEX {index}"))


def _keep_threads(connection: Connection) -> None:
    """Add the threads of pipelines; an older version would not remove them."""
    binary = "BLOB" if connection.dialect.name == "sqlite" else "BYTEA"
    columns = (
        "thread_id TEXT NOT NULL, path TEXT NOT NULL, run_id TEXT NOT NULL, "
        f"revision BIGINT NOT NULL, write VARCHAR(32) NOT NULL, value {binary} NOT NULL, "
        "PRIMARY KEY (thread_id, path)"
    )
    connection.execute(text(f"CREATE TABLE replan_thread_rows ({columns})"))
    index = "replan_thread_rows_by_run ON replan_thread_rows (run_id)"
    connection.execute(text(f"CREATE INDEX {index}"))


def _keep_words(connection: Connection) -> None:
    """Make room for the words of encrypted items; an older version would keep those of deleted."""
    is_sqlite = connection.dialect.name == "sqlite"
    prefix = "TEXT NOT NULL" if is_sqlite else 'TEXT COLLATE "C" NOT NULL'
    value = f"value {'BLOB' if is_sqlite else 'BYTEA'} NOT NULL"
    columns = f"prefix {prefix}, {value}, PRIMARY KEY (prefix)"
    connection.execute(text(f"CREATE TABLE replan_kept_words ({columns})"))


MIGRATIONS: tuple[Migration, ...] = (
    _name_the_release,
    _tell_keys_apart,
    _own_threads_and_bind_values,
    _number_events_and_take_requests,
    _keep_texts_and_labels,
    _keep_items,
    _keep_sessions,
    _keep_threads,
    _keep_words,
)
"""From format 1 to 2, and so on."""
