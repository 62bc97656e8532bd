"""Events that are heard where they happen, without LangGraph's stream between.

LangGraph wakes up whoever reads its stream for each event, and gives each node a task to be read
beside. Where nobody but the caller of a run hears its events, they are handed to him directly.
"""

import asyncio
from collections.abc import Callable
from threading import get_ident

from replan.log.events.types import Event


class Listener:
    """Takes events in the loop that it was made in, from whatever thread, until it is closed."""

    def __init__(self, take: Callable[[Event], None], *, hears_models: bool) -> None:
        """Prepare.

        Args:
            take: Takes an event at once, and raises nothing.
            hears_models: Whether it wants the calls of models, with their prompts and replies.
        """
        self._take: Callable[[Event], None] | None = take
        self.hears_models = hears_models
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()

    def __call__(self, event: Event) -> None:
        """Take an event; those that come after the end of the run are dropped."""
        if self._take is None:
            return
        if get_ident() == self._thread:
            self._take(event)
        else:
            self._loop.call_soon_threadsafe(self, event)

    def close(self) -> None:
        self._take = None
