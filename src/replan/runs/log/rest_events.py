"""Reports when a run is continued, and when it comes to rest before its end."""

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Literal, Self

from replan.base.failures import describe
from replan.log.events.emitter import RunHooks
from replan.log.events.listeners import RUN, Announcement
from replan.log.events.types import BaseEvent, Event, RunResumed, RunSteered, RunStopped
from replan.log.rows import EventBatch, Request
from replan.ports.steering import facts_of
from replan.runs.log.event_log import EventLog

_RESTS: dict[str, Literal["waiting", "interrupted"]] = {
    "waiting": "waiting",
    "interrupted": "interrupted",
}


# A run that is over, or waits, and is called again does nothing, so nothing is reported.
class RestEvents:
    """The time in which a process works on a run, as a context.

    The log and the hooks of the team's callbacks learn of its beginning and its end.
    """

    def __init__(
        self,
        log: EventLog,
        hooks: RunHooks,
        run_id: str,
        *,
        goes_on: bool,
        by: str = "",
        prior_events: Sequence[Event] = (),
    ) -> None:
        # What was done to the run before work on it.
        self.prior_events: Sequence[Event] = prior_events
        self.resumed_by = by  # who continues it, or whose answers it continues with
        self.stopped_by = ""
        self.outcome = ""  # its status at the end
        self._log = log
        self._hooks = hooks
        self._run_id = run_id
        self._goes_on = goes_on
        self._round: int | None = None
        self._began = time.monotonic()
        self._since = log.now()

    @property
    def seconds(self) -> float:
        """Seconds of work so far."""
        return time.monotonic() - self._began

    def take(self, event: Event, *, is_announced: bool = False) -> None:
        """Take an event of the run; before the first one, report that the run continues.

        What is announced comes with its row, and only what is reported with it is taken.
        """
        opened = self._opening_events(event) if self._round is None else [event]
        self._round = event.round
        for each in opened:
            if each is not event or not is_announced:
                # Attempts may have begun before the first event of them comes.
                self._log.take(each, self._since if isinstance(each, RunResumed) else None)

    @property
    def has_begun(self) -> bool:
        """Whether anything was reported."""
        return self._round is not None

    def steered(self, request: Request, **fields: Any) -> None:
        """Report what becomes of a request that steers the run, unless nothing has happened yet."""
        if self._round is None:
            return
        about = {**facts_of(request), **fields}
        event = RunSteered(run_id=self._run_id, round=self._round, **about)
        self.take(event)
        self._hooks.queue(event)

    @property
    def is_here(self) -> bool:
        """Whether what runs here is the work on the run, in its event loop."""
        return self._log.is_here

    @property
    def has_events(self) -> bool:
        """Whether events are not on record yet."""
        return self._log.has_events

    @asynccontextmanager
    async def before(self, announced: Announcement | None) -> AsyncGenerator[EventBatch]:
        """Let a row come behind the events so far, which its process opens with that it resumes."""
        if announced is not None and self._round is None:
            self.take(announced.event, is_announced=True)
        async with self._log.before(announced) as batch:
            yield batch

    def _opening_events(self, first: BaseEvent) -> list[Any]:
        """What is reported with the first event, in its order."""
        if not self._goes_on:
            # A new run has begun before anything can be reported about it.
            return [first, *self.prior_events]
        resumed = RunResumed(run_id=self._run_id, round=first.round, by=self.resumed_by)
        return [resumed, *self.prior_events, first]

    async def __aenter__(self) -> Self:
        self._began = time.monotonic()
        self._since = self._log.now()
        self._log.begin()
        self._hooks.open_with(self._opening_events)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        failed = isinstance(error, Exception)
        why = "failed" if failed else _RESTS.get("interrupted" if error else self.outcome)
        if self._round is None and self.prior_events:
            # Nothing was left to do: what a person did to the run happened all the same.
            *self.prior_events, last = self.prior_events
            self._hooks.queue(last)
            self.take(last)
        if self._round is None and why == "interrupted" and not self._goes_on:
            # Without a word of it, its process would count as killed.
            self._round = 0
        if why is None or self._round is None:
            return
        stopped = RunStopped(
            run_id=self._run_id,
            round=self._round,
            reason=why,
            by=self.stopped_by if why == "interrupted" else "",
            error=describe(error) if failed else "",
            seconds=round(self._log.worked().get(RUN, self.seconds), 3),
        )
        self._log.take(stopped)
        self._hooks.queue(stopped)
        if failed or error is None:
            # Who cancels the work does not wait for what others make of it.
            await self._hooks.wait(is_last=True)
