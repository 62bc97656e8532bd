"""The rows of logs in SQL; each long text is stored once in a run, and found by a reference."""

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import JsonValue, ValidationError

from replan.base.failures import describe
from replan.log.amounts import Spending
from replan.log.rows import EVENT, LoggedEvent, LogRow, NewRow, Rows, Totals, reference_to, span
from replan.ports.ownership import owner_in
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.database import Connection, Database, Row, first, moment
from replan.storage.databases.faults import UnreadableRecordError, readable

LONGEST = 1_000
"""Characters of a text that stays in its value."""

_ROOM = 4_000_000  # characters of texts that are remembered
_MOST_RUNS = 1_000


def split_texts(value: JsonValue) -> tuple[JsonValue, dict[str, str]]:
    """What is stored of a value: the rest of it, and the places and references of its long texts.

    Returns:
        What is stored; and the long texts by their references.
    """
    texts, places = dict[str, str](), list[JsonValue]()

    def rest(part: JsonValue, path: list[JsonValue]) -> JsonValue:
        if isinstance(part, str) and len(part) > LONGEST:
            ref = reference_to(part)
            texts[ref] = part
            places.append([path, ref])
            return ""
        if isinstance(part, dict):
            return {name: rest(value, [*path, name]) for name, value in part.items()}
        if isinstance(part, list):
            return [rest(item, [*path, at]) for at, item in enumerate(part)]
        return part

    short = rest(value, [])
    return ([short, places] if places else [short]), texts


def whole_value(stored: Any, text_of: Callable[[str], str | None]) -> Any:
    """The value of which this is stored.

    Raises:
        LookupError: One of its texts is missing.
    """
    value, *places = stored
    for path, ref in places[0] if places else ():
        text = text_of(ref)
        if text is None:
            raise LookupError(f"the text {ref} is missing")
        if not path:
            return text
        *above, last = path
        part = value
        for each in above:
            part = part[each]
        part[last] = text
    return value


class RememberedTexts:
    """The long texts of values that were stored last, by run: a prompt may contain them."""

    def __init__(self, room: int = _ROOM) -> None:
        self._runs: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._left = room

    def put(self, run_id: str, ref: str, text: str) -> None:
        texts = self._runs.setdefault(run_id, {})
        self._runs.move_to_end(run_id)
        if ref not in texts:
            texts[ref] = text
            self._left -= len(text)
        while self._runs and (self._left < 0 or len(self._runs) > _MOST_RUNS):
            _, oldest = self._runs.popitem(last=False)
            self._left += sum(map(len, oldest.values()))

    def of(self, run_id: str) -> Mapping[str, str]:
        """The texts of a run by their references."""
        return self._runs.get(run_id, {})


def parts_of(text: str, texts: Mapping[str, str]) -> list[str]:
    """A text in parts: what is between known texts, and their references, in turns."""
    places = sorted(
        (place, ref) for ref, shared in texts.items() if (place := text.find(shared)) >= 0
    )
    parts, end = list[str](), 0
    for place, ref in places:
        if place >= end:
            parts += [text[end:place], ref]
            end = place + len(texts[ref])
    return [*parts, text[end:]]


def joined_parts(stored: str | list[str], text_of: Callable[[str], str | None]) -> str | None:
    """The text of parts; None where one of its texts is missing."""
    if isinstance(stored, str):
        return stored
    texts = [
        character if place % 2 == 0 else text_of(character)
        for place, character in enumerate(stored)
    ]
    return None if None in texts else "".join(text for text in texts if text)


T = TypeVar("T")

