"""Where the calls of one node or attempt wait for room: on its loop, on others, in threads."""

import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext

from replan.spending.account import Account, Waiter
from replan.spending.home_loop import Pulse, done_in_loop, done_in_thread, running_loop
from replan.spending.permits import Ask, Permit
from replan.spending.stopwatch import Stopwatch

PATIENCE = 5.0
"""Seconds for which a loop may stand still before code elsewhere waits for none of its calls."""


class Line:
    """Those who wait.

    Attributes:
        clock: How long somebody has waited for room that others hold.
        is_own: Whether calls of its own are on their way: it waits for itself, too.
    """

    def __init__(self, account: Account) -> None:
        self.clock = Stopwatch()
        self.is_own = False
        self._account = account
        self._guard = threading.Lock()
        self._since: dict[Waiter, float] = {}
        self._closed: Exception | None = None

    @property
    def stuck(self) -> float:
        """Seconds for which somebody waits while no call of the run comes to its end."""
        if not self._since:
            return 0.0
        with self._guard:
            since = min(self._since.values(), default=time.monotonic())
        return time.monotonic() - max(since, self._account.moved)

    def close(self, error: Exception) -> None:
        """Let nobody wait any longer, wherever it does."""
        with self._guard:
            self._closed = error
            waiting = list(self._since)
        for waiter in waiting:
            self._account.dismiss(waiter, error)

    async def room_elsewhere(self, ask: Ask) -> Permit:
        """Wait for room on another loop than that of the run.

        Raises:
            LimitReachedError: There is none, and who could make some stands still.
        """
        asked = self._account.ask(ask)
        if isinstance(asked, Permit):
            return asked
        with self._account.in_line(asked), self.waiting_of(asked):
            await done_in_loop(asked.turn, self._hopelessness_of(asked))
            return self._account.turn_of(asked)

    def room_now(self, ask: Ask) -> Permit:
        """Wait for room in a thread.

        Raises:
            LimitReachedError: There is none, and this code must not wait, or waits in vain.
        """
        asked = self._account.ask(ask)
        if isinstance(asked, Permit):
            return asked
        with self._account.in_line(asked), self.waiting_of(asked):
            # Where a loop runs, it stands still, and with it the calls that are awaited there.
            if running_loop() is None:
                done_in_thread(asked.turn, self._hopelessness_of(asked))
            return self._account.turn_of(asked)

    @contextmanager
    def waiting_of(self, waiter: Waiter) -> Generator[None]:
        """Let somebody wait."""
        with self._guard:
            self._since[waiter] = time.monotonic()
        if self._closed is not None:
            self._account.dismiss(waiter, self._closed)
        try:
            with nullcontext() if self.is_own else self.clock.running():
                yield
        finally:
            with self._guard:
                del self._since[waiter]

    def _hopelessness_of(self, waiter: Waiter) -> Callable[[], bool]:
        """Whether all who could make room for somebody stand still themselves."""
        pulses: dict[AbstractEventLoop, Pulse] = {}

        def stands(loop: AbstractEventLoop | None) -> bool:
            if loop is None:
                return False
            return pulses.setdefault(loop, Pulse(loop)).stands_for(PATIENCE)

        def is_hopeless() -> bool:
            standing = [stands(loop) for loop in self._account.awaited(waiter)]
            return bool(standing) and all(standing)

        return is_hopeless
