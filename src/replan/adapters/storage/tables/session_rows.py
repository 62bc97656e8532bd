"""The rows of a session: which of them count at a version, and what they contain."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import JsonValue
from sqlalchemy import ColumnElement, Select, Table, and_, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.tables import schema
from replan.ports.session_store import SessionKey
from replan.state.session.context_updates import MAPPINGS

_STAGE = "current_stage"

Path = tuple[str, *tuple[str, ...]]
Part = tuple[int, dict[str, Any]]  # the turn that wrote it, and what it wrote


class Way(NamedTuple):
    """How a session came to a version."""

    version: int
    newest: int  # the newest turn that can be taken back
    dead: frozenset[int]  # the turns that were taken back


async def version_of(
    connection: AsyncConnection, key: SessionKey, *, locks: bool = False
) -> int | None:
    query = select(schema.sessions.c.version).where(is_of(schema.sessions, key))
    return await connection.scalar(query.with_for_update() if locks else query)


async def has_turn(connection: AsyncConnection, key: SessionKey, turn_id: str) -> bool:
    table = schema.turns
    query = select(table.c.number).where(is_of(table, key), table.c.turn_id == turn_id)
    return await connection.scalar(query) is not None


async def way_to(connection: AsyncConnection, key: SessionKey, version: int) -> Way:
    """How a session came to a version: each taking back leads to what was before the turn."""
    table = schema.turns
    unusual = select(table.c.number, table.c.given, table.c.takes_back).where(
        is_of(table, key),
        table.c.number <= version,
        or_(table.c.takes_back.is_not(None), table.c.given == ""),
    )
    found = {row.number: row for row in await connection.execute(unusual)}
    backs = sorted((n for n, row in found.items() if row.takes_back is not None), reverse=True)
    dead, at = set[int](), version
    for number in backs:
        if number <= at:
            before = found[number].takes_back - 1
            dead.update(range(before + 1, number))
            at = before
    newest = version
    while newest in found and not found[newest].given:
        back = found[newest].takes_back
        newest = (newest if back is None else back) - 1
    return Way(version, newest, frozenset(dead))


def is_of(table: Table, key: SessionKey) -> ColumnElement[bool]:
    columns = table.c
    return and_(
        columns.tenant == key.tenant,
        columns.user_id == key.user,
        columns.session_id == key.session_id,
    )


def columns_of(key: SessionKey) -> dict[str, str]:
    return {"tenant": key.tenant, "user_id": key.user, "session_id": key.session_id}


def counts(turn: Any, way: Way) -> ColumnElement[bool]:
    """Whether a turn is part of what a session is at a version."""
    is_there = turn <= way.version
    return and_(is_there, turn.not_in(sorted(way.dead))) if way.dead else is_there


def appended(key: SessionKey, history: str, way: Way, first: int) -> Select[Any]:
    table = schema.messages
    return select(table).where(
        is_of(table, key),
        table.c.history == history,
        table.c.turn >= first,
        counts(table.c.turn, way),
    )


def first_turn(parts: Mapping[Path, Part], history: str) -> int:
    """The turn with which a history begins: it may have been replaced as a whole."""
    return parts[(history,)][0] if (history,) in parts else 0


def added_to(updates: Mapping[str, Any], history: str) -> list[JsonValue]:
    """What updates put into a history, appended or as a replacement."""
    order: dict[str, list[JsonValue]] = updates.get(history) or {}
    return order.get("append") or order.get("set") or []


def changed_parts(updates: Mapping[str, Any]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """The parts that updates change, each by its path, and what happens to it."""
    for name, change in updates.items():
        if name in MAPPINGS:
            for entry, order in change.items():
                yield [name, entry], order or {}
        elif name == _STAGE:
            yield [name], change
        elif "set" in change:
            yield [name], {}


def fields_of(parts: Mapping[Path, Part]) -> dict[str, Any]:
    """The fields of a context, from its parts; a part without a value was removed."""
    fields: dict[str, Any] = {name: {} for name in MAPPINGS}
    for (field, *entry), (_, part) in parts.items():
        if "set" in part and entry:
            fields[field][entry[0]] = part["set"]
        elif "set" in part:
            fields[field] = part["set"]
    return fields
