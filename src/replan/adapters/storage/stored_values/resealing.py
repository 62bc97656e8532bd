"""Bind each value of encrypted storage to its place: what came between format 3 and format 4.

Until then a value could be read wherever it was put, so that anyone who could write the database
could put the answer of one run under the question of another.
"""

import logging
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from sqlalchemy import (
    Connection,
    TableClause,
    bindparam,
    column,
    inspect,
    literal,
    select,
    table,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB, insert

from replan.adapters.storage.faults import Place, UnreadableRecordError
from replan.adapters.storage.stored_values import places
from replan.adapters.storage.stored_values.sealing import (
    SALT_SIZE,
    UNPLACED,
    Cipher,
    Placed,
    Seal,
    SealedSerializer,
    token_of,
)

SEAL = "replan_seal"
"""The execution option of a connection that has the seal of the storage that is upgraded."""

_PAGE = 200
_CHECKPOINT = ("thread_id", "checkpoint_ns", "checkpoint_id")
_BLOB = ("thread_id", "checkpoint_ns", "channel", "version")
_WRITE = (*_CHECKPOINT, "task_id", "idx")
_CHANNEL = ("channel",)
_FACTS = table("replan_facts", column("name"), column("value"))
_BLOBS = table("checkpoint_blobs", *map(column, (*_BLOB, "type", "blob")))
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Sealed:
    table: str
    key: tuple[str, ...]  # the columns that tell its rows apart
    column: str
    place: Callable[[Any], Place]  # the place of a row's value
    read: tuple[str, ...] = ()  # more columns that tell the place


def bind_all_values(connection: Connection) -> None:
    """Seal every encrypted value again, for its place and with a new salt; the unreadable stay."""
    seal: Seal | None = connection.get_execution_options().get(SEAL)
    if seal is None or seal.cipher is None:
        return
    salt = secrets.token_bytes(SALT_SIZE)
    old, new = seal.cipher, seal.cipher.salted(salt)
    for name, value in {"salt": salt, "token": token_of(new)}.items():
        connection.execute(update(_FACTS).where(_FACTS.c.name == name).values(value=value))
    there = inspect(connection).get_table_names()
    is_sqlite = connection.dialect.name == "sqlite"
    for each in (*_ours(), *(_of_sqlite() if is_sqlite else _of_postgres())):
        # LangGraph's tables are made after ours: a process may have been killed in between.
        if each.table in there:
            _bind(connection, each, old, new)
    if not is_sqlite and "checkpoints" in there:
        _hide_short_values(connection, new)


def _ours() -> Iterator[_Sealed]:
    numbers = Counter[str]()

    def numbered(row: Any) -> Place:
        numbers[row.batch] += 1
        return places.of_event(row.run_id, row.batch, numbers[row.batch])

    yield _Sealed(
        "replan_notes",
        ("id",),
        "value",
        lambda row: places.of_note(row.run_id, row.key),
        ("run_id", "key"),
    )
    yield _Sealed(
        "replan_results",
        ("run_id", "key"),
        "result",
        lambda row: places.of_result(row.run_id, row.key),
    )
    yield _Sealed(
        "replan_attempts", ("id",), "error", places.of_attempt, ("run_id", "key", "number")
    )
    yield _Sealed(
        "replan_runs", ("run_id",), "title", lambda row: places.of_run(row.run_id, "title")
    )
    yield _Sealed(
        "replan_runs", ("run_id",), "order", lambda row: places.of_run(row.run_id, "order")
    )
    yield _Sealed("replan_events", ("id",), "event", numbered, ("run_id", "batch"))


def _of_sqlite() -> Iterator[_Sealed]:
    """What LangGraph's saver has encrypted in SQLite."""
    parent = "parent_checkpoint_id"
    yield _Sealed(
        "checkpoints",
        _CHECKPOINT,
        "checkpoint",
        lambda row: places.of_checkpoint(*row[:4]),
        (parent,),
    )
    yield _Sealed(
        "writes", _WRITE, "value", lambda row: places.of_write("writes", *row[:6]), ("channel",)
    )


def _of_postgres() -> Iterator[_Sealed]:
    """What LangGraph's saver has encrypted in PostgreSQL."""
    yield _Sealed("checkpoint_blobs", _BLOB, "blob", lambda row: places.of_blob(*row[:4]))
    name = "checkpoint_writes"
    yield _Sealed(name, _WRITE, "blob", lambda row: places.of_write(name, *row[:6]), _CHANNEL)


def _bind(connection: Connection, sealed: _Sealed, old: Cipher, new: Cipher) -> None:
    found = table(sealed.table, *map(column, (*sealed.key, *sealed.read, sealed.column)))
    same_row = [found.c[name] == bindparam(f"the_{name}") for name in sealed.key]
    change = update(found).where(*same_row).values({sealed.column: bindparam("new")})
    for rows in _pages(connection, found, sealed.key):
        changed: list[dict[str, Any]] = []
        for row in rows:
            place = sealed.place(row)
            plain = _open(old, row[-1], place)
            if plain is not None:
                key = {f"the_{name}": getattr(row, name) for name in sealed.key}
                changed.append({**key, "new": new.close(plain, place)})
        if changed:
            connection.execute(change, changed)


def _open(cipher: Cipher, data: bytes | None, place: Place) -> bytes | None:
    try:
        return None if data is None else cipher.open(bytes(data), UNPLACED)
    except UnreadableRecordError:
        _log.warning("a record cannot be read and was left as it is", extra={"place": place})
        return None


def _pages(
    connection: Connection, found: TableClause, key: tuple[str, ...]
) -> Iterator[Sequence[Any]]:
    order = [found.c[name] for name in key]
    query = select(found).order_by(*order).limit(_PAGE)
    rows = connection.execute(query).all()
    while rows:
        yield rows
        last = tuple_(*(literal(value) for value in rows[-1][: len(key)]))
        rows = connection.execute(query.where(tuple_(*order) > last)).all()


def _hide_short_values(connection: Connection, cipher: Cipher) -> None:
    """Encrypt the numbers and truth values that were in the clear in PostgreSQL's checkpoints."""
    serializer = SealedSerializer(cipher, JsonPlusSerializer())
    found = table("checkpoints", *map(column, _CHECKPOINT), column("checkpoint", JSONB))

    def blob(row: Any, channel: str, value: Any) -> dict[str, Any]:
        version = str(row.checkpoint["channel_versions"][channel])
        key = (row.thread_id, row.checkpoint_ns, channel, version)
        kind, data = serializer.dumps_typed(Placed(value, places.of_blob(*key)))
        return {**dict(zip(_BLOB, key, strict=True)), "type": kind, "blob": data}

    for rows in _pages(connection, found, _CHECKPOINT):
        for row in rows:
            values: dict[str, Any] = row.checkpoint["channel_values"] or {}
            short = {name: value for name, value in values.items() if value is not None}
            if short:
                # A channel whose value is in its table already had a mark in its place.
                blobs = [blob(row, *each) for each in short.items()]
                connection.execute(insert(_BLOBS).on_conflict_do_nothing(), blobs)
                left = {**row.checkpoint, "channel_values": dict.fromkeys(values.keys() - short)}
                same_row = [found.c[name] == getattr(row, name) for name in _CHECKPOINT]
                connection.execute(update(found).where(*same_row).values(checkpoint=left))
