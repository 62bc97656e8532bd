"""How long a run, its rounds and its steps took, for the events that end them."""

from datetime import datetime
from typing import Any

from replan.log.events.trace import RUN
from replan.log.events.types import (
    Event,
    FeedbackGenerated,
    RunResumed,
    SpecialistCompleted,
    SpecialistInvoked,
    TaskCompleted,
)


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
