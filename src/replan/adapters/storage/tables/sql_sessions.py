"""Sessions in SQL: one implementation for SQLite and PostgreSQL. Rows are appended only."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import count
from typing import Any, cast

from sqlalchemy import Insert, Table, Update, delete, func, insert, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.database import Database
from replan.adapters.storage.faults import Place, readable
from replan.adapters.storage.stored_values import places
from replan.adapters.storage.stored_values.sealing import Seal
from replan.adapters.storage.tables import schema
from replan.adapters.storage.tables.session_rows import (
    Part,
    Path,
    Way,
    added_to,
    appended,
    changed_parts,
    columns_of,
    counts,
    fields_of,
    first_turn,
    has_turn,
    is_of,
    version_of,
    way_to,
)
from replan.errors import SessionConflictError
from replan.ports.session_store import (
    HistoryPage,
    KeptSession,
    SessionKey,
    SessionRecord,
    SessionTurn,
)
from replan.state.session.context import AgentContext, Message, ToolExecution
from replan.state.session.context_updates import HISTORIES
from replan.values import restored

_PLAIN = ("turn_id", "at", "given", "run_id", "takes_back")
"""The parts of a turn that have their own columns, unencrypted."""

_MOST_OPEN = 10_000
"""Values of encrypted storage that stay decrypted in memory, as they were written."""

_LONGEST = 2_000  # bytes of a value that does

_SAID, _CALLED = HISTORIES
_KINDS: dict[str, Any] = {_SAID: tuple[Message, ...], _CALLED: tuple[ToolExecution, ...]}


class SqlSessions:
    def __init__(self, database: Database, seal: Seal) -> None:
        self._database = database
        self._seal = seal
        # Each turn reads a session from its beginning, and decryption takes the most time of it.
        self._decrypted = seal.cipher and lru_cache(_MOST_OPEN)(seal.cipher.open)

    async def load(self, key: SessionKey, version: int | None = None) -> KeptSession | None:
        async def work(connection: AsyncConnection) -> KeptSession | None:
            newest = await version_of(connection, key)
            if newest is None:
                return None
            way = await way_to(connection, key, newest if version is None else version)
            with readable():
                parts = await self._parts(connection, key, way)
                histories = {
                    name: await self._history(connection, key, name, way, parts)
                    for name in HISTORIES
                }
                fields: Any = {**fields_of(parts), **histories}
                context = AgentContext(session_id=key.session_id, **fields)
            return KeptSession(context, way.version, way.newest)

        return await self._database.read(work)

    async def begin(self, key: SessionKey, at: datetime) -> None:
        begun = self._insert_session(key, at)
        await self._database.write(lambda connection: connection.execute(begun))

    async def append(self, key: SessionKey, turn: SessionTurn, version: int) -> None:
        number, tries = version + 1, count()
        rows = self._rows_of_turn(key, turn, number)
        begun = self._insert_session(key, turn.at)

        async def work(connection: AsyncConnection) -> None:
            if not version:
                await connection.execute(begun)
            found = await version_of(connection, key, locks=self._database.is_postgres) or 0
            # Done already, if the connection broke after the commit and before its receipt.
            if next(tries) and found == number and await has_turn(connection, key, turn.turn_id):
                return
            if found != version:
                raise SessionConflictError(key.session_id, version, found)
            for table, each in rows.items():
                if each:
                    await connection.execute(insert(table), each)
            await connection.execute(self._update_session(key, turn, number))

        await self._database.write(work)

    async def turn(self, key: SessionKey, turn_id: str) -> SessionTurn | None:
        table = schema.turns
        query = select(table).where(is_of(table, key), table.c.turn_id == turn_id)

        def read_row(row: Any) -> SessionTurn:
            result = self._seal.open(row.result, *places.of_turn(key, row.number))
            kept = {name: getattr(row, name) for name in _PLAIN}
            return restored(SessionTurn, {**kept, **result})

        return next(iter(await self._database.rows(query, read_row)), None)

    async def history(self, key: SessionKey, before: int | None, limit: int) -> HistoryPage:
        table = schema.messages

        async def work(connection: AsyncConnection) -> HistoryPage:
            newest = await version_of(connection, key)
            if newest is None:
                return HistoryPage((), None)
            way = await way_to(connection, key, newest)
            with readable():
                parts = await self._parts(connection, key, way, self._part_name(_SAID))
                query = appended(key, _SAID, way, first_turn(parts, _SAID))
                if before is not None:
                    query = query.where(table.c.id < before)
                found = query.order_by(table.c.id.desc()).limit(limit + 1)
                rows = (await connection.execute(found)).all()
                page = self._open_rows(key, _SAID, rows[:limit][::-1])
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
                await connection.execute(delete(table).where(is_of(table, key)))

        await self._database.write(work)

    def _insert_session(self, key: SessionKey, at: datetime) -> Insert:
        row = {"version": 0, "created_at": at, "updated_at": at}
        title = self._seal.close("", *places.of_session(key, "title"))
        stage = self._seal.close("new", *places.of_session(key, "stage"))
        values = {**columns_of(key), **row, "title": title, "stage": stage}
        return self._database.insert(schema.sessions).values(**values).on_conflict_do_nothing()

    def _update_session(self, key: SessionKey, turn: SessionTurn, number: int) -> Update:
        told = {"stage": turn.stage}
        if number == 1:
            told["title"] = turn.title
        sealed = {
            name: self._seal.close(text, *places.of_session(key, name))
            for name, text in told.items()
        }
        changed = update(schema.sessions).where(is_of(schema.sessions, key))
        return changed.values(version=number, updated_at=turn.at, **sealed)

    def _rows_of_turn(
        self, key: SessionKey, turn: SessionTurn, number: int
    ) -> dict[Table, list[dict[str, Any]]]:
        own = columns_of(key)
        fields = turn.model_dump(mode="json", include={"title", "stage", "given", "result"})
        result = self._seal.close(fields, *places.of_turn(key, number))
        kept = {name: getattr(turn, name) for name in _PLAIN}
        # In encrypted storage it reveals that there was an input, but nothing of it.
        kept["given"] = self._seal.named(turn.given) if turn.given else ""
        return {
            schema.turns: [{**own, **kept, "number": number, "result": result}],
            schema.messages: [
                {
                    **own,
                    "history": history,
                    "turn": number,
                    "place": place,
                    "value": self._seal.close(
                        value, *places.of_message(key, history, number, place)
                    ),
                }
                for history in HISTORIES
                for place, value in enumerate(added_to(turn.updates, history))
            ],
            schema.parts: [
                {
                    **own,
                    "name": name,
                    "turn": number,
                    "value": self._close_part(key, name, number, part),
                }
                for name, part in (
                    (self._part_name(*path), {"path": path, **order})
                    for path, order in changed_parts(turn.updates)
                )
            ],
        }

    def _close_part(self, key: SessionKey, name: str, turn: int, part: Any) -> bytes:
        return self._seal.close(part, *places.of_part(key, name, turn))

    def _part_name(self, *path: str) -> str:
        """What a part is called in its column; of encrypted storage it says nothing."""
        return self._seal.named(json.dumps(path))

    async def _parts(
        self, connection: AsyncConnection, key: SessionKey, way: Way, name: str | None = None
    ) -> dict[Path, Part]:
        """The newest row of each part, or of one of them."""
        table = schema.parts
        newest = select(table.c.name, func.max(table.c.turn).label("turn")).where(
            is_of(table, key), counts(table.c.turn, way)
        )
        if name is not None:
            newest = newest.where(table.c.name == name)
        # Two queries: where nothing is known about a table, PostgreSQL joins row by row.
        last = (await connection.execute(newest.group_by(table.c.name))).all()
        query = select(table).where(
            is_of(table, key), tuple_(table.c.name, table.c.turn).in_([tuple(row) for row in last])
        )
        rows = await connection.execute(query) if last else ()
        found: dict[Path, Part] = {}
        for row in rows:
            part = self._seal.open(row.value, *places.of_part(key, row.name, row.turn))
            found[cast("Path", tuple(part["path"]))] = row.turn, part
        return found

    async def _history(
        self,
        connection: AsyncConnection,
        key: SessionKey,
        name: str,
        way: Way,
        parts: Mapping[Path, Part],
    ) -> tuple[Any, ...]:
        query = appended(key, name, way, first_turn(parts, name)).order_by(schema.messages.c.id)
        return self._open_rows(key, name, (await connection.execute(query)).all())

    def _open_rows(self, key: SessionKey, history: str, rows: Sequence[Any]) -> tuple[Any, ...]:
        values = [
            self._open_value(bytes(row.value), places.of_message(key, history, row.turn, row.place))
            for row in rows
        ]
        return restored(_KINDS[history], values)

    def _open_value(self, data: bytes, place: Place) -> Any:
        if self._decrypted is None or len(data) > _LONGEST:
            return self._seal.open(data, *place)
        return json.loads(self._decrypted(data, place))

    def _record(self, row: Any) -> SessionRecord:
        key = SessionKey(row.tenant, row.user_id, row.session_id)
        return SessionRecord(
            session_id=row.session_id,
            title=self._seal.open(row.title, *places.of_session(key, "title")),
            stage=self._seal.open(row.stage, *places.of_session(key, "stage")),
            version=row.version,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )
