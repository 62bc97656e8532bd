"""Sessions in SQL, turn by turn: rows are appended only, and a turn reads what is new."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import count

from replan.base.errors import SessionConflictError
from replan.base.values import restored
from replan.ports.session_store import (
    HistoryPage,
    KeptSession,
    SessionKey,
    SessionRecord,
    SessionTurn,
)
from replan.storage.cipher import Cipher
from replan.storage.database import Connection, Database, Row, marks, moment
from replan.storage.faults import readable
from replan.storage.session_rows import (
    OF_SESSION,
    Snapshot,
    has_turn,
    histories_in,
    messages_before,
    rows_of_parts,
    snapshot_at,
    version_of,
)

_MOST_LOADED = 100
"""Sessions that stay in memory as they were read, so that the next turn reads only what is new."""

_TABLES = ("replan_parts", "replan_turns", "replan_sessions")

_COLUMNS = "tenant, user_id, session_id, version, created_at, updated_at, title, stage"

_INSERT = f"""
    INSERT INTO replan_sessions ({_COLUMNS}) VALUES ({marks(8)}) ON CONFLICT DO NOTHING"""

_INSERT_TURN = """
    INSERT INTO replan_turns
        (tenant, user_id, session_id, number, turn_id, at, given, run_id, takes_back, result,
         histories)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

_INSERT_PART = """
    INSERT INTO replan_parts (tenant, user_id, session_id, name, turn, value)
    VALUES (?, ?, ?, ?, ?, ?)"""


@dataclass
class _Loaded:
    """What was read of a session last."""

    key: SessionKey
    snapshot: Snapshot | None = None


