"""Events that are heard where they happen, without LangGraph's stream between.

LangGraph wakes up whoever reads its stream for each event, and gives each node a task to be read
beside. Where nobody but the caller of a run hears its events, they are handed to him directly.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from contextvars import ContextVar
from threading import get_ident
from typing import TypeVar

from replan.events.types import Event

T = TypeVar("T")
V = TypeVar("V")


class Listener:
    """Takes events in the loop that it was made in, from whatever thread, until it is closed."""

    def __init__(self, take: Callable[[Event], None], *, hears_texts: bool) -> None:
        """Prepare.

        Args:
            take: Takes an event at once, and raises nothing.
            hears_texts: Whether it wants the prompts and replies of models.
        """
        self._take: Callable[[Event], None] | None = take
        self.hears_texts = hears_texts
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()

    def __call__(self, event: Event) -> None:
        """Take an event; what is left of a run that is over tells nobody."""
        if self._take is None:
            return
        if get_ident() == self._thread:
            self._take(event)
        else:
            self._loop.call_soon_threadsafe(self, event)

    def close(self) -> None:
        self._take = None


listener_at_work: ContextVar[Listener | None] = ContextVar("replan_listener", default=None)
"""Who hears the events of the run that is worked on here; None: who reads LangGraph's stream."""


async def with_set(
    variable: ContextVar[V], value: V, parts: AsyncGenerator[T]
) -> AsyncGenerator[T]:
    """Give the parts of a stream, with a variable for what works them out; who reads has none."""
    async with aclosing(parts):
        while True:
            token = variable.set(value)
            try:
                part = await anext(parts)
            except StopAsyncIteration:
                return
            finally:
                variable.reset(token)
            yield part
