"""The events of a run: numbered when appended, stored with the run, and reported from there."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from typing import Any, TypeVar

from pydantic import JsonValue

from replan.base.errors import StorageError
from replan.log.calls import Calls
from replan.log.events.listeners import RUN, Announcement
from replan.log.events.types import (
    AnswerToken,
    Event,
    FeedbackGenerated,
    RunResumed,
    SpecialistCompleted,
    SpecialistInvoked,
    SpecialistToken,
    TaskCompleted,
)
from replan.log.fold import Counts
from replan.log.kept_events import EventTexts, entry_of, event_of, events_of
from replan.log.rows import Append, EventBatch, KeptText, LoggedEvent, NewRow, Rows
from replan.log.run_log import RunLog, append_events, type_of
from replan.ports.ownership import Owner, owner_in


class Durations:
    """The seconds of work on a run, its rounds and its open steps, by the times of its events."""

    def __init__(self) -> None:
        self._worked = dict[Any, float]()
        self._last: datetime | None = None

    def so_far(self, now: datetime) -> dict[object, float]:
        """The seconds of the run, and of its open steps and rounds."""
        since = _seconds_between(self._last, now)
        return {key: seconds + since for key, seconds in self._worked.items()}

    def apply(self, event: Event) -> Event:
        """Take the next event, and return it with the time that took what it ends.

        A step counts from its first attempt, a round and a run from their first event; time in
        which no process works on the run is no work.
        """
        is_work = event.at is not None and not isinstance(event, RunResumed)
        passed = _seconds_between(self._last, event.at) if is_work else 0.0
        for key in self._worked:
            is_past = isinstance(key, int) and key != event.round
            self._worked[key] += 0.0 if is_past else passed
        self._last = event.at or self._last
        since_run = self._worked.setdefault(RUN, 0.0)
        since_round = self._worked.setdefault(event.round, 0.0)
        match event:
            case SpecialistInvoked():
                self._worked.setdefault((event.step_id, event.specialist), 0.0)
            case SpecialistCompleted() if (event.step_id, event.specialist) in self._worked:
                worked = self._worked.pop((event.step_id, event.specialist))
                # Events may come in a bunch: no step takes less than its newest attempt.
                return event.replace(step_seconds=_rounded(max(worked, event.seconds)))
            case FeedbackGenerated():
                return event.replace(round_seconds=_rounded(since_round))
            case TaskCompleted():
                return event.replace(run_seconds=_rounded(since_run))
            case _:
                pass
        return event


def _seconds_between(last: datetime | None, at: datetime | None) -> float:
    return max(0.0, (at - last).total_seconds()) if last and at else 0.0


def _rounded(seconds: float) -> float:
    return round(seconds, 3)


T = TypeVar("T")

GATHERED = 0.1  # seconds in which events are gathered before they are written

# Receives the events of a run as they are, once they are on record.
EventListener = Callable[[Event], None]


class EventLog:
    """Writes events in the background, in their order and in batches, so that no run waits."""

    def __init__(
        self,
        log: RunLog,
        run_id: str,
        clock: Callable[[], datetime],
        listeners: Sequence[EventListener] = (),  # receive the events, once on record
        *,
        keeps_texts: bool = True,
    ) -> None:
        """Prepare; `write` does the work."""
        self._texts = EventTexts() if keeps_texts else None
        self._log = log
        self._run_id = run_id
        self._clock = clock
        self._listeners = listeners
        self._durations = Durations()
        self._counts, self._taken = Counts(), 0
        self._pending: list[tuple[Event, JsonValue]] = []
        self._has_pending = asyncio.Event()
        # Set by what must not wait: a piece of text for a reader, and the end.
        self._write_now = asyncio.Event()
        self.resumed_at: datetime | None = None  # when it was last resumed before this
        self._is_over = self._is_closed = False
        self._followers: list[asyncio.Queue[Event | None]] = []
        # One batch at a time, so that numbers are given in the order of the events.
        self._one_batch = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._owner: Owner | None = None

    def begin(self) -> None:
        """Begin, in the context of whoever owns the thread of the run."""
        self._owner = owner_in(self._log.where)

    async def recall(self) -> None:
        """Read how long the run was worked on before, and when it was last resumed."""
        before = events_of(self._run_id, await self._log.events(self._run_id, 0))
        self._taken += len(before)
        for event in before:
            if isinstance(event, RunResumed):
                self.resumed_at = event.at
            self._durations.apply(event)
            self._counts.apply(event)

    def worked(self) -> dict[object, float]:
        """The seconds of work on the run so far, and on its open steps."""
        return self._durations.so_far(self._clock())

    @property
    def calls(self) -> Calls:
        """What the calls of models took so far."""
        return self._counts.calls

    def now(self) -> datetime:
        """The time of an event that is accepted now."""
        return self._clock()

    def take(self, event: Event, at: datetime | None = None) -> None:
        """Take an event that happened now, or before; tokens of texts are reported and not kept."""
        if event.seq is not None:
            return  # It was written with its row.
        entry: JsonValue = None
        if not isinstance(event, AnswerToken | SpecialistToken):
            event, kept = self._entry(event, at)
            entry = self._with_counts(event, kept)
        self._pending.append((event, entry))
        self._has_pending.set()
        if entry is None:
            self._write_now.set()

    def _entry(
        self, event: Event, at: datetime | None = None
    ) -> tuple[Event, dict[str, JsonValue]]:
        """An event with its time, and what is kept of it."""
        now = at or self._clock()
        # To the millisecond, as it is kept.
        at = now.replace(microsecond=now.microsecond // 1000 * 1000)
        event = self._durations.apply(event.replace(at=at))
        return event, entry_of(event, self._texts)

    @property
    def is_here(self) -> bool:
        """Whether what runs here is the work on the run, in its event loop."""
        is_owner = owner_in(self._log.where) is self._owner
        return is_owner and asyncio.get_running_loop() is self._loop

    @property
    def has_events(self) -> bool:
        """Whether events are not on record yet."""
        return bool(self._pending) or self._one_batch.locked()

    @asynccontextmanager
    async def before(self, announced: Announcement | None) -> AsyncGenerator[EventBatch]:
        """Write the events so far in front of what is written inside, then report all."""
        async with self._one_batch:
            event, entry = (None, None) if announced is None else self._entry(announced.event)
            pending, texts = self._take_pending()
            batch = _Batch([kept for _, kept in pending if kept is not None], texts, entry)
            try:
                yield batch
            except BaseException:
                self._put_back(pending, texts)
                raise
            seq = self._report_all(pending, batch.first)
            if batch.is_appended and announced and event and entry:
                self._with_counts(event, entry)
                numbered = event.model_copy(update={"seq": seq})
                self._report(numbered, LoggedEvent(seq=seq, event=entry))
                announced.publish(numbered)

    def _with_counts(self, event: Event, entry: dict[str, JsonValue]) -> JsonValue:
        """Count what is kept of an event; that of the end has the counts of all."""
        self._taken += 1
        if self._counts.counts(event):
            self._counts.apply(event.model_copy(update={"seq": self._taken}))
        is_end = isinstance(event, TaskCompleted)
        return {**entry, "stats": self._counts.stats} if is_end else entry

    def end(self) -> None:
        """Nothing more comes: `write` ends once everything is written and reported."""
        self._is_over = True
        self._write_now.set()
        self._has_pending.set()

    async def write(self) -> None:
        # More may have come while a batch was on its way.
        while self._pending or not self._is_over:
            await self._has_pending.wait()
            await self._gather()
            await self.flush()

    def close(self) -> None:
        """The run rests, and its record says so: who follows it hears nothing more."""
        self._is_closed = True
        for follower in self._followers:
            follower.put_nowait(None)

    async def _gather(self) -> None:
        """Wait for further events to join the batch, because each batch is a transaction."""
        with suppress(TimeoutError):
            if any(entry is not None for _, entry in self._pending):
                await asyncio.wait_for(self._write_now.wait(), GATHERED)

    async def flush(self) -> None:
        """Write and report the remaining events; those that cannot be written remain."""
        async with self._one_batch:
            self._has_pending.clear()
            if not self._is_over:
                self._write_now.clear()
            pending, texts = self._take_pending()
            entries = [entry for _, entry in pending if entry is not None]
            try:
                seq = await self._log.add_events(self._run_id, entries, texts) if entries else 0
            except StorageError:
                self._put_back(pending, texts)
                raise
            self._report_all(pending, seq)

    def _take_pending(self) -> tuple[list[tuple[Event, JsonValue]], list[KeptText]]:
        """The events that wait, which do so no longer, and their texts."""
        pending, self._pending = self._pending, []
        return pending, self._texts.take() if self._texts else []

    def _put_back(self, pending: list[tuple[Event, JsonValue]], texts: list[KeptText]) -> None:
        """Let events wait that could not be written."""
        self._pending[:0] = pending
        self._has_pending.set()
        if self._texts:
            self._texts.give_back(texts)

    def _report_all(self, pending: list[tuple[Event, JsonValue]], seq: int) -> int:
        """Report events that are written, from a number on, and return the next one."""
        for event, entry in pending:
            self._report(event, None if entry is None else LoggedEvent(seq=seq, event=entry))
            seq += entry is not None
        return seq

    def _report(self, event: Event, logged: LoggedEvent | None) -> None:
        seq = None if logged is None else logged.seq
        for on_event in self._listeners:
            on_event(event.model_copy(update={"seq": seq}))
        if self._followers:
            reported = event if logged is None else event_of(self._run_id, logged)
            for follower in self._followers:
                follower.put_nowait(reported)

    async def follow(self, after: int, *, tokens: bool) -> AsyncGenerator[Event]:
        """Yield the events from a number on, those that come too, until nothing more comes."""
        with self._add_follower() as coming:
            for logged in await self._log.events(self._run_id, after):
                after = logged.seq
                yield event_of(self._run_id, logged)
            while (event := await coming.get()) is not None:
                is_new = tokens if event.seq is None else event.seq > after
                if is_new:
                    yield event

    @contextmanager
    def _add_follower(self) -> Generator[asyncio.Queue[Event | None]]:
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._followers.append(queue)
        if self._is_closed:
            queue.put_nowait(None)
        try:
            yield queue
        finally:
            self._followers.remove(queue)


class _Batch:
    """Events that are written in front of a row with an event of its own."""

    def __init__(
        self, entries: Sequence[JsonValue], texts: Sequence[KeptText], entry: JsonValue
    ) -> None:
        self.first = 0  # the number of the first event
        self.is_appended = False  # whether the row was new
        self._was_appended = False  # whether it was so in an earlier transaction
        self._entries = entries
        self._texts = texts
        self._entry = entry
        self._name = secrets.token_hex(8)

    def write(self, rows: Rows, work: Callable[[Rows, Append], T]) -> T:
        # What an earlier attempt did may have been rolled back.
        self._was_appended = self._was_appended or self.is_appended
        self.is_appended = False
        self.first = append_events(rows, self._entries, self._texts, self._name)
        return work(rows, self._append)

    def _append(self, rows: Rows, row: NewRow) -> bool:
        if self._entry is None:
            return rows.append(row)
        if self._was_appended and rows.has(row.key):
            # The connection broke after the commit and before its receipt.
            self.first -= 1
            self.is_appended = True
            return True
        kind, seq = type_of(self._entry), self.first + len(self._entries)
        self.is_appended = rows.append(row._replace(kind=kind, event=self._entry), seq)
        return self.is_appended
