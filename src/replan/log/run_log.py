"""The log of each run: append-only, idempotent by key, fenced by the owner of its thread.

Attempts, results, answers, charges, requests and events are rows of one log. What LangGraph knows
of a node, it knows when the node returns; what a kill in the middle of a step must not take away is
here first. What a row means is said here; where rows are is the matter of a `LogStore`.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from typing import Any, TypeVar

from pydantic import Field, JsonValue, SerializationInfo, field_serializer

from replan.base.values import Value, restored
from replan.log.amounts import (
    NOTHING,
    Bound,
    Charged,
    Refused,
    Reservation,
    Spending,
    first_refusal,
)
from replan.log.events.listeners import Announcement
from replan.log.events.types import AttemptEnded, RunStopped, SpecialistInvoked
from replan.log.kept_events import entry_of
from replan.log.report import kept_report
from replan.log.rows import (
    ATTEMPT,
    END,
    EVENT,
    FORKED,
    REPORT,
    REQUEST,
    RESERVED,
    RESULT,
    SETTLED,
    SUPERSEDED,
    TAKEN,
    UNKNOWN_ENDS,
    Append,
    Attempt,
    AttemptOutcome,
    EventQueue,
    KeptText,
    LedgerEntry,
    LoggedEvent,
    LogRow,
    LogStore,
    NewRow,
    Reported,
    Request,
    Rows,
    Totals,
    begun_already,
    forks_in,
    in_order,
    requests_in,
    reserved_in,
    span,
    spent_in,
)
from replan.log.uninterrupted import uninterrupted
from replan.state.results import SpecialistResult, result_as_json

MOST_CHARACTERS = 8_000_000
"""Characters of the texts of results that are kept in memory, of all runs of a log together."""

_Place = tuple[int, str, str]  # the take, the run and the key of the row


class RecentResults:
    """The results of a log that were used last, each by the take of its thread in which it was.

    A row never changes while one process has its thread; a run may be removed and begun again.
    """

    def __init__(self, room: int = MOST_CHARACTERS) -> None:
        self._results: OrderedDict[_Place, SpecialistResult] = OrderedDict()
        self._room = room

    def get(self, place: _Place) -> SpecialistResult | None:
        result = self._results.get(place)
        if result is not None:
            self._results.move_to_end(place)
        return result

    def put(self, place: _Place, result: SpecialistResult) -> None:
        if place in self._results:
            return
        self._results[place] = result
        self._room -= len(result.text)
        while self._room < 0 and self._results:
            _, oldest = self._results.popitem(last=False)
            self._room += len(oldest.text)


T = TypeVar("T")

BEGAN = "began"  # the key of the note with the checkpoint at which the run began
TOLD = "told/"  # the prefix of notes that say which warnings an event has reported
ACTED = "acted/"  # the prefix of the notes about tools that did something that must not be repeated
DOUBTED = "doubted/"  # the prefix of notes about attempts in doubt that failed without a question

_FAMILIES = (
    *(ATTEMPT, END, RESULT, RESERVED, SETTLED, REQUEST, TAKEN, EVENT, SUPERSEDED, REPORT),
    FORKED,  # it names another row of this log by its number
)
NEXT = "\x01"  # a key with this behind it is the first one behind that key alone


class RunRows(Value):
    """All rows of a run, which is at rest."""

    # What each scope has spent, including reservations that are never settled.
    spent: dict[str, Spending] = Field(default_factory=dict)
    attempts: tuple[LedgerEntry, ...] = ()  # the attempts, in the order in which they began
    # The recorded final results, by the keys that they answer for.
    results: dict[str, SpecialistResult] = Field(default_factory=dict)
    # The recorded values with their keys, in the order in which they came.
    notes: tuple[tuple[str, JsonValue], ...] = ()

    @field_serializer("results", when_used="json")
    def _as_json(
        self, results: dict[str, SpecialistResult], info: SerializationInfo
    ) -> dict[str, JsonValue]:
        is_short = info.exclude_defaults
        return {key: result_as_json(result, is_short=is_short) for key, result in results.items()}


class RunLog:
    """What happened in runs; each row is safe when the method that appends it returns."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._queues: dict[str, EventQueue] = {}
        self._recent = RecentResults()

    @property
    def where(self) -> str:
        """The storage, for people."""
        return self._store.where

    @property
    def take(self) -> int:
        """The number of the take of a thread as whose owner this code works; 0 without one."""
        return self._store.take

    @property
    def outlives_process(self) -> bool:
        """Whether results are in it as long as the states that refer to them."""
        return self._store.outlives_process

    @contextmanager
    def numbered_with(self, run_id: str, queue: EventQueue) -> Generator[None]:
        """Number the events of rows of a run among those of a queue, while this lasts."""
        self._queues[run_id] = queue
        try:
            yield
        finally:
            del self._queues[run_id]

    def unwritten_events(self) -> tuple[str, EventQueue] | None:
        """The run that works here, and its events, if some are not on record yet."""
        for run_id, queue in self._queues.items():
            if queue.has_events and queue.is_here:
                return run_id, queue
        return None

    async def rows(self, run_id: str, after: int = 0) -> Sequence[LogRow]:
        """The rows of a run with larger numbers, in their order."""
        return await self._read(run_id, lambda rows: rows.every(after))

    async def note(
        self, run_id: str, key: str, value: JsonValue, announced: Announcement | None = None
    ) -> JsonValue:
        """Append a value under a key; the first value counts, and is returned.

        Args:
            run_id: The run.
            key: The key.
            value: The value.
            announced: The event of the row; it is published if the value is the first one.
        """
        row = NewRow(key, key.partition("/")[0], value)

        def work(rows: Rows, append: Append) -> JsonValue:
            return value if append(rows, row) else rows.value(key)

        return await self._announce(run_id, announced, work)

    async def notes(self, run_id: str, prefix: str = "") -> Mapping[str, JsonValue]:
        """The values whose keys have this prefix, in the order in which they came."""
        return dict(
            await self._read(run_id, lambda rows: rows.below(prefix) if prefix else _notes(rows))
        )

    async def strike(self, run_id: str, prefix: str) -> None:
        """Supersede the values whose keys have this prefix: they count no longer."""
        row = NewRow(f"{SUPERSEDED}{secrets.token_hex(8)}", "superseded", prefix)

        def work(rows: Rows) -> None:
            if rows.supersede(*span(prefix)):
                rows.append(row)

        await self._write(run_id, work)

    async def replace(self, run_id: str, key: str, value: JsonValue) -> None:
        """Append a value under a key; one that is there counts no longer."""
        row = NewRow(key, key.partition("/")[0], value)

        def work(rows: Rows) -> None:
            rows.supersede(key, f"{key}{NEXT}")
            rows.append(row)

        await self._write(run_id, work)

    async def keep_report(self, run_id: str, value: JsonValue) -> None:
        """Append what a report shows of the state of a run that is over, as of its newest event."""

        def work(rows: Rows) -> None:
            rows.append(NewRow(f"{REPORT}{rows.newest_event()}", "report", value))

        await self._write(run_id, work)

    async def report(self, run_id: str, last: int) -> Mapping[str, Any] | None:
        """What a report of a run that is over shows of it and of so many of its last events.

        None for a run that went on since.
        """
        return await self._read(run_id, lambda rows: kept_report(rows, run_id, last))

    async def started(
        self, attempt: Attempt, key: str = "", announced: Announcement | None = None
    ) -> SpecialistResult | None:
        """Append that an attempt begins, before its first effect, unless it has its result.

        The same again is harmless: its receipt may have been lost.

        Args:
            attempt: The attempt.
            key: The key of its result, in addition to the key of the attempt.
            announced: The event of the row, published if the attempt begins.

        Returns:
            The result that another process recorded in the meantime: then there is nothing to do.

        Raises:
            StorageError: Somebody else began the attempt.
        """
        row = NewRow(
            _key_of(ATTEMPT, attempt),
            "specialist_invoked",
            lambda: attempt.model_dump(mode="json"),
        )
        result_keys = [
            f"{RESULT}{name}" for name in dict.fromkeys([key or attempt.key, attempt.key])
        ]

        def work(rows: Rows, append: Append) -> SpecialistResult | None:
            for result_key in result_keys:
                if rows.has(result_key):
                    return restored(SpecialistResult, rows.value(result_key))
            if not append(rows, row):
                begun = restored(Attempt, rows.value(row.key))
                if (begun.started_at, begun.step_id) != (attempt.started_at, attempt.step_id):
                    raise begun_already(self._store.where, attempt)
            return None

        return await self._announce(attempt.run_id, announced, work)

    async def ended(
        self,
        attempt: Attempt,
        outcome: AttemptOutcome,
        at: datetime,
        error: str = "",
        announced: Announcement | None = None,
    ) -> None:
        """Append the end of an attempt without a final result; a final end stays."""
        row = _end(attempt, outcome, at, error)
        await self._announce(attempt.run_id, announced, lambda rows, append: append(rows, row))

    async def finished(
        self,
        attempt: Attempt,
        result: SpecialistResult,
        at: datetime,
        key: str = "",
        announced: Announcement | None = None,
    ) -> SpecialistResult:
        """Append the final result of a step at a specialist, with the end of its attempt.

        Other steps build on the result only after this; the first result of a key stays.

        Args:
            attempt: The newest attempt.
            result: The outcome of the step.
            at: When it ended.
            key: What the result answers for; empty: what the attempt is of.
            announced: The event of the result, published if it is the first of its key.

        Returns:
            The result that counts, with the key of its row.
        """
        end = _end(attempt, "failed" if result.is_failed else "done", at, result.error)
        row = _result(key or attempt.key, result)

        def work(rows: Rows, append: Append) -> SpecialistResult:
            counts = (
                result if append(rows, row) else restored(SpecialistResult, rows.value(row.key))
            )
            rows.append(end)
            return counts

        counts = await self._announce(attempt.run_id, announced, work)
        return self._keyed(attempt.run_id, row.key, counts)

    async def results(self, run_id: str) -> Mapping[str, SpecialistResult]:
        """The final results of a run, by the keys that they answer for."""
        return await self._read(run_id, _results)

    async def results_at(
        self, run_id: str, keys: Collection[str]
    ) -> Mapping[str, SpecialistResult]:
        """The whole results at keys of rows; those that are not there are left out."""
        take = self.take
        recent = {key: self._recent.get((take, run_id, key)) for key in keys if take}
        missing = [key for key in keys if recent.get(key) is None]

        def work(rows: Rows) -> dict[str, SpecialistResult]:
            return {
                key: restored(SpecialistResult, rows.value(key)) for key in missing if rows.has(key)
            }

        read = await self._read(run_id, work) if missing else {}
        recent |= {key: self._keyed(run_id, key, result) for key, result in read.items()}
        return {key: result for key, result in recent.items() if result is not None}

    def _keyed(self, run_id: str, key: str, result: SpecialistResult) -> SpecialistResult:
        if not self.outlives_process:
            return result
        result = result.model_copy(update={"log_key": key})
        if self.take:
            self._recent.put((self.take, run_id, key), result)
        return result

    async def ledger(self, run_id: str) -> Sequence[LedgerEntry]:
        """Every attempt of a run, in the order in which they began."""
        return await self._read(run_id, _ledger)

    async def reported(self, run_id: str, after: int = 0) -> Reported:
        """What a report shows of a run, all as of one moment; its events from a number on."""

        def work(rows: Rows) -> Reported:
            spent, reserved = spent_in(rows), reserved_in(rows)
            requests, forks = requests_in(rows, run_id), forks_in(rows)
            return Reported(rows.events(after), requests, spent, reserved, forks, _ledger(rows))

        return await self._read(run_id, work)

    async def reserve(self, reservation: Reservation, bounds: Sequence[Bound]) -> Refused | None:
        """Charge every scope of the bounds with the amount, or none of them."""
        amount, scopes = reservation.amount, [bound.scope for bound in bounds]
        value: JsonValue = {"amount": {**amount.as_json()}, "scopes": [*scopes]}
        row = NewRow(f"{RESERVED}{reservation.id}", "reserved", value)

        def work(rows: Rows) -> Refused | None:
            if rows.has(row.key):
                return None
            spent = {**dict.fromkeys(scopes, NO_TOTALS), **rows.totals()}
            for bound in bounds:
                settled, reserved = spent[bound.scope]
                refused = first_refusal(bound, amount, settled + reserved)
                if refused is not None:
                    return refused
            for scope in scopes:
                settled, reserved = spent[scope]
                rows.charge(scope, (settled, reserved + amount))
            rows.append(row)
            return None

        return await self._write(reservation.run_id, work)

    async def settle(self, reservation: Reservation, used: Spending) -> None:
        """Replace a reservation by the amount used; a repetition is harmless.

        The row also says how much of it is `beyond` the reservation.
        """
        key = f"{RESERVED}{reservation.id}"
        beyond = used.beyond(reservation.amount)
        value: JsonValue = {**used.as_json()}
        if beyond != NOTHING:
            value["beyond"] = {**beyond.as_json()}
        row = NewRow(f"{SETTLED}{reservation.id}", "settled", value)

        def work(rows: Rows) -> None:
            if not rows.has(key):
                return
            reserved, spent = rows.value(key), rows.totals()
            amount = Spending(**reserved["amount"])
            for scope in reserved["scopes"]:
                settled, held = spent[scope]
                rows.charge(scope, (settled + used, held - amount))
            rows.supersede(key, f"{key}{NEXT}")
            rows.append(row)

        await self._write(reservation.run_id, work)

    async def spent(self, run_id: str) -> Mapping[str, Spending]:
        """What each scope has spent, reservations that are not settled in full."""
        return await self._read(run_id, spent_in)

    async def charged(self, run_id: str) -> Charged:
        """What each scope has spent, and which reservations are open, all as of one moment."""

        def work(rows: Rows) -> Charged:
            reserved = (key.removeprefix(RESERVED) for key, _ in rows.below(RESERVED))
            return Charged(spent_in(rows), frozenset(reserved))

        return await self._read(run_id, work)

    async def adopt(self, run_id: str, rows: RunRows, at: datetime, *, waits: bool = False) -> None:
        """Copy all rows of a run from another log; a run that has rows here keeps those.

        Its events are those of its attempts, and that it was imported, and `waits` or was stopped:
        since its last attempt, or without one since now, which is `at`. The same again is harmless:
        its receipt may have been lost.
        """
        imported = [*_imported(run_id, rows, at, waits=waits)]

        def work(here: Rows) -> None:
            if here.every(0):
                return
            for scope, amount in rows.spent.items():
                here.charge(scope, (amount, Spending()))
            seq = count(1)
            for row in imported:
                here.append(row, None if row.event is None else next(seq))

        await self._write(run_id, work)

    async def export(self, run_id: str) -> RunRows:
        """Everything that continues a run at rest, so that another log can adopt it."""

        def work(rows: Rows) -> RunRows:
            return RunRows(
                spent=dict(spent_in(rows)),
                attempts=tuple(_ledger(rows)),
                results=dict(_results(rows)),
                notes=tuple(_notes(rows)),
            )

        return await self._read(run_id, work)

    async def closed(self, run_id: str) -> None:
        """The run is over and its state is stored; a log that stores nothing may forget it."""
        await self._store.closed(run_id)

    async def add_events(
        self,
        run_id: str,
        events: Sequence[JsonValue],
        texts: Sequence[KeptText] = (),
        batch: str = "",
    ) -> int:
        """Append events of a run, in this order, and return the number of the first one.

        Their long texts are safe with them; one that is there stays. Of two batches with one name,
        the first one counts.
        """
        batch = batch or secrets.token_hex(8)
        return await self._store.write(
            run_id, lambda rows: append_events(rows, events, texts, batch)
        )

    async def events(self, run_id: str, after: int = 0) -> Sequence[LoggedEvent]:
        """The events of a run with larger numbers, in their order."""
        return await self._read(run_id, lambda rows: rows.events(after))

    async def recent_events(
        self, run_ids: Collection[str], kinds: Sequence[str], among: int
    ) -> Mapping[str, Sequence[LoggedEvent]]:
        """The events of some kinds among so many of the newest rows of each of some runs."""
        return await self._store.read(run_ids, lambda rows: rows.recent_events(kinds, among))

    async def text(self, run_id: str, ref: str) -> str | None:
        """A long text of an event; None if it is not kept, or no longer."""
        return await self._read(run_id, lambda rows: rows.text(ref))

    async def forget_texts(self, before: datetime) -> None:
        """Remove the long texts of the events of all runs that were stored before a time."""
        await self._store.forget_texts(before)

    async def add_request(
        self, request: Request, *, check: Callable[[Sequence[Request]], None] | None = None
    ) -> Request:
        """Append a request to a run, until the owner of the run takes it.

        The first request of a name counts, and is returned. Before one is appended, `check` is
        given those that nobody has taken, and may refuse it by an error.
        """
        value = request.model_dump(mode="json", exclude={"run_id"})
        row = NewRow(f"{REQUEST}{request.name}", "request", value)

        def work(rows: Rows) -> Request:
            if rows.has(row.key):
                return Request(run_id=request.run_id, **rows.value(row.key))
            if check is not None:
                check([Request(run_id=request.run_id, **value) for value in _untaken(rows)])
            rows.append(row)
            return request

        return await self._write(request.run_id, work)

    async def requests(self, run_ids: Collection[str], *, taken: bool = False) -> Sequence[Request]:
        """The requests to these runs that no process has taken, in their order.

        With `taken`, all that was ever asked.
        """

        def work(rows: Rows) -> list[Any]:
            return [value for _, value in rows.below(REQUEST)] if taken else _untaken(rows)

        values_by_run = await self._store.read(run_ids, work)
        requests = [
            Request(run_id=name, **value)
            for name, values in values_by_run.items()
            for value in values
        ]
        return in_order(requests)

    async def request(self, run_id: str, name: str) -> Request | None:
        """The request of a name to a run, taken or not; None if there is none."""

        def work(rows: Rows) -> Request | None:
            key = f"{REQUEST}{name}"
            return Request(run_id=run_id, **rows.value(key)) if rows.has(key) else None

        return await self._read(run_id, work)

    async def is_taken(self, run_id: str, name: str) -> bool:
        """Whether the request of a name was handled, or came too late."""
        return await self._read(run_id, lambda rows: rows.has(f"{TAKEN}{name}"))

    async def take_requests(self, requests: Collection[Request], at: datetime) -> None:
        """Mark requests as taken: they were handled, or came too late."""
        for run_id in dict.fromkeys(request.run_id for request in requests):
            names = [request.name for request in requests if request.run_id == run_id]
            new = [NewRow(f"{TAKEN}{name}", "request_taken", _text_of(at)) for name in names]

            def append(rows: Rows, new: Sequence[NewRow] = new) -> None:
                for row in new:
                    rows.append(row)

            await self._write(run_id, append)

    async def _write(self, run_id: str, work: Callable[[Rows], T]) -> T:
        """Run a transaction that appends rows without events."""
        if run_id not in self._queues:
            return await self._store.write(run_id, work)
        return await self._announce(run_id, None, lambda rows, _: work(rows))

    async def _announce(
        self, run_id: str, announced: Announcement | None, work: Callable[[Rows, Append], T]
    ) -> T:
        """Run a transaction that appends a row which may have an event, behind those so far."""
        queue = self._queues.get(run_id)
        if queue is None or not queue.is_here:
            return await self._publish(run_id, announced, work)

        async def whole() -> T:
            async with queue.before(announced) as batch:
                return await self._store.write(run_id, lambda rows: batch.write(rows, work))

        # What is written is published, too.
        return await uninterrupted(whole())

    async def _publish(
        self, run_id: str, announced: Announcement | None, work: Callable[[Rows, Append], T]
    ) -> T:
        """Run a transaction; its event, which nobody numbers, is published if the row is new."""
        is_new = False

        def append(rows: Rows, row: NewRow) -> bool:
            nonlocal is_new
            is_new = rows.append(
                row if announced is None else row._replace(kind=announced.event.type)
            )
            return is_new

        done = await self._store.write(run_id, lambda rows: work(rows, append))
        if announced is not None and is_new:
            announced.publish(announced.event)
        return done

    async def _read(self, run_id: str, work: Callable[[Rows], T]) -> T:
        return (await self._store.read([run_id], work))[run_id]


