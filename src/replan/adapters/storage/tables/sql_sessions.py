"""Sessions in SQL: one implementation for SQLite and PostgreSQL. Rows are appended only."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any, NamedTuple, cast

from pydantic import JsonValue
from sqlalchemy import (
    ColumnElement,
    Insert,
    Select,
    Table,
    Update,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.database import Database
from replan.adapters.storage.faults import readable
from replan.adapters.storage.stored_values.places import (
    of_message,
    of_part,
    of_session,
    of_turn,
)
from replan.adapters.storage.stored_values.sealing import Seal
from replan.adapters.storage.tables import schema
from replan.errors import SessionConflictError
from replan.ports.session_store import (
    HistoryPage,
    KeptSession,
    SessionKey,
    SessionRecord,
    SessionTurn,
)
from replan.state.context import AgentContext, Message, ToolExecution
from replan.state.context_updates import HISTORIES, MAPPINGS
from replan.values import restored

_STAGE = "current_stage"
_SAID, _CALLED = HISTORIES
_KINDS: dict[str, Any] = {_SAID: tuple[Message, ...], _CALLED: tuple[ToolExecution, ...]}

_Path = tuple[str, *tuple[str, ...]]
_Part = tuple[int, dict[str, Any]]  # the turn that wrote it, and what it wrote


class _Way(NamedTuple):
    """How a session came to a version."""

    version: int
    newest: int  # the newest turn that can be taken back
    dead: frozenset[int]  # the turns that were taken back


class SqlSessions:
    """A `SessionStore` in a database."""

    def __init__(self, database: Database, seal: Seal) -> None:
        self._database = database
        self._seal = seal

    async def load(self, key: SessionKey, version: int | None = None) -> KeptSession | None:
        async def work(connection: AsyncConnection) -> KeptSession | None:
            newest = await _version(connection, key)
            if newest is None:
                return None
            way = await _way(connection, key, newest if version is None else version)
            with readable():
                parts = await self._parts(connection, key, way)
                histories = {
                    name: await self._history(connection, key, name, way, parts)
                    for name in HISTORIES
                }
                fields: Any = {**_fields(parts), **histories}
                context = AgentContext(session_id=key.session_id, **fields)
            return KeptSession(context, way.version, way.newest)

        return await self._database.read(work)

    async def append(self, key: SessionKey, turn: SessionTurn, version: int) -> None:
        number, tries = version + 1, count()
        rows = self._rows(key, turn, number)
        begun = self._begun(key, turn)

        async def work(connection: AsyncConnection) -> None:
            if not version:
                await connection.execute(begun)
            found = await _version(connection, key, locks=self._database.is_postgres) or 0
            # Done already, if the connection broke after the commit and before its receipt.
            if next(tries) and found == number and await _has(connection, key, turn.turn_id):
                return
            if found != version:
                raise SessionConflictError(key.session_id, version, found)
            for table, each in rows.items():
                if each:
                    await connection.execute(insert(table), each)
            await connection.execute(self._standing(key, turn, number))

        await self._database.write(work)

    async def turn(self, key: SessionKey, turn_id: str) -> SessionTurn | None:
        table = schema.turns
        query = select(table).where(_is(table, key), table.c.turn_id == turn_id)

        def opened(row: Any) -> SessionTurn:
            told = self._seal.open(row.result, *of_turn(key, row.number))
            kept = {name: getattr(row, name) for name in _PLAIN}
            return restored(SessionTurn, {**kept, **told})

        return next(iter(await self._database.rows(query, opened)), None)

    async def history(self, key: SessionKey, before: int | None, limit: int) -> HistoryPage:
        table = schema.messages

        async def work(connection: AsyncConnection) -> HistoryPage:
            newest = await _version(connection, key)
            if newest is None:
                return HistoryPage((), None)
            way = await _way(connection, key, newest)
            with readable():
                parts = await self._parts(connection, key, way, self._name(_SAID))
                query = _appended(key, _SAID, way, _first(parts, _SAID))
                if before is not None:
                    query = query.where(table.c.id < before)
                found = query.order_by(table.c.id.desc()).limit(limit + 1)
                rows = (await connection.execute(found)).all()
                page = self._opened(key, _SAID, rows[:limit][::-1])
            return HistoryPage(page, rows[limit - 1].id if len(rows) > limit else None)

        return await self._database.read(work)

    async def recent(self, tenant: str, user: str, limit: int) -> Sequence[SessionRecord]:
        table = schema.sessions
        own = select(table).where(table.c.tenant == tenant, table.c.user_id == user)
        query = own.order_by(table.c.updated_at.desc(), table.c.session_id).limit(limit)
        return await self._database.rows(query, self._record)

    async def unused_since(self, at: datetime) -> Sequence[SessionKey]:
        table = schema.sessions
        query = select(table.c.tenant, table.c.user_id, table.c.session_id)
        return await self._database.rows(
            query.where(table.c.updated_at < at), lambda row: SessionKey(*row)
        )

    async def remove(self, key: SessionKey) -> None:
        async def work(connection: AsyncConnection) -> None:
            for table in schema.OF_A_SESSION:
                await connection.execute(delete(table).where(_is(table, key)))

        await self._database.write(work)

    def _begun(self, key: SessionKey, turn: SessionTurn) -> Insert:
        row = {"version": 0, "created_at": turn.at, "updated_at": turn.at}
        title = self._seal.close(turn.title, *of_session(key, "title"))
        stage = self._seal.close(turn.stage, *of_session(key, "stage"))
        values = {**_columns(key), **row, "title": title, "stage": stage}
        return self._database.insert(schema.sessions).values(**values).on_conflict_do_nothing()

    def _standing(self, key: SessionKey, turn: SessionTurn, number: int) -> Update:
        stage = self._seal.close(turn.stage, *of_session(key, "stage"))
        changed = update(schema.sessions).where(_is(schema.sessions, key))
        return changed.values(version=number, updated_at=turn.at, stage=stage)

    def _rows(
        self, key: SessionKey, turn: SessionTurn, number: int
    ) -> dict[Table, list[dict[str, Any]]]:
        """The rows of a turn."""
        own = _columns(key)
        told = turn.model_dump(mode="json", include={"title", "stage", "given", "result"})
        result = self._seal.close(told, *of_turn(key, number))
        kept = {name: getattr(turn, name) for name in _PLAIN}
        # In encrypted storage it tells that there was an input, and nothing of it.
        kept["given"] = self._seal.named(turn.given) if turn.given else ""
        return {
            schema.turns: [{**own, **kept, "number": number, "result": result}],
            schema.messages: [
                {
                    **own,
                    "history": history,
                    "turn": number,
                    "place": place,
                    "value": self._seal.close(value, *of_message(key, history, number, place)),
                }
                for history in HISTORIES
                for place, value in enumerate(_added(turn.updates, history))
            ],
            schema.parts: [
                {**own, "name": name, "turn": number, "value": self._part(key, name, number, part)}
                for name, part in (
                    (self._name(*path), {"path": path, **order})
                    for path, order in _changes(turn.updates)
                )
            ],
        }

    def _part(self, key: SessionKey, name: str, turn: int, part: Any) -> bytes:
        return self._seal.close(part, *of_part(key, name, turn))

    def _name(self, *path: str) -> str:
        """What a part is called in its column; of encrypted storage it says nothing."""
        return self._seal.named(json.dumps(path))

    async def _parts(
        self, connection: AsyncConnection, key: SessionKey, way: _Way, name: str | None = None
    ) -> dict[_Path, _Part]:
        """The newest row of each part, or of one of them."""
        table = schema.parts
        newest = select(table.c.name, func.max(table.c.turn).label("turn")).where(
            _is(table, key), _counts(table.c.turn, way)
        )
        if name is not None:
            newest = newest.where(table.c.name == name)
        last = newest.group_by(table.c.name).subquery()
        query = select(table).where(_is(table, key))
        same = and_(table.c.name == last.c.name, table.c.turn == last.c.turn)
        rows = await connection.execute(query.join(last, same))
        found: dict[_Path, _Part] = {}
        for row in rows:
            part = self._seal.open(row.value, *of_part(key, row.name, row.turn))
            found[cast("_Path", tuple(part["path"]))] = row.turn, part
        return found

    async def _history(
        self,
        connection: AsyncConnection,
        key: SessionKey,
        name: str,
        way: _Way,
        parts: Mapping[_Path, _Part],
    ) -> tuple[Any, ...]:
        query = _appended(key, name, way, _first(parts, name)).order_by(schema.messages.c.id)
        return self._opened(key, name, (await connection.execute(query)).all())

    def _opened(self, key: SessionKey, history: str, rows: Sequence[Any]) -> tuple[Any, ...]:
        values = [
            self._seal.open(row.value, *of_message(key, history, row.turn, row.place))
            for row in rows
        ]
        return restored(_KINDS[history], values)

    def _record(self, row: Any) -> SessionRecord:
        key = SessionKey(row.tenant, row.user_id, row.session_id)
        return SessionRecord(
            session_id=row.session_id,
            title=self._seal.open(row.title, *of_session(key, "title")),
            stage=self._seal.open(row.stage, *of_session(key, "stage")),
            version=row.version,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


_PLAIN = ("turn_id", "at", "given", "run_id", "takes_back")
"""What stands of a turn in columns of its own, in the clear."""


async def _version(
    connection: AsyncConnection, key: SessionKey, *, locks: bool = False
) -> int | None:
    query = select(schema.sessions.c.version).where(_is(schema.sessions, key))
    return await connection.scalar(query.with_for_update() if locks else query)


async def _has(connection: AsyncConnection, key: SessionKey, turn_id: str) -> bool:
    table = schema.turns
    query = select(table.c.number).where(_is(table, key), table.c.turn_id == turn_id)
    return await connection.scalar(query) is not None


async def _way(connection: AsyncConnection, key: SessionKey, version: int) -> _Way:
    """How a session came to a version: each taking back leads to what was before the turn."""
    table = schema.turns
    unusual = select(table.c.number, table.c.given, table.c.takes_back).where(
        _is(table, key),
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
    return _Way(version, newest, frozenset(dead))


def _is(table: Table, key: SessionKey) -> ColumnElement[bool]:
    columns = table.c
    return and_(
        columns.tenant == key.tenant,
        columns.user_id == key.user,
        columns.session_id == key.session_id,
    )


def _columns(key: SessionKey) -> dict[str, str]:
    return {"tenant": key.tenant, "user_id": key.user, "session_id": key.session_id}


def _counts(turn: Any, way: _Way) -> ColumnElement[bool]:
    """Whether a turn is part of what a session is at a version."""
    is_there = turn <= way.version
    return and_(is_there, turn.not_in(sorted(way.dead))) if way.dead else is_there


def _appended(key: SessionKey, history: str, way: _Way, first: int) -> Select[Any]:
    table = schema.messages
    return select(table).where(
        _is(table, key),
        table.c.history == history,
        table.c.turn >= first,
        _counts(table.c.turn, way),
    )


def _first(parts: Mapping[_Path, _Part], history: str) -> int:
    """The turn with which a history begins: it may have been replaced as a whole."""
    return parts[(history,)][0] if (history,) in parts else 0


def _added(updates: Mapping[str, Any], history: str) -> list[JsonValue]:
    """What updates put into a history, behind what is there or in its place."""
    order: dict[str, list[JsonValue]] = updates.get(history) or {}
    return order.get("append") or order.get("set") or []


def _changes(updates: Mapping[str, Any]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """The parts that updates change, each by its path, and what becomes of it."""
    for name, change in updates.items():
        if name in MAPPINGS:
            for entry, order in change.items():
                yield [name, entry], order or {}
        elif name == _STAGE:
            yield [name], change
        elif "set" in change:
            yield [name], {}


def _fields(parts: Mapping[_Path, _Part]) -> dict[str, Any]:
    """The fields of a context, from its parts; a part without a value was removed."""
    fields: dict[str, Any] = {name: {} for name in MAPPINGS}
    for (field, *entry), (_, part) in parts.items():
        if "set" in part and entry:
            fields[field][entry[0]] = part["set"]
        elif "set" in part:
            fields[field] = part["set"]
    return fields
