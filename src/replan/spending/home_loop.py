"""The event loop of a run, for its calls that are made elsewhere: only there is its journal."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any

from replan.spending.pulse import Pulse, done_in_loop, done_in_thread

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
