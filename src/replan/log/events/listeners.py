"""Who hears of events where they happen, or once they are on record: a call, and its trace.

LangGraph wakes up whoever reads its stream for each event, and gives each node a task to be read
beside. Where nobody but the caller of a run hears its events, they are handed to him directly.
"""

import asyncio
from collections.abc import Callable, Mapping
from threading import get_ident
from typing import NamedTuple, Protocol

from replan.log.events.types import BaseEvent, Event


class Announcement(NamedTuple):
    """The public part of a row, and who is told once the row is safe.

    Attributes:
        event: What others see of it.
        publish: Is called with the event, with its number if it has one.
    """

    event: Event
    publish: Callable[[Event], None]


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


class Trace(Protocol):
    """The trace of one call of a graph."""

    @property
    def hears_texts(self) -> bool:
        """Whether it takes prompts and replies of models."""
        ...

    @property
    def tracing(self) -> "Tracing":
        """What made it."""
        ...

    @property
    def ref(self) -> str:
        """What a later call of the same run finds it by."""
        ...

    def take(self, event: BaseEvent) -> None:
        """Take an event, from whatever thread."""
        ...

    def end(self, error: BaseException | None) -> None:
        """The call ended; `error` is the exception that it raised."""
        ...


class Tracing(Protocol):
    """What traces calls of graphs."""

    def begin(
        self, team: str, thread_id: str, earlier: str, worked: Mapping[object, float]
    ) -> Trace:
        """Begin to trace a call.

        Args:
            team: The team.
            thread_id: The thread of the run.
            earlier: The `ref` of the call that it continues with.
            worked: The seconds of work in earlier calls: of the run (`RUN`), and of its open steps
                by id and specialist.
        """
        ...


RUN = "run"
"""The key of the seconds of a run among those of its steps."""
