"""How long a run, its rounds and its steps took, for the events that end them."""

import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from replan.events.trace import RUN
from replan.events.types import (
    Event,
    FeedbackGenerated,
    RunResumed,
    SpecialistCompleted,
    SpecialistInvoked,
    TaskCompleted,
)

_Step = tuple[int, str]


class Durations:
    """Times the events of a run, over all the parts in which it was worked on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = dict[Any, float]()
        self._before = dict[Any, float]()

    def recall(self, events: Iterable[Event]) -> None:
        """Count the work of earlier parts; time before a part's first event is not work."""
        before, last = self._before, None
        for event in (each for each in events if each.at is not None):
            passed = _seconds_since(last, event)
            for key in before:
                is_past = isinstance(key, int) and key != event.round
                before[key] += 0.0 if is_past else passed
            before.setdefault(RUN, 0.0)
            before.setdefault(event.round, 0.0)
            if isinstance(event, SpecialistInvoked):
                before.setdefault(_step(event), 0.0)
            elif isinstance(event, SpecialistCompleted):
                before.pop(_step(event), None)
            last = event.at

    def so_far(self) -> dict[object, float]:
        """The seconds of the run, and of its open steps and rounds."""
        now = self._clock()
        return {**self._before, **{key: now - began for key, began in self._began.items()}}

    def timed(self, event: Event) -> Event:
        # A step counts from its first attempt, a round and a run from their first event.
        now = self._clock()
        since_run = self._since(RUN, now)
        since_round = self._since(event.round, now)
        match event:
            case SpecialistInvoked():
                self._since(_step(event), now)
            case SpecialistCompleted() if _step(event) in self._began:
                # Events may come in a bunch: no step takes less than its newest attempt.
                passed = max(now - self._began.pop(_step(event)), event.seconds)
                return event.replace(step_seconds=_rounded(passed))
            case FeedbackGenerated():
                return event.replace(round_seconds=_rounded(now - since_round))
            case TaskCompleted():
                return event.replace(run_seconds=_rounded(now - since_run))
            case _:
                pass
        return event

    def _since(self, key: Any, now: float) -> float:
        """When it began, as if it had been worked on without a pause."""
        if key not in self._began:
            self._began[key] = now - self._before.pop(key, 0.0)
        return self._began[key]


def _step(event: SpecialistInvoked | SpecialistCompleted) -> _Step:
    return event.step_id, event.specialist


def _seconds_since(last: datetime | None, event: Event) -> float:
    if last is None or event.at is None or isinstance(event, RunResumed):
        return 0.0
    return max(0.0, (event.at - last).total_seconds())


def _rounded(seconds: float) -> float:
    return round(seconds, 3)
