"""The event loop of a run, for its calls that are made elsewhere: only there is its journal."""

import asyncio
import math
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine
from concurrent import futures
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

MOMENT = 0.1
"""Seconds for which the loop may stand still before a call is made that is not yet on record."""

Write = Callable[[], Coroutine[Any, Any, None]]


class HomeLoop:
    """Writes in the order of the calls, as soon as the loop turns."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._in_turn = asyncio.Lock()
        self._left: set[Future[None]] = set()
        self._pulse = Pulse(self._loop)

    @property
    def is_here(self) -> bool:
        """Whether this code runs on the loop."""
        return running_loop() is self._loop

    def write(self, write: Write) -> Future[None]:
        """Write soon.

        Raises:
            RuntimeError: The loop is closed: this code was given up.
        """
        going = self._written(write)
        try:
            future = asyncio.run_coroutine_threadsafe(going, self._loop)
        except RuntimeError:
            going.close()
            raise
        self._left.add(future)
        future.add_done_callback(self._forget)
        return future

    def await_in_thread(self, written: Future[None]) -> None:
        """Block this thread until something is written, unless the loop stands still.

        Raises:
            Exception: It could not be written.
        """
        if done_in_thread(written, lambda: self._pulse.stands_for(MOMENT)):
            self._result_of(written)

    async def await_elsewhere(self, written: Future[None]) -> None:
        """Wait on another loop until something is written, unless this one stands still.

        Raises:
            Exception: It could not be written.
        """
        if await done_in_loop(written, lambda: self._pulse.stands_for(MOMENT)):
            self._result_of(written)

    async def at_rest(self) -> None:
        """Wait on the loop until all is written.

        Raises:
            Exception: Something could not be, and nobody was told.
        """
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
    """The event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


TICK = 0.05
"""Seconds between two looks at loops that are waited for."""


class Pulse:
    """Whether an event loop turns, seen from elsewhere."""

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._has_turned = True
        self._asked = 0.0

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
