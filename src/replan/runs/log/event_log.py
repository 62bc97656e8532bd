"""The events of a run: numbered when appended, stored with the run, and reported from there."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, cast

from pydantic import JsonValue

from replan.errors import StorageError
from replan.events.types import (
    AnswerToken,
    Event,
    SpecialistToken,
    TaskCompleted,
)
from replan.ports.run_book import LoggedEvent, RunBook
from replan.runs.log.durations import Durations
from replan.runs.log.recorded import EventTexts, recorded
from replan.runs.log.remarks import RunCounts
from replan.runs.log.run_event import RunEvent, event_in

GATHERED = 0.1  # seconds in which events are gathered before they are written

Heard = Callable[[Event], None]  # receives the events of a run as they are, once they are on record


def run_event(run_id: str, logged: LoggedEvent) -> RunEvent:
    return event_in(run_id, logged.seq, cast("Mapping[str, Any]", logged.event))


def followed_event(event: Event) -> RunEvent:
    """Return an event in the form for those who follow its run."""
    if event.seq is None or event.at is None:
        return _unnumbered(event)
    entry = recorded(event, event.at)
    return run_event(event.run_id, LoggedEvent(seq=event.seq, event=entry))


class EventLog:
    """Writes events in the background, in their order and in batches, so that no run waits."""

    def __init__(
        self,
        book: RunBook,
        run_id: str,
        clock: Callable[[], datetime],
        heard: Sequence[Heard] = (),  # receive the events, with their numbers, once on record
        *,
        keeps_texts: bool = True,
    ) -> None:
        """Prepare; `write` does the work."""
        self._texts = EventTexts() if keeps_texts else None
        self._book = book
        self._run_id = run_id
        self._clock = clock
        self._heard = heard
        self._durations = Durations()
        self._met, self._taken = RunCounts(), 0
        self._left: list[tuple[Event, JsonValue]] = []
        self._news = asyncio.Event()
        # Set by what must not wait: a piece of text for a reader, and the end.
        self._hurry = asyncio.Event()
        self._is_over = self._is_received = False
        self._followers: list[asyncio.Queue[RunEvent | None]] = []

    async def recall(self) -> None:
        """Read how long the run was worked on before."""
        kept = await self._book.events(self._run_id, 0)
        before = [run_event(self._run_id, each) for each in kept]
        self._durations.recall(before)
        self._taken += len(before)
        for event in before:
            self._met.follow(event)

    def worked(self) -> dict[object, float]:
        """The seconds of work on the run so far, and on its open steps."""
        return self._durations.so_far()

    def now(self) -> datetime:
        """The time of an event that is accepted now."""
        return self._clock()

    def take(self, event: Event, at: datetime | None = None) -> None:
        """Take an event that happened now, or before; tokens of texts are reported and not kept."""
        entry: JsonValue = None
        if not isinstance(event, AnswerToken | SpecialistToken):
            now = at or self._clock()
            # To the millisecond, as it is kept.
            at = now.replace(microsecond=now.microsecond // 1000 * 1000)
            event = self._durations.timed(event).replace(at=at)
            entry = self._with_counts(event, recorded(event, at, self._texts))
        self._left.append((event, entry))
        self._news.set()
        if entry is None:
            self._hurry.set()

    def _with_counts(self, event: Event, entry: dict[str, JsonValue]) -> JsonValue:
        """Count what is kept of an event; that of the end has the counts of all."""
        self._taken += 1
        if self._met.counts(event.type):
            self._met.follow(event_in(self._run_id, self._taken, entry))
        is_end = isinstance(event, TaskCompleted)
        return {**entry, "met": self._met.told()} if is_end else entry

    def end(self) -> None:
        """Nothing more comes: `write` ends once everything is written and reported."""
        self._is_over = True
        self._hurry.set()
        self._news.set()

    async def write(self) -> None:
        # More may have come while a batch was on its way.
        while self._left or not self._is_over:
            await self._news.wait()
            await self._gather()
            await self.flush()
        self._is_received = True
        for follower in self._followers:
            follower.put_nowait(None)

    async def _gather(self) -> None:
        """Wait for further events to join the batch, because each batch is a transaction."""
        with suppress(TimeoutError):
            if any(entry is not None for _, entry in self._left):
                await asyncio.wait_for(self._hurry.wait(), GATHERED)

    async def flush(self) -> None:
        """Write and report the remaining events; those that cannot be written remain."""
        self._news.clear()
        if not self._is_over:
            self._hurry.clear()
        batch, self._left = self._left, []
        kept = [entry for _, entry in batch if entry is not None]
        texts = self._texts.take() if self._texts else []
        try:
            seq = await self._book.add_events(self._run_id, kept, texts) if kept else 0
        except StorageError:
            self._left[:0] = batch
            if self._texts:
                self._texts.give_back(texts)
            raise
        for event, entry in batch:
            self._report(event, None if entry is None else LoggedEvent(seq=seq, event=entry))
            seq += entry is not None

    def _report(self, event: Event, logged: LoggedEvent | None) -> None:
        seq = None if logged is None else logged.seq
        for heard in self._heard:
            heard(event.model_copy(update={"seq": seq}))
        if self._followers:
            told = _unnumbered(event) if logged is None else run_event(self._run_id, logged)
            for follower in self._followers:
                follower.put_nowait(told)

    async def follow(self, after: int, *, tokens: bool) -> AsyncGenerator[RunEvent]:
        """Yield the events from a number on, those that come too, until nothing more comes."""
        with self._add_follower() as coming:
            for logged in await self._book.events(self._run_id, after):
                after = logged.seq
                yield run_event(self._run_id, logged)
            while (event := await coming.get()) is not None:
                is_new = tokens if event.seq is None else event.seq > after
                if is_new:
                    yield event

    @contextmanager
    def _add_follower(self) -> Generator[asyncio.Queue[RunEvent | None]]:
        coming: asyncio.Queue[RunEvent | None] = asyncio.Queue()
        self._followers.append(coming)
        if self._is_received:
            coming.put_nowait(None)
        try:
            yield coming
        finally:
            self._followers.remove(coming)


def _unnumbered(event: Event) -> RunEvent:
    fields = event.model_dump(mode="json", exclude={"seq", "at", "run_id", "type", "round"})
    return RunEvent(run_id=event.run_id, type=event.type, round=event.round, details=fields)