class Sessions:
    """A `SessionStore` in a database."""

    def __init__(self, database: Database, cipher: Cipher) -> None:
        self._database = database
        self._cipher = cipher
        self._loaded = lru_cache(_MOST_LOADED)(_Loaded)

    async def load(self, key: SessionKey, version: int | None = None) -> KeptSession | None:
        loaded = self._loaded(key)
        base = loaded.snapshot if version is None else None

        def work(connection: Connection) -> Snapshot | None:
            newest = version_of(connection, key)
            if newest is None:
                return None
            at = newest if version is None else version
            with readable():
                return snapshot_at(connection, self._cipher, key, at, base)

        snapshot = await self._database.read(work)
        if version is None:
            loaded.snapshot = snapshot
        if snapshot is None:
            return None
        # A copy: who gets it may change what is inside its mappings.
        return KeptSession(snapshot.context.replace(), snapshot.version, snapshot.newest)

    async def append(self, key: SessionKey, turn: SessionTurn, version: int) -> None:
        number, attempts = version + 1, count()
        begun, turn_row = self._new_row(key, turn.at), self._turn_row(key, number, turn)
        parts = rows_of_parts(self._cipher, key, number, turn)

        def work(connection: Connection) -> None:
            if not version:
                connection.change(_INSERT, begun)
            stored_version = version_of(connection, key, locks=True) or 0
            # Done already, if the connection broke after the commit and before its receipt.
            if (
                next(attempts)
                and stored_version == number
                and has_turn(connection, key, turn.turn_id)
            ):
                return
            if stored_version != version:
                raise SessionConflictError(key.session_id, version, stored_version)
            connection.change(_INSERT_TURN, turn_row)
            connection.change_many(_INSERT_PART, parts)
            self._update(connection, key, turn, number)

        await self._database.write(work)

    async def turn(self, key: SessionKey, turn_id: str) -> SessionTurn | None:
        def work(connection: Connection) -> SessionTurn | None:
            rows = connection.query(
                "SELECT number, turn_id, at, given, run_id, takes_back, result"
                f" FROM replan_turns WHERE {OF_SESSION} AND turn_id = ?",
                [*key, turn_id],
            )
            with readable():
                return next((self._read_turn(key, row) for row in rows), None)

        return await self._database.read(work)

    async def history(self, key: SessionKey, before: int | None, limit: int) -> HistoryPage:
        def work(connection: Connection) -> HistoryPage:
            with readable():
                messages, earlier = messages_before(connection, self._cipher, key, before, limit)
            return HistoryPage(messages=messages, before=earlier)

        return await self._database.read(work)

    async def recent(self, tenant: str, user: str, limit: int) -> Sequence[SessionRecord]:
        def work(connection: Connection) -> list[SessionRecord]:
            rows = connection.query(
                f"SELECT {_COLUMNS} FROM replan_sessions WHERE tenant = ? AND user_id = ?"
                " ORDER BY updated_at DESC, session_id LIMIT ?",
                [tenant, user, limit],
            )
            with readable():
                return [self._read_record(row) for row in rows]

        return await self._database.read(work)

    async def unused_since(self, at: datetime) -> Sequence[SessionKey]:
        query = "SELECT tenant, user_id, session_id FROM replan_sessions WHERE updated_at < ?"
        rows = await self._database.read(lambda connection: connection.query(query, [moment(at)]))
        return [SessionKey(*row) for row in rows]

    async def remove(self, key: SessionKey) -> None:
        def work(connection: Connection) -> None:
            for table in _TABLES:
                connection.change(f"DELETE FROM {table} WHERE {OF_SESSION}", key)

        await self._database.write(work)
        self._loaded(key).snapshot = None

    def _new_row(self, key: SessionKey, at: datetime) -> Sequence[object]:
        title = self._cipher.encrypt("", "replan_sessions", *key, "title")
        stage = self._cipher.encrypt("new", "replan_sessions", *key, "stage")
        return *key, 0, moment(at), moment(at), title, stage

    def _turn_row(self, key: SessionKey, number: int, turn: SessionTurn) -> Sequence[object]:
        fields = turn.model_dump(mode="json", include={"title", "stage", "given", "result"})
        result = self._cipher.encrypt(fields, "replan_turns", *key, number, "result")
        # In encrypted storage it reveals that there was an input, but nothing of it.
        given = self._cipher.digest(turn.given) if turn.given else ""
        plain = (turn.turn_id, moment(turn.at), given, turn.run_id, turn.takes_back)
        changed = histories_in(turn)
        histories = self._cipher.encrypt(changed, "replan_turns", *key, number, "histories")
        return *key, number, *plain, result, histories

    def _update(
        self, connection: Connection, key: SessionKey, turn: SessionTurn, number: int
    ) -> None:
        texts = {"stage": turn.stage, **({"title": turn.title} if number == 1 else {})}
        values = [
            self._cipher.encrypt(text, "replan_sessions", *key, name)
            for name, text in texts.items()
        ]
        columns = "".join(f", {name} = ?" for name in texts)
        connection.change(
            f"UPDATE replan_sessions SET version = ?, updated_at = ?{columns} WHERE {OF_SESSION}",
            [number, moment(turn.at), *values, *key],
        )

    def _read_turn(self, key: SessionKey, row: Row) -> SessionTurn:
        number, turn_id, at, _, run_id, takes_back, result = row
        # Its digest is in the result, as it was given.
        fields = self._cipher.decrypt(result, "replan_turns", *key, number, "result")
        plain = {"turn_id": turn_id, "at": at, "run_id": run_id, "takes_back": takes_back}
        return restored(SessionTurn, {**plain, **fields})

    def _read_record(self, row: Row) -> SessionRecord:
        *key, version, created_at, updated_at, title, stage = row
        return SessionRecord(
            session_id=key[2],
            title=self._cipher.decrypt(title, "replan_sessions", *key, "title"),
            stage=self._cipher.decrypt(stage, "replan_sessions", *key, "stage"),
            version=version,
            created_at=datetime.fromisoformat(created_at),
            updated_at=datetime.fromisoformat(updated_at),
        )