def append_events(
    rows: Rows, events: Sequence[JsonValue], texts: Sequence[KeptText], batch: str
) -> int:
    """Append events with their long texts, and return the number of the first one.

    Args:
        rows: The rows of their run.
        events: The events, in their order.
        texts: Their long texts.
        batch: What tells them from others; the same again are appended once.
    """
    newest = rows.newest_event()
    if events and rows.has(f"{EVENT}{batch}/0"):
        # The connection broke after the commit and before its receipt.
        return newest - len(events) + 1
    for text in texts:
        rows.keep_text(*text)
    for place, event in enumerate(events):
        row = NewRow(f"{EVENT}{batch}/{place}", type_of(event), event=event)
        rows.append(row, newest + 1 + place)
    return newest + 1


NO_TOTALS: Totals = (NOTHING, NOTHING)


def _ledger(rows: Rows) -> Sequence[LedgerEntry]:
    """The attempts of a run, in the order in which they began."""
    begun = [restored(LedgerEntry, value) for _, value in rows.below(ATTEMPT)]
    merged = {(entry.key, entry.number): entry for entry in begun}
    for _, value in rows.below(END):
        end = restored(LedgerEntry, value)
        recorded = merged.setdefault((end.key, end.number), end)
        if recorded.outcome in UNKNOWN_ENDS:
            merged[end.key, end.number] = end.replace(started_at=recorded.started_at)
    return [*merged.values()]


