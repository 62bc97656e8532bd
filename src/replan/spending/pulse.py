"""Waiting for what other event loops do, without ever waiting for one that waits for oneself.

Code without `await` blocks its thread, and with it an event loop. What it starts in other threads
must not wait for this loop, and can see no more than that the loop does not turn.
"""

import asyncio
import math
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from concurrent import futures
from contextlib import suppress
from typing import Any

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