_ENTERED = 1_000  # runs that are remembered to have been entered
_ENTER = "INSERT INTO replan_logs VALUES (?, ?) ON CONFLICT (run_id) DO NOTHING"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))"
_INSERT = (
    "INSERT INTO replan_log (run_id, number, key, kind, at, seq, event, value) VALUES"
    " (?, (SELECT coalesce(max(number), 0) + 1 FROM replan_log WHERE run_id = ?), ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (run_id, key) DO NOTHING"
)
_OF_KEY = "SELECT value FROM replan_log WHERE run_id = ? AND key = ?"
_BETWEEN = "run_id = ? AND key >= ? AND key < ?"
_NEWEST_EVENT = (
    "SELECT seq FROM replan_log WHERE run_id = ? AND seq IS NOT NULL ORDER BY number DESC LIMIT 1"
)
_EVENTS = (
    "SELECT key, seq, event FROM replan_log"
    # The number among the events is never above that among all rows.
    " WHERE run_id = ? AND number > ? AND seq > ? ORDER BY number"
)
_RECENT = (
    "SELECT key, seq, event FROM (SELECT number, key, kind, seq, event FROM replan_log"
    " WHERE run_id = ? ORDER BY number DESC LIMIT ?) AS newest"
    " WHERE kind IN ({}) AND seq IS NOT NULL ORDER BY number"
)
_EVERY = (
    "SELECT number, key, kind, at, seq, event, value FROM replan_log"
    " WHERE run_id = ? AND number > ? ORDER BY number"
)
_RETIRED = "~"  # stands around the number in front of the key of a row that is superseded
_SUPERSEDE = (
    f"UPDATE replan_log SET key = '{_RETIRED}' || number || '{_RETIRED}' || key WHERE {_BETWEEN}"
)
_KINDS = ("calls", "tokens", "cost")
_AMOUNTS = [f"{part}_{kind}" for part in ("settled", "reserved") for kind in _KINDS]
_TOTALS = f"SELECT scope, {', '.join(_AMOUNTS)} FROM replan_spent WHERE run_id = ?"
_CHARGE = (
    "INSERT INTO replan_spent VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id, scope)"
    f" DO UPDATE SET {', '.join(f'{amount} = excluded.{amount}' for amount in _AMOUNTS)}"
)
_KEEP = (
    "INSERT INTO replan_texts (run_id, ref, at, text) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (run_id, ref) DO "
)


class SqlLogs:
    """The logs of a database; a row belongs to the thread of whoever appends first to its run."""

    outlives_process = True

    def __init__(self, database: Database, cipher: Cipher) -> None:
        self._database = database
        self._cipher = cipher
        self._texts = RememberedTexts()
        # Runs of which it is on record on which thread they are, and the takes of these threads.
        self._entered = set[tuple[str, int]]()

    @property
    def where(self) -> str:
        return self._database.where

    @property
    def take(self) -> int:
        owner = owner_in(self.where)
        return 0 if owner is None else owner.epoch

    async def write(self, run_id: str, work: Callable[[Rows], T]) -> T:
        owner = owner_in(self.where)
        # A thread that was deleted meanwhile was taken again since.
        take = None if owner is None else (run_id, owner.epoch)
        is_new = take is not None and take not in self._entered

        def locked(connection: Connection) -> T:
            rows = self.rows_of(connection, run_id)
            if owner is not None and is_new:
                connection.change(_ENTER, [run_id, owner.thread_id])
            try:
                return work(rows)
            except ValidationError as error:
                # What is to be written is valid; what was read is not.
                raise UnreadableRecordError(describe(error), ("replan_log", run_id)) from error

        done = await self._database.write(locked)
        if take is not None and is_new:
            if len(self._entered) >= _ENTERED:
                self._entered.clear()
            self._entered.add(take)
        return done

    def rows_of(self, connection: Connection, run_id: str) -> Rows:
        """The rows of a run in a transaction that appends to them, one at a time."""
        if connection.is_postgres:
            connection.query(_LOCK, [run_id])
        return self._rows(connection, run_id)

    def _rows(self, connection: Connection, run_id: str) -> "SqlRows":
        return SqlRows(connection, self._cipher, run_id, self._texts)

    async def read(self, run_ids: Collection[str], work: Callable[[Rows], T]) -> dict[str, T]:
        def every(connection: Connection) -> dict[str, T]:
            results = dict[str, T]()
            for run_id in run_ids:
                with readable("replan_log", run_id):
                    results[run_id] = work(self._rows(connection, run_id))
            return results

        return await self._database.read(every)

    async def forget_texts(self, before: datetime) -> None:
        statement, at = "DELETE FROM replan_texts WHERE at < ?", moment(before)
        await self._database.write(lambda connection: connection.change(statement, [at]))

    async def closed(self, run_id: str) -> None:
        """Keep everything: the run stays to be looked at until it is removed."""