def _results(rows: Rows) -> Mapping[str, SpecialistResult]:
    return {
        key.removeprefix(RESULT): restored(SpecialistResult, value)
        for key, value in rows.below(RESULT)
    }


def _untaken(rows: Rows) -> list[Any]:
    """The requests that no process has taken, in their order."""
    asked = (value for _, value in rows.below(REQUEST))
    return [value for value in asked if not rows.has(f"{TAKEN}{value['name']}")]


def _notes(rows: Rows) -> Sequence[tuple[str, JsonValue]]:
    """The values that were appended by name, in their order."""
    return [pair for pair in rows.below("") if not pair[0].startswith(_FAMILIES)]


def _key_of(family: str, attempt: Attempt) -> str:
    return f"{family}{attempt.key}/{attempt.number}"


def _end(attempt: Attempt, outcome: AttemptOutcome, at: datetime, error: str) -> NewRow:
    """The row of the end of an attempt; one with an unknown outcome may be followed by another."""
    key = _key_of(END, attempt)
    if outcome in UNKNOWN_ENDS:
        key += f"/{_text_of(at)}"

    def written() -> JsonValue:
        entry = LedgerEntry(**vars(attempt), outcome=outcome, ended_at=at, error=error)
        return entry.model_dump(mode="json", exclude_defaults=True)

    return NewRow(key, "attempt_ended", written)


