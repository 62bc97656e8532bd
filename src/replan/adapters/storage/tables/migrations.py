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


def _execute(connection: Connection, *statements: str) -> None:
    """Execute SQL, in which `{types}` stand for what each database calls them."""
    is_sqlite = connection.dialect.name == "sqlite"
    types = {
        "binary": "BLOB NOT NULL" if is_sqlite else "BYTEA NOT NULL",
        "number": "INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT"
        if is_sqlite
        else "BIGSERIAL PRIMARY KEY",
        "ordered": "TEXT NOT NULL" if is_sqlite else 'TEXT COLLATE "C" NOT NULL',
    }
    for each in statements:
        connection.execute(text(each.format(**types)))


def _name_the_release(connection: Connection) -> None:
    """Make room for the release that wrote the format: an older one can say what to install."""
    statement = text("INSERT INTO replan_facts (name, value) VALUES ('release', :nothing)")
    connection.execute(statement, {"nothing": b""})


def _tell_keys_apart(connection: Connection) -> None:
    """Store the services' key separately from that of the attempt; they were one key."""
    _execute(
        connection,
        "ALTER TABLE replan_attempts ADD COLUMN idempotency_key TEXT DEFAULT '' NOT NULL",
        "UPDATE replan_attempts SET idempotency_key = key",
    )


def _own_threads_and_bind_values(connection: Connection) -> None:
    """Count how often a thread is taken; an older version would write in spite of the owner."""
    _execute(
        connection,
        "CREATE TABLE IF NOT EXISTS replan_threads "
        "(thread_id TEXT NOT NULL, epoch BIGINT NOT NULL, PRIMARY KEY (thread_id))",
    )
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
    _execute(
        connection,
        "ALTER TABLE replan_events ADD COLUMN seq BIGINT DEFAULT 0 NOT NULL",
        _NUMBERED,
        "DROP INDEX IF EXISTS replan_events_by_run",
        "CREATE UNIQUE INDEX replan_events_by_number ON replan_events (run_id, seq)",
        "CREATE TABLE replan_requests (run_id TEXT NOT NULL, name TEXT NOT NULL, "
        "kind VARCHAR(32) NOT NULL, at VARCHAR(32) NOT NULL, value {binary}, "
        "taken_at VARCHAR(32), PRIMARY KEY (run_id, name))",
    )


def _keep_texts_and_labels(connection: Connection) -> None:
    """Make room for the long texts of events, and for what runs are found by."""
    # An older version would keep both when it removes a run.
    _execute(
        connection,
        "CREATE TABLE replan_texts (run_id TEXT NOT NULL, ref VARCHAR(64) NOT NULL, "
        "at VARCHAR(32) NOT NULL, text {binary}, PRIMARY KEY (run_id, ref))",
        "CREATE TABLE replan_labels (run_id TEXT NOT NULL, name TEXT NOT NULL, "
        "value TEXT NOT NULL, PRIMARY KEY (run_id, name))",
        "CREATE INDEX replan_texts_by_time ON replan_texts (at)",
        "CREATE INDEX replan_labels_by_value ON replan_labels (name, value)",
    )


def _keep_items(connection: Connection) -> None:
    """Make room for what outlives runs and threads."""
    _execute(
        connection,
        "CREATE TABLE replan_items (id {number}, namespace {ordered}, key {ordered}, "
        "value {binary}, created_at VARCHAR(32) NOT NULL, updated_at VARCHAR(32) NOT NULL, "
        "UNIQUE (namespace, key))",
    )


_SESSION, _KEY = (
    "tenant TEXT NOT NULL, user_id TEXT NOT NULL, session_id TEXT NOT NULL",
    "tenant, user_id, session_id",
)


def _keep_sessions(connection: Connection) -> None:
    """Make room for the sessions of clients: their turns, what was said, and what else changed."""
    _execute(
        connection,
        f"CREATE TABLE replan_sessions ({_SESSION}, version BIGINT NOT NULL, "
        "created_at VARCHAR(32) NOT NULL, updated_at VARCHAR(32) NOT NULL, "
        f"title {{binary}}, stage {{binary}}, PRIMARY KEY ({_KEY}))",
        f"CREATE TABLE replan_turns ({_SESSION}, number BIGINT NOT NULL, turn_id TEXT NOT NULL, "
        "at VARCHAR(32) NOT NULL, given VARCHAR(64) NOT NULL, run_id TEXT NOT NULL, "
        f"takes_back BIGINT, result {{binary}}, PRIMARY KEY ({_KEY}, number), "
        f"UNIQUE ({_KEY}, turn_id))",
        f"CREATE TABLE replan_messages (id {{number}}, {_SESSION}, history VARCHAR(32) NOT NULL, "
        "turn BIGINT NOT NULL, place INTEGER NOT NULL, value {binary}, "
        f"UNIQUE ({_KEY}, history, turn, place))",
        f"CREATE TABLE replan_parts ({_SESSION}, name TEXT NOT NULL, turn BIGINT NOT NULL, "
        f"value {{binary}}, PRIMARY KEY ({_KEY}, name, turn))",
        "CREATE INDEX replan_sessions_by_use ON replan_sessions (tenant, user_id, updated_at)",
        "CREATE INDEX replan_sessions_by_time ON replan_sessions (updated_at)",
    )


def _keep_threads(connection: Connection) -> None:
    """Add the threads of pipelines; an older version would not remove them."""
    _execute(
        connection,
        "CREATE TABLE replan_thread_rows (thread_id TEXT NOT NULL, path TEXT NOT NULL, "
        "run_id TEXT NOT NULL, revision BIGINT NOT NULL, write VARCHAR(32) NOT NULL, "
        "value {binary}, PRIMARY KEY (thread_id, path))",
        "CREATE INDEX replan_thread_rows_by_run ON replan_thread_rows (run_id)",
    )


def _keep_words(connection: Connection) -> None:
    """Make room for the words of encrypted items; an older version would keep those of deleted."""
    _execute(
        connection,
        "CREATE TABLE replan_kept_words (prefix {ordered}, value {binary}, PRIMARY KEY (prefix))",
    )


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
