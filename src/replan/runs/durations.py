"""How long a run, its rounds and its steps took, told by the events that end them."""

import time
from collections.abc import Callable
from typing import Any

from replan.events.types import (
    Event,
    FeedbackGenerated,
    SpecialistCompleted,
    SpecialistInvoked,
    TaskCompleted,
)


class Durations:
    """Times the events of a run while this process works on it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = dict[Any, float]()

    def timed(self, event: Event) -> Event:
        """Give an event with the seconds of what it ends."""
        # A step counts from its first attempt, a round and a run from their first event.
        now = self._clock()
        since_run = self._began.setdefault("run", now)
        since_round = self._began.setdefault(event.round, now)
        match event:
            case SpecialistInvoked():
                self._began.setdefault(_step(event), now)
            case SpecialistCompleted(result=result) if _step(event) in self._began:
                # Events may come in a bunch: no step takes less than its newest attempt.
                passed = max(now - self._began.pop(_step(event)), result.duration)
                return event.replace(step_seconds=_rounded(passed))
            case FeedbackGenerated():
                return event.replace(round_seconds=_rounded(now - since_round))
            case TaskCompleted():
                return event.replace(run_seconds=_rounded(now - since_run))
            case _:
                pass
        return event


def _step(event: SpecialistInvoked | SpecialistCompleted) -> tuple[int, str]:
    return event.step_id, event.specialist


def _rounded(seconds: float) -> float:
    return round(seconds, 3)
