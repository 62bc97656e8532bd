"""Sessions in SQL, turn by turn: rows are appended only, and a turn reads what is new."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple, cast

from pydantic import JsonValue

from replan.base.errors import SessionConflictError
from replan.base.values import restored
from replan.ports.session_store import (
    HistoryPage,
    KeptSession,
    SessionKey,
    SessionRecord,
    SessionTurn,
)
from replan.state.session.context import HISTORIES, MAPPINGS, AgentContext, Message, ToolExecution
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.database import Connection, Database, Row, first, marks, moment
from replan.storage.databases.faults import readable

OF_SESSION = "tenant = ? AND user_id = ? AND session_id = ?"
"""The rows of a session; takes its key."""

_STAGE = "current_stage"
_DIALOGUE, _CALLS = HISTORIES
_KINDS: dict[str, Any] = {_DIALOGUE: tuple[Message, ...], _CALLS: tuple[ToolExecution, ...]}
_BATCH = 500  # parts that one statement reads
_PAGE = 100  # turns whose messages are looked through at once

# A number of a message for those who page: its turn, and its place in the history of that turn.
_PLACES = 2**32

_Path = tuple[str, *tuple[str, ...]]
_Histories = Mapping[str, Mapping[str, list[JsonValue]]]  # by name, as updates have them


class Snapshot(NamedTuple):
    """A session as it is after a turn."""

    context: AgentContext
    version: int  # the number of the turn
    turn_id: str  # distinguishes the turn from the one with its number in a session begun anew
    newest: int  # the newest turn that can be taken back


class _Turn(NamedTuple):
    turn_id: str
    has_input: bool
    takes_back: int | None


_Turns = Mapping[int, _Turn]


class _Way(NamedTuple):
    """How a session came from one version to another one."""

    since: int  # the first turn
    version: int
    turn_id: str
    newest: int  # the newest turn that can be taken back
    dead: frozenset[int]  # the turns that were taken back

    def condition(self, column: str) -> tuple[str, list[int]]:
        """The condition on the turn of a row that counts, with its values."""
        dead = sorted(self.dead)
        missing = f" AND {column} NOT IN ({marks(len(dead))})" if dead else ""
        return f"{column} BETWEEN ? AND ?{missing}", [self.since, self.version, *dead]


def version_of(connection: Connection, key: SessionKey, *, locks: bool = False) -> int | None:
    """The version of a session; None if there is none."""
    lock = " FOR UPDATE" if locks and connection.is_postgres else ""
    query = f"SELECT version FROM replan_sessions WHERE {OF_SESSION}{lock}"
    return first(connection.query(query, key))


def has_turn(connection: Connection, key: SessionKey, turn_id: str) -> bool:
    query = f"SELECT 1 FROM replan_turns WHERE {OF_SESSION} AND turn_id = ?"
    return bool(connection.query(query, [*key, turn_id]))


def snapshot_at(
    connection: Connection, cipher: Cipher, key: SessionKey, version: int, base: Snapshot | None
) -> Snapshot:
    """Read a session at a version; of one that was read before, only the turns since then."""
    base = base or _begun(key)
    turns = _turns(connection, key, base.version, version)
    if not _leads_on(base, turns):
        base = _begun(key)
        turns = _turns(connection, key, base.version, version)
    way = _way_to(base, turns, version)
    if way.version == base.version:
        return base
    fields = _fields(base.context, _parts(connection, cipher, key, way))
    histories = [each for _, each in _histories(connection, cipher, key, way)]
    for name in HISTORIES:
        fields[name] = _history(name, getattr(base.context, name), histories)
    context = AgentContext(session_id=key.session_id, **fields)
    return Snapshot(context, way.version, way.turn_id, way.newest)


def messages_before(
    connection: Connection, cipher: Cipher, key: SessionKey, before: int | None, limit: int
) -> tuple[tuple[Message, ...], int | None]:
    """The last messages before a number, the oldest first, and the number of the first one.

    The number is None if no message is before it.
    """
    newest = version_of(connection, key)
    if newest is None:
        return (), None
    way = _way_to(_begun(key), _turns(connection, key, 0, newest), newest)
    end = newest * _PLACES + _PLACES if before is None else before
    found = list[tuple[int, Any]]()  # numbers and messages, the newest first
    for turn, histories in _newest_histories(connection, cipher, key, way, end // _PLACES):
        entries = enumerate(_entries(histories, _DIALOGUE), turn * _PLACES)
        found += [(number, entry) for number, entry in entries if number < end][::-1]
        if len(found) > limit or _is_replaced(histories, _DIALOGUE):
            break
    page = restored(_KINDS[_DIALOGUE], [entry for _, entry in found[:limit][::-1]])
    return page, found[limit - 1][0] if len(found) > limit else None


def _newest_histories(
    connection: Connection, cipher: Cipher, key: SessionKey, way: _Way, turn: int
) -> Iterator[tuple[int, _Histories]]:
    """What turns did to the histories, from a turn back to the first."""
    for last in range(min(turn, way.version), 0, -_PAGE):
        page = way._replace(since=max(1, last - _PAGE + 1), version=last)
        yield from reversed(_histories(connection, cipher, key, page))


def _begun(key: SessionKey) -> Snapshot:
    return Snapshot(AgentContext(session_id=key.session_id), 0, "", 0)


def _turns(connection: Connection, key: SessionKey, since: int, version: int) -> _Turns:
    """The turns between two versions that matter for the way: both ends, and what is unusual."""
    rows = connection.query(
        f"SELECT number, turn_id, given, takes_back FROM replan_turns WHERE {OF_SESSION}"
        " AND number BETWEEN ? AND ?"
        " AND (number = ? OR number = ? OR takes_back IS NOT NULL OR given = '')",
        [*key, since, version, since, version],
    )
    return {number: _Turn(turn_id, bool(given), back) for number, turn_id, given, back in rows}


def _leads_on(base: Snapshot, turns: _Turns) -> bool:
    """Whether turns continue what was read before: none of it was taken back, or begun anew."""
    if not base.version:
        return True
    is_same = base.version in turns and turns[base.version].turn_id == base.turn_id
    later = (turn for number, turn in turns.items() if number > base.version)
    return is_same and all(turn.takes_back is None for turn in later)


def _way_to(base: Snapshot, turns: _Turns, version: int) -> _Way:
    """How a session came to a version: each taking back leads to what was before the turn."""
    dead, at = set[int](), version
    for number in sorted(turns, reverse=True):
        back = turns[number].takes_back
        if back is not None and base.version < number <= at:
            dead.update(range(back, number))
            at = back - 1
    newest = version
    while newest > base.version and newest in turns and not turns[newest].has_input:
        back = turns[newest].takes_back
        newest = (newest if back is None else back) - 1
    turn_id = turns[version].turn_id if version in turns else ""
    newest = newest if newest > base.version else base.newest
    return _Way(base.version + 1, version, turn_id, newest, frozenset(dead))


def _parts(
    connection: Connection, cipher: Cipher, key: SessionKey, way: _Way
) -> dict[_Path, dict[str, Any]]:
    """The newest row of each part that turns changed."""
    condition, values = way.condition("turn")
    newest = connection.query(
        f"SELECT name, max(turn) FROM replan_parts WHERE {OF_SESSION} AND {condition}"
        " GROUP BY name",
        [*key, *values],
    )
    parts: dict[_Path, dict[str, Any]] = {}
    for start in range(0, len(newest), _BATCH):
        batch = newest[start : start + _BATCH]
        places = ", ".join(["(?, ?)"] * len(batch))
        rows = connection.query(
            f"SELECT name, turn, value FROM replan_parts WHERE {OF_SESSION}"
            f" AND (name, turn) IN (VALUES {places})",
            [*key, *(value for row in batch for value in row)],
        )
        for name, turn, value in rows:
            part = cipher.decrypt(value, "replan_parts", *key, name, turn, "value")
            parts[cast("_Path", tuple(part["path"]))] = part
    return parts


def _histories(
    connection: Connection, cipher: Cipher, key: SessionKey, way: _Way
) -> list[tuple[int, _Histories]]:
    """What turns did to the histories, in their order."""
    condition, values = way.condition("number")
    rows = connection.query(
        f"SELECT number, histories FROM replan_turns WHERE {OF_SESSION} AND {condition}"
        " ORDER BY number",
        [*key, *values],
    )
    return [
        (number, cipher.decrypt(stored, "replan_turns", *key, number, "histories"))
        for number, stored in rows
    ]


def _history(name: str, before: tuple[Any, ...], histories: Sequence[_Histories]) -> Any:
    """A history after turns; those before one that replaced it count no longer."""
    replaced = [at for at, each in enumerate(histories) if _is_replaced(each, name)]
    if replaced:
        before, histories = (), histories[replaced[-1] :]
    added = [entry for each in histories for entry in _entries(each, name)]
    return (*before, *restored(_KINDS[name], added))


def _entries(histories: _Histories, name: str) -> list[JsonValue]:
    """What a turn put into a history, appended or as a replacement."""
    return [entry for entries in histories.get(name, {}).values() for entry in entries]


def _is_replaced(histories: _Histories, name: str) -> bool:
    return "set" in histories.get(name, {})


def _fields(before: AgentContext, parts: Mapping[_Path, dict[str, Any]]) -> dict[str, Any]:
    """The fields of a context, after changes; a part without a value was removed."""
    fields: dict[str, Any] = {name: dict(getattr(before, name)) for name in MAPPINGS}
    fields[_STAGE] = before.current_stage
    for (field, *entry), part in parts.items():
        if entry and "set" in part:
            fields[field][entry[0]] = part["set"]
        elif entry:
            fields[field].pop(entry[0], None)
        elif "set" in part:
            fields[field] = part["set"]
    return fields


def histories_in(turn: SessionTurn) -> dict[str, JsonValue]:
    """What a turn does to the histories: a part of its updates."""
    return {name: change for name, change in turn.updates.items() if name in HISTORIES}


def rows_of_parts(
    cipher: Cipher, key: SessionKey, number: int, turn: SessionTurn
) -> list[Sequence[object]]:
    """The rows of the parts that a turn changes."""
    rows: list[Sequence[object]] = []
    for path, order in _changed_parts(turn.updates):
        name, part = part_name(cipher, path), cast("JsonValue", {"path": path, **order})
        value = cipher.encrypt(part, "replan_parts", *key, name, number, "value")
        rows.append((*key, name, number, value))
    return rows


def part_name(cipher: Cipher, path: Sequence[str]) -> str:
    """What a part is called in its column; of encrypted storage it says nothing."""
    return cipher.digest(json.dumps(path))


def _changed_parts(updates: Mapping[str, Any]) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """The parts that updates change, each by its path, and what happens to it."""
    for name, change in updates.items():
        if name in MAPPINGS:
            for entry, order in change.items():
                yield [name, entry], order or {}
        elif name == _STAGE:
            yield [name], change


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