def _result(key: str, result: SpecialistResult) -> NewRow:
    def written() -> JsonValue:
        value = result_as_json(result, is_short=True)
        # It is the key of this row.
        value.pop("log_key", None)
        return value

    return NewRow(f"{RESULT}{key}", "specialist_completed", written)


def _imported(run_id: str, rows: RunRows, at: datetime, *, waits: bool) -> Iterable[NewRow]:
    timed = list[tuple[datetime, NewRow]]()
    for each in rows.attempts:
        entry = each.replace(run_id=run_id)
        attempt = Attempt(**{name: getattr(entry, name) for name in Attempt.model_fields})
        value, about = attempt.model_dump(mode="json"), _about(entry)
        key = entry.idempotency_key
        begun = SpecialistInvoked(**about, at=entry.started_at, task="", idempotency_key=key)
        row = NewRow(_key_of(ATTEMPT, attempt), begun.type, value, entry_of(begun))
        timed.append((entry.started_at, row))
        if each.ended_at is not None:
            ended = AttemptEnded(**about, at=each.ended_at, outcome=each.outcome, error=each.error)
            row = _end(attempt, each.outcome, each.ended_at, each.error)
            timed.append((each.ended_at, row._replace(event=entry_of(ended))))
    # Attempts may have been at work side by side.
    yield from (row for _, row in sorted(timed, key=lambda pair: pair[0]))
    ends = (entry.ended_at or entry.started_at for entry in rows.attempts)
    reason = "waiting" if waits else "interrupted"
    rests = RunStopped(run_id=run_id, at=max(ends, default=at), reason=reason, is_imported=True)
    yield NewRow(f"{EVENT}adopted", rests.type, event=entry_of(rests))
    for key, result in rows.results.items():
        yield _result(key, result)
    for key, value in rows.notes:
        yield NewRow(key, key.partition("/")[0], value)


def _about(entry: LedgerEntry) -> dict[str, Any]:
    """The fields of the events of an attempt that say which one it is."""
    where = {"run_id": entry.run_id, "step_id": entry.step_id, "specialist": entry.specialist}
    return {**where, "attempt": entry.number}


def type_of(event: JsonValue) -> str:
    """What an event tells."""
    kind = event.get("type") if isinstance(event, dict) else None
    return kind if isinstance(kind, str) else "event"


def _text_of(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds")