class SqlRows:
    """The rows of one run in one transaction."""

    def __init__(
        self, connection: Connection, cipher: Cipher, run_id: str, texts: RememberedTexts
    ) -> None:
        self._connection = connection
        self._cipher = cipher
        self._run_id = run_id
        self._texts = texts

    def append(self, row: NewRow, seq: int | None = None) -> bool:
        event = value = None
        if row.event is not None:
            event = self._cipher.encrypt(row.event, *self._place(row.key, "event"))
        if _has_value(row.key):
            short, texts = split_texts(row.written)
            for ref, text in texts.items():
                self._keep(ref, text, None, "UPDATE SET at = NULL")
                self._texts.put(self._run_id, ref, text)
            value = self._cipher.encrypt(short, *self._place(row.key, "value"))
        at = moment(datetime.fromtimestamp(time.time(), UTC))
        stored = [self._run_id, self._run_id, row.key, row.kind, at, seq, event, value]
        return bool(self._connection.change(_INSERT, stored))

    def has(self, key: str) -> bool:
        return bool(self._connection.query(_OF_KEY, [self._run_id, key]))

    def value(self, key: str) -> Any:
        stored = first(self._connection.query(_OF_KEY, [self._run_id, key]))
        return self._read_value(key, stored)

    def below(self, prefix: str) -> Sequence[tuple[str, Any]]:
        query = f"SELECT key, value FROM replan_log WHERE {_BETWEEN} ORDER BY number"
        return [
            (key, self._read_value(key, stored))
            for key, stored in self._connection.query(query, [self._run_id, *span(prefix)])
        ]

    def supersede(self, first: str, last: str) -> int:
        return self._connection.change(_SUPERSEDE, [self._run_id, first, last])

    def newest_event(self) -> int:
        return first(self._connection.query(_NEWEST_EVENT, [self._run_id])) or 0

    def events(self, after: int) -> Sequence[LoggedEvent]:
        return [
            LoggedEvent(seq=seq, event=self._read_event(_key_of(key), stored))
            for key, seq, stored in self._connection.query(_EVENTS, [self._run_id, after, after])
        ]

    def recent_events(self, kinds: Sequence[str], among: int) -> Sequence[LoggedEvent]:
        query = _RECENT.format(", ".join("?" * len(kinds)))
        return [
            LoggedEvent(seq=seq, event=self._read_event(_key_of(key), stored))
            for key, seq, stored in self._connection.query(query, [self._run_id, among, *kinds])
        ]

    def every(self, after: int) -> Sequence[LogRow]:
        return [self._log_row(row) for row in self._connection.query(_EVERY, [self._run_id, after])]

    def totals(self) -> Mapping[str, Totals]:
        return {
            scope: (_spending(amounts[:3]), _spending(amounts[3:]))
            for scope, *amounts in self._connection.query(_TOTALS, [self._run_id])
        }

    def charge(self, scope: str, totals: Totals) -> None:
        amounts = [getattr(part, kind) for part in totals for kind in _KINDS]
        self._connection.change(_CHARGE, [self._run_id, scope, *amounts])

    def keep_text(self, ref: str, text: str, at: datetime) -> None:
        parts = parts_of(text, self._texts.of(self._run_id))
        # What is remembered may have been rolled back, or be this text itself.
        is_whole = len(parts) == 1 or ref in parts or None in map(self._stored, parts[1::2])
        self._keep(ref, text if is_whole else [*parts], at, "NOTHING")

    def text(self, ref: str) -> str | None:
        stored = self._stored(ref)
        if stored is None:
            return None
        text = self._cipher.decrypt(stored, "replan_texts", self._run_id, ref, "text")
        return joined_parts(text, self.text)

    def _stored(self, ref: str) -> Any:
        query = "SELECT text FROM replan_texts WHERE run_id = ? AND ref = ?"
        return first(self._connection.query(query, [self._run_id, self._cipher.digest(ref)]))

    def _keep(self, ref: str, text: JsonValue, at: datetime | None, otherwise: str) -> None:
        stored = self._cipher.encrypt(text, "replan_texts", self._run_id, ref, "text")
        row = [self._run_id, self._cipher.digest(ref), at and moment(at), stored]
        self._connection.change(_KEEP + otherwise, row)

    def _log_row(self, row: Row) -> LogRow:
        number, stored_key, kind, at, seq, event, value = row
        key = _key_of(stored_key)
        return LogRow(
            number=number,
            key=key,
            kind=kind,
            counts=key == stored_key,
            at=datetime.fromisoformat(at),
            seq=seq,
            event=None if event is None else self._read_event(key, event),
            value=self._read_value(key, value),
        )

    def _read_event(self, key: str, stored: bytes) -> Any:
        return self._cipher.decrypt(stored, *self._place(key, "event"))

    def _read_value(self, key: str, stored: bytes | None) -> Any:
        place = self._place(key, "value")
        if stored is None:
            if _has_value(key):
                raise UnreadableRecordError("it is empty", place)
            return None
        with readable(*place):
            return whole_value(self._cipher.decrypt(stored, *place), self.text)

    def _place(self, key: str, column: str) -> tuple[str, ...]:
        return ("replan_log", self._run_id, key, column)


def _has_value(key: str) -> bool:
    """Whether a row has a value, be it nothing; an event without one is a row of its own."""
    return not key.startswith(EVENT)


def _key_of(stored: str) -> str:
    """The key of a row, as it was before the row was superseded."""
    return stored.split(_RETIRED, 2)[2] if stored.startswith(_RETIRED) else stored


def _spending(amounts: Sequence[Any]) -> Spending:
    return Spending(**dict(zip(_KINDS, amounts, strict=True)))
