"""A clock that runs while somebody is at work; work at the same time counts once."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

PRECISION = 0.01
"""The part of the time by which what is on record may be behind."""

LEAST_PRECISION = 1.0
"""Seconds by which it may be behind in any case."""


class Stopwatch:
    """Seconds of work, those of earlier processes included."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since = 0.0
        self._at_work = 0
        self._marked = 0.0
        self._guard = threading.Lock()

    @property
    def seconds(self) -> float:
        """The seconds so far."""
        return self._before + (time.monotonic() - self._since if self._at_work else 0.0)

    @property
    def is_running(self) -> bool:
        """Whether somebody is at work."""
        return self._at_work > 0

    @property
    def is_due(self) -> bool:
        """Whether enough has passed since the last mark that it should be on record."""
        return self.seconds - self._marked >= max(LEAST_PRECISION, PRECISION * self._marked)

    @contextmanager
    def running(self) -> Generator[None]:
        """Let it run."""
        with self._guard:
            if not self._at_work:
                self._since = time.monotonic()
            self._at_work += 1
        try:
            yield
        finally:
            with self._guard:
                if self._at_work == 1:
                    self._before = self.seconds
                self._at_work -= 1

    def begin_at(self, seconds: float) -> None:
        """Go on from what is on record."""
        self._before = self._marked = max(self._before, seconds)

    def mark(self) -> float:
        """Give the seconds so far, to be put on record."""
        self._marked = self.seconds
        return self._marked
