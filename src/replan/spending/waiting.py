"""Where the calls of one node or attempt wait: for room, and for the loop of their run.

Calls are made on the loop of the run, on others and in threads. Only on the first is the journal.
"""

import asyncio
import math
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine, Generator
from concurrent import futures
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from replan.spending.account import Account, Waiter
from replan.spending.deadline import Stopwatch
from replan.spending.fitting import Ask, Permit

PATIENCE = 5.0
"""Seconds for which a loop may stand still before code elsewhere waits for none of its calls."""

MOMENT = 0.1
"""Seconds for which the loop may stand still before a call is made that is not yet on record."""

TICK = 0.05
"""Seconds between two looks at loops that are waited for."""

Write = Callable[[], Coroutine[Any, Any, None]]


LOOK = 0.2
"""Seconds between two looks at what other processes spent, while somebody waits for them."""

STANDSTILL = 600.0
"""Seconds for which somebody waits for other processes although none of their calls ends."""


@dataclass(eq=False)
class Line:
    """Those who wait for room."""

    account: Account
    home: "HomeLoop"
    # How long somebody has waited for room that others hold.
    clock: Stopwatch = field(default_factory=Stopwatch)
    is_own: bool = False  # whether calls of its own are on their way: it waits for itself, too
    # Who waits, and since when.
    since: dict[Waiter, float] = field(default_factory=dict[Waiter, float])
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _closed: Exception | None = None
    _looking: asyncio.Task[None] | None = None

    @property
    def stuck(self) -> float:
        """Seconds for which somebody waits while no call of the run comes to its end."""
        with self._guard:
            since = min(self.since.values(), default=time.monotonic())
        return time.monotonic() - max(since, self.account.moved)

    def close(self, error: Exception) -> None:
        """Let nobody wait any longer, wherever it does."""
        with self._guard:
            self._closed = error
        self._dismiss_all(error)

    async def at_rest(self) -> None:
        """Wait on the loop of the run until it looks no more; it is closed."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})

    async def room_elsewhere(self, ask: Ask) -> Permit:
        """Wait for room on another loop than that of the run."""
        asked = self.account.ask(ask)
        if isinstance(asked, Permit):
            return asked
        with self.account.in_line(asked), self.waiting_of(asked):
            await done_in_loop(asked.turn, self._hopelessness_of(asked))
            return self.account.turn_of(asked)

    def room_now(self, ask: Ask) -> Permit:
        """Wait for room in a thread."""
        asked = self.account.ask(ask)
        if isinstance(asked, Permit):
            return asked
        with self.account.in_line(asked), self.waiting_of(asked):
            # Where a loop runs, it stands still, and with it the calls that are awaited there.
            if running_loop() is None:
                done_in_thread(asked.turn, self._hopelessness_of(asked))
            return self.account.turn_of(asked)

    @contextmanager
    def waiting_of(self, waiter: Waiter) -> Generator[None]:
        with self._guard:
            self.since[waiter] = time.monotonic()
        if self._closed is not None:
            self.account.dismiss(waiter, self._closed)
        if self.account.is_shared:
            with suppress(RuntimeError):  # it is closed: this code was given up
                self.home.loop.call_soon_threadsafe(self._look)
        try:
            with nullcontext() if self.is_own else self.clock.running():
                yield
        finally:
            with self._guard:
                del self.since[waiter]

    def _look(self) -> None:
        """Look from now on, on the loop of the run, until nobody waits any more."""
        if self._closed is None and (self._looking is None or self._looking.done()):
            self._looking = asyncio.ensure_future(self._looked())

    async def _looked(self) -> None:
        while self.since:
            await asyncio.sleep(LOOK)
            try:
                await self.account.refresh(since=LOOK / 2)
            except Exception as error:  # noqa: BLE001 - whoever waits raises it
                self._dismiss_all(error)
            if self.stuck > STANDSTILL:
                self._dismiss_all(None)

    def _dismiss_all(self, error: Exception | None) -> None:
        """Let nobody wait any longer; without an error, each is refused by its own limit."""
        with self._guard:
            waiting = list(self.since)
        for waiter in waiting:
            self.account.dismiss(waiter, error or waiter.error)

    def _hopelessness_of(self, waiter: Waiter) -> Callable[[], bool]:
        """Whether all who could make room for somebody stand still themselves."""
        pulses: dict[AbstractEventLoop, Pulse] = {}

        def stands(loop: AbstractEventLoop | None) -> bool:
            if loop is None:
                return False
            return pulses.setdefault(loop, Pulse(loop)).stands_for(PATIENCE)

        def is_hopeless() -> bool:
            standing = [stands(loop) for loop in self.account.awaited(waiter)]
            return bool(standing) and all(standing)

        return is_hopeless


@dataclass(eq=False)
class HomeLoop:
    """The loop of a run: what is made elsewhere is written there, in order, as soon as it turns."""

    loop: AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _in_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _left: set[Future[None]] = field(default_factory=set[Future[None]])

    @property
    def is_here(self) -> bool:
        return running_loop() is self.loop

    def write(self, write: Write) -> Future[None]:
        """Write soon; a closed loop raises a RuntimeError: this code was given up."""
        going = self._written(write)
        try:
            future = asyncio.run_coroutine_threadsafe(going, self.loop)
        except RuntimeError:
            going.close()
            raise
        self._left.add(future)
        future.add_done_callback(self._forget)
        return future

    def await_in_thread(self, written: Future[None]) -> None:
        """Block this thread until something is written, unless the loop stands still."""
        pulse = Pulse(self.loop)
        if done_in_thread(written, lambda: pulse.stands_for(MOMENT)):
            self._result_of(written)

    async def await_elsewhere(self, written: Future[None]) -> None:
        """Wait on another loop until something is written, unless this one stands still."""
        pulse = Pulse(self.loop)
        if await done_in_loop(written, lambda: pulse.stands_for(MOMENT)):
            self._result_of(written)

    async def at_rest(self) -> None:
        """Wait on the loop until all is written."""
        while self._left:
            await asyncio.wrap_future(self._left.pop())

    def _result_of(self, written: Future[None]) -> None:
        self._left.discard(written)
        written.result()

    def _forget(self, written: Future[None]) -> None:
        """Keep only what nobody was told of: that it could not be written."""
        if not written.cancelled() and written.exception() is None:
            self._left.discard(written)

    async def _written(self, write: Write) -> None:
        async with self._in_turn:
            await write()


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@dataclass(eq=False)
class Pulse:
    """Whether an event loop turns, seen from elsewhere."""

    _loop: AbstractEventLoop
    _has_turned: bool = True
    _asked: float = 0.0

    def stands_for(self, seconds: float) -> bool:
        """Whether the loop has not turned for so long; to be asked again and again."""
        if self._has_turned:
            self._has_turned, self._asked = False, time.monotonic()
            try:
                self._loop.call_soon_threadsafe(self._turn)
            except RuntimeError:
                # It is closed.
                self._asked = -math.inf
        return time.monotonic() - self._asked > seconds

    def _turn(self) -> None:
        self._has_turned = True


def done_in_thread(future: futures.Future[Any], is_hopeless: Callable[[], bool]) -> bool:
    """Block this thread until something is done; tell whether it is, or there is no hope."""
    while not future.done():
        if is_hopeless():
            return False
        futures.wait({future}, TICK)
    return True


async def done_in_loop(future: futures.Future[Any], is_hopeless: Callable[[], bool]) -> bool:
    """Wait in this loop until something of another one is done, or there is no hope."""
    done, loop = asyncio.Event(), asyncio.get_running_loop()

    def tell(_: object) -> None:
        # The loop may be closed: who waited there was given up.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(tell)
    while not future.done():
        if is_hopeless():
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK):
                await done.wait()
    return True
