"""How the calls of one node or attempt wait: for room, and for the loop of their run.

Calls are made on the loop of the run, on other loops and in threads. The log belongs to the
loop of the run.
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

from replan.log.amounts import Spending
from replan.spending.account import Account, CrowdedOutError, Waiter
from replan.spending.deadline import Stopwatch
from replan.spending.fitting import Ask, Permit

PATIENCE = 5.0
"""Seconds that a loop may be blocked before code elsewhere stops waiting for its calls."""

MOMENT = 0.1  # seconds that the loop may be blocked before a call is made without its record
TICK = 0.05  # seconds between two checks of loops that are waited for

Write = Callable[[], Coroutine[Any, Any, None]]


LOOK = 0.2  # seconds between two reads of what other processes spent, while a call waits
STANDSTILL = 600.0  # seconds that a call waits for other processes while none of their calls ends


@dataclass(eq=False)
class Line:
    """The calls of one meter: those that wait, and those that are made on other loops."""

    account: Account
    home: "HomeLoop"
    # How long calls have waited for room that others hold.
    clock: Stopwatch = field(default_factory=Stopwatch)
    is_own: bool = False  # whether calls of its own are in progress: it then also waits for itself
    # The waiting calls, and since when.
    since: dict[Waiter, float] = field(default_factory=dict[Waiter, float])
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _closed: Exception | None = None
    _looking: asyncio.Task[None] | None = None

    @property
    def stuck(self) -> float:
        """Seconds that a call waits while no call of the run ends."""
        with self._guard:
            since = min(self.since.values(), default=time.monotonic())
        return time.monotonic() - max(since, self.account.moved)

    def close(self, error: Exception) -> None:
        """End all waiting, on every loop and thread."""
        with self._guard:
            self._closed = error
        self._dismiss_all(error)

    async def at_rest(self) -> None:
        """Wait on the loop of the run until the checks have stopped; it is closed."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait({self._looking})

    async def take_elsewhere(self, ask: Ask) -> Permit:
        """Reserve a call on another loop than that of the run."""
        while True:
            if self.account.is_shared:
                await self.home.await_elsewhere(self.home.write(self.account.refresh))
            permit = await self._room_elsewhere(ask)
            with suppress(CrowdedOutError):
                await self.home.await_elsewhere(self._record_soon(permit))
                return permit

    def take_now(self, ask: Ask) -> Permit:
        """Reserve a call in a thread, or on the loop of the run while it is blocked."""
        if self.home.is_here:
            permit = self._room_now(ask)
            self._record_soon(permit)
            return permit
        while True:
            if self.account.is_shared:
                self.home.await_in_thread(self.home.write(self.account.refresh))
            permit = self._room_now(ask)
            with suppress(CrowdedOutError):
                self.home.await_in_thread(self._record_soon(permit))
                return permit

    def _record_soon(self, permit: Permit) -> Future[None]:
        try:
            return self.home.write(lambda: self.account.record(permit))
        except RuntimeError:
            self.account.give_up(permit)
            raise

    async def settle(
        self, permit: Permit, used: Spending, counted: tuple[int, int] | None = None
    ) -> None:
        if asyncio.get_running_loop() is self.home.loop:
            await self.account.settle(permit, used, counted)
        else:
            self.settle_now(permit, used, counted)

    def settle_now(
        self, permit: Permit, used: Spending, counted: tuple[int, int] | None = None
    ) -> None:
        self.account.settle_now(permit, used, counted)
        self.home.write(lambda: self.account.record_settled(permit, used))

    async def _room_elsewhere(self, ask: Ask) -> Permit:
        """Wait for room on another loop than that of the run."""
        asked = self.account.ask(ask)
        if isinstance(asked, Permit):
            return asked
        with self.account.in_line(asked), self.waiting_of(asked):
            await done_in_loop(asked.turn, self._hopeless_check(asked))
            return self.account.permit_of(asked)

    def _room_now(self, ask: Ask) -> Permit:
        asked = self.account.ask(ask)
        if isinstance(asked, Permit):
            return asked
        with self.account.in_line(asked), self.waiting_of(asked):
            # If a loop runs here, it is blocked, and so are the calls that are awaited there.
            if running_loop() is None:
                done_in_thread(asked.turn, self._hopeless_check(asked))
            return self.account.permit_of(asked)

    @contextmanager
    def waiting_of(self, waiter: Waiter) -> Generator[None]:
        with self._guard:
            self.since[waiter] = time.monotonic()
        if self._closed is not None:
            self.account.dismiss(waiter, self._closed)
        if self.account.is_shared:
            with suppress(RuntimeError):  # it is closed: this code was abandoned
                self.home.loop.call_soon_threadsafe(self._look)
        try:
            with nullcontext() if self.is_own else self.clock.running():
                yield
        finally:
            with self._guard:
                del self.since[waiter]

    def _look(self) -> None:
        """Check from now on, on the loop of the run, until no call waits."""
        if self._closed is None and (self._looking is None or self._looking.done()):
            self._looking = asyncio.ensure_future(self._run_looks())

    async def _run_looks(self) -> None:
        while self.since:
            await asyncio.sleep(LOOK)
            try:
                await self.account.refresh(since=LOOK / 2)
            except Exception as error:  # noqa: BLE001 - whoever waits raises it
                self._dismiss_all(error)
            if self.stuck > STANDSTILL:
                self._dismiss_all(None)

    def _dismiss_all(self, error: Exception | None) -> None:
        """End all waiting; without an error, each call is refused by its own limit."""
        with self._guard:
            waiting = list(self.since)
        for waiter in waiting:
            self.account.dismiss(waiter, error or waiter.error)

    def _hopeless_check(self, waiter: Waiter) -> Callable[[], bool]:
        """Whether all loops that could make room for a call are blocked themselves."""
        pulses: dict[AbstractEventLoop, Pulse] = {}

        def is_blocked(loop: AbstractEventLoop | None) -> bool:
            if loop is None:
                return False
            return pulses.setdefault(loop, Pulse(loop)).stands_for(PATIENCE)

        def is_hopeless() -> bool:
            blocked = [is_blocked(loop) for loop in self.account.awaited(waiter)]
            return bool(blocked) and all(blocked)

        return is_hopeless


