"""Tells when somebody goes on with a run, and when it comes to rest before its end."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Literal, Self

from replan.events.types import Event, RunResumed, RunStopped
from replan.failures import describe
from replan.runs.event_log import EventLog

_RESTS: dict[str, Literal["waiting", "interrupted"]] = {
    "waiting": "waiting",
    "interrupted": "interrupted",
}


# A run that is over, or waits, and is called once more does nothing; of it nothing is told.
class Rests:
    """The time in which a process works on a run, as a context."""

    def __init__(
        self, log: EventLog, run_id: str, *, goes_on: bool, by: str = "", told: Sequence[Event] = ()
    ) -> None:
        self.resumed_by = by  # who goes on with it, or whose answers it goes on with
        self.stopped_by = ""
        self.outcome = ""  # how it stands at the end
        self._log = log
        self._run_id = run_id
        self._goes_on = goes_on
        self._told = told  # what was done to the run before somebody works on it
        self._round: int | None = None
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds of work so far."""
        return time.monotonic() - self._began

    def take(self, event: Event) -> None:
        """Take an event of the run; before the first one it is told that it goes on."""
        told = self._told if self._round is None else ()
        if self._round is None and self._goes_on:
            self._log.take(RunResumed(run_id=self._run_id, round=event.round, by=self.resumed_by))
        self._round = event.round
        # A new run has begun before anything can be told of it.
        for each in (*told, event) if self._goes_on else (event, *told):
            self._log.take(each)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        failed = isinstance(error, Exception)
        why = "failed" if failed else _RESTS.get("interrupted" if error else self.outcome)
        if why is None or self._round is None:
            return
        self._log.take(
            RunStopped(
                run_id=self._run_id,
                round=self._round,
                why=why,
                by=self.stopped_by if why == "interrupted" else "",
                error=describe(error) if failed else "",
                seconds=round(self.seconds, 3),
            )
        )
