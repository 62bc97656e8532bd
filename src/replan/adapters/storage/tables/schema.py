"""The tables of the journal, the book of runs and the store; those of checkpoints are LangGraph's.

After the first release, storage of an older format gets a change of them by a migration
(`MIGRATIONS` in `formats.py`).
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)

metadata = MetaData()

# SQLite counts rows by itself in a column of exactly this type.
_NUMBER = BigInteger().with_variant(Integer, "sqlite")


class Moment(TypeDecorator[datetime]):
    """A time with its zone, written so that the order of the texts is the order of the times."""

    impl = String(32)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> str | None:
        if value is None:
            return None
        return value.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: str | None, dialect: Any) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


facts = Table(
    "replan_facts",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", LargeBinary, nullable=False),
)
"""The number of the format, the release that wrote it, and the check of the key."""

runs = Table(
    "replan_runs",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("thread_id", Text, nullable=False),
    Column("title", LargeBinary, nullable=False),
    Column("order", LargeBinary, nullable=False),
    Column("outcome", String(32), nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Index("replan_runs_by_thread", "thread_id"),
    Index("replan_runs_by_start", "started_at"),
)

events = Table(
    "replan_events",
    metadata,
    Column("id", _NUMBER, primary_key=True, autoincrement=True),
    Column("run_id", Text, nullable=False),
    Column("batch", String(32), nullable=False),
    Column("event", LargeBinary, nullable=False),
    Column("seq", BigInteger, nullable=False, server_default=text("0")),
    Index("replan_events_by_number", "run_id", "seq", unique=True),
    Index("replan_events_by_batch", "batch"),
    sqlite_autoincrement=True,
)

spending = Table(
    "replan_spending",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("settled_calls", Integer, nullable=False),
    Column("settled_tokens", BigInteger, nullable=False),
    Column("settled_cost", Float(53), nullable=False),
    Column("reserved_calls", Integer, nullable=False),
    Column("reserved_tokens", BigInteger, nullable=False),
    Column("reserved_cost", Float(53), nullable=False),
)
"""Running totals, so that a reservation costs the same after ten calls and after ten thousand."""

reservations = Table(
    "replan_reservations",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("calls", Integer, nullable=False),
    Column("tokens", BigInteger, nullable=False),
    Column("cost", Float(53), nullable=False),
)
"""What calls that are on their way may spend; a settled one has no row."""

attempts = Table(
    "replan_attempts",
    metadata,
    Column("id", _NUMBER, primary_key=True, autoincrement=True),
    Column("run_id", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("step_id", Integer, nullable=False),
    Column("specialist", Text, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("ended_at", Moment),
    Column("outcome", String(32), nullable=False),
    Column("error", LargeBinary, nullable=False),
    Column("idempotency_key", Text, nullable=False, server_default=""),
    UniqueConstraint("run_id", "key", "number"),
    sqlite_autoincrement=True,
)

results = Table(
    "replan_results",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("result", LargeBinary, nullable=False),
)

notes = Table(
    "replan_notes",
    metadata,
    Column("id", _NUMBER, primary_key=True, autoincrement=True),
    Column("run_id", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("value", LargeBinary, nullable=False),
    UniqueConstraint("run_id", "key"),
    sqlite_autoincrement=True,
)

requests = Table(
    "replan_requests",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("at", Moment, nullable=False),
    Column("value", LargeBinary, nullable=False),
    Column("taken_at", Moment),
)
"""What others ask of a run: to stop, or to take answers; its owner reads them and takes them."""

texts = Table(
    "replan_texts",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("ref", String(64), primary_key=True),
    Column("at", Moment, nullable=False),
    Column("text", LargeBinary, nullable=False),
    Index("replan_texts_by_time", "at"),
)
"""Prompts, replies and other long texts of events, each once in a run."""

labels = Table(
    "replan_labels",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
    Index("replan_labels_by_value", "name", "value"),
)
"""What runs are found by; as plain as their ids, also where the rest is encrypted."""

threads = Table(
    "replan_threads",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
)
"""How often each thread was taken: who writes with a smaller number has lost it."""

# PostgreSQL would else compare by the rules of a language, in which no prefix is a range.
_ORDERED = Text().with_variant(Text(collation="C"), "postgresql")

items = Table(
    "replan_items",
    metadata,
    Column("id", _NUMBER, primary_key=True, autoincrement=True),
    Column("namespace", _ORDERED, nullable=False),
    Column("key", _ORDERED, nullable=False),
    Column("value", LargeBinary, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    UniqueConstraint("namespace", "key"),
    sqlite_autoincrement=True,
)
"""What `Storage.store` keeps, of no run; each label of a namespace ends with a point."""

sessions = Table(
    "replan_sessions",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("user_id", Text, primary_key=True),
    Column("session_id", Text, primary_key=True),
    Column("version", BigInteger, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    Column("title", LargeBinary, nullable=False),
    Column("stage", LargeBinary, nullable=False),
    Index("replan_sessions_by_use", "tenant", "user_id", "updated_at"),
    Index("replan_sessions_by_time", "updated_at"),
)
"""The sessions of clients, each with the number of its newest turn."""

_OF_A_SESSION = ("tenant", "user_id", "session_id")

turns = Table(
    "replan_turns",
    metadata,
    *(Column(name, Text, primary_key=True) for name in _OF_A_SESSION),
    Column("number", BigInteger, primary_key=True),
    Column("turn_id", Text, nullable=False),
    Column("at", Moment, nullable=False),
    Column("given", String(64), nullable=False),
    Column("run_id", Text, nullable=False),
    Column("takes_back", BigInteger),
    Column("result", LargeBinary, nullable=False),
    UniqueConstraint(*_OF_A_SESSION, "turn_id"),
)
"""The turns of sessions; a turn that takes back another one says which."""

messages = Table(
    "replan_messages",
    metadata,
    Column("id", _NUMBER, primary_key=True, autoincrement=True),
    *(Column(name, Text, nullable=False) for name in _OF_A_SESSION),
    Column("history", String(32), nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("place", Integer, nullable=False),
    Column("value", LargeBinary, nullable=False),
    UniqueConstraint(*_OF_A_SESSION, "history", "turn", "place"),
    sqlite_autoincrement=True,
)
"""What each turn appended to the histories of its session: messages, and calls of tools."""

parts = Table(
    "replan_parts",
    metadata,
    *(Column(name, Text, primary_key=True) for name in _OF_A_SESSION),
    Column("name", Text, primary_key=True),
    Column("turn", BigInteger, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)
"""What else of a context each turn changed; of each part, the newest row counts."""

OF_A_SESSION = (parts, messages, turns, sessions)  # every table with rows of a session

thread_rows = Table(
    "replan_thread_rows",
    metadata,
    Column("thread_id", Text, primary_key=True),
    Column("path", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("write", String(32), nullable=False),
    Column("value", LargeBinary, nullable=False),
    Index("replan_thread_rows_by_run", "run_id"),
)
"""The threads of pipelines, message by message; the row of the path "" says who wrote last."""

OF_A_RUN = (
    requests,
    texts,
    labels,
    events,
    spending,
    reservations,
    attempts,
    results,
    notes,
    thread_rows,
    runs,
)
"""Every table with rows of a run."""