@dataclass(eq=False)
class HomeLoop:
    """The loop of a run, which writes records of other threads and loops in their order."""

    loop: AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _in_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _left: set[Future[None]] = field(default_factory=set[Future[None]])

    @property
    def is_here(self) -> bool:
        return running_loop() is self.loop

    def write(self, write: Write) -> Future[None]:
        """Write soon; raises RuntimeError on a closed loop: this code was abandoned."""
        going = self._write_in_turn(write)
        try:
            future = asyncio.run_coroutine_threadsafe(going, self.loop)
        except RuntimeError:
            going.close()
            raise
        self._left.add(future)
        future.add_done_callback(self._forget)
        return future

    def await_in_thread(self, written: Future[None]) -> None:
        """Block this thread until something is written, unless the loop is blocked."""
        pulse = Pulse(self.loop)
        if done_in_thread(written, lambda: pulse.stands_for(MOMENT)):
            self._result_of(written)

    async def await_elsewhere(self, written: Future[None]) -> None:
        """Wait on another loop until something is written, unless the loop is blocked."""
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
        """Keep only unreported failures to write."""
        if not written.cancelled() and written.exception() is None:
            self._left.discard(written)

    async def _write_in_turn(self, write: Write) -> None:
        async with self._in_turn:
            await write()


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


@dataclass(eq=False)
class Pulse:
    """Whether an event loop is running its callbacks, seen from elsewhere."""

    _loop: AbstractEventLoop
    _has_turned: bool = True
    _asked: float = 0.0

    def stands_for(self, seconds: float) -> bool:
        """Whether the loop has been blocked for this long; to be called repeatedly."""
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
    """Block this thread until something is done, or cannot be; return whether it is done."""
    while not future.done():
        if is_hopeless():
            return False
        futures.wait({future}, TICK)
    return True


async def done_in_loop(future: futures.Future[Any], is_hopeless: Callable[[], bool]) -> bool:
    """Wait in this loop until something in another one is done, or cannot be."""
    done, loop = asyncio.Event(), asyncio.get_running_loop()

    def tell(_: object) -> None:
        # The loop may be closed: its waiting code was abandoned.
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
