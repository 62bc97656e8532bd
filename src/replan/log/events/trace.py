"""A trace learns immediately what happens in a call of a graph, in its context."""

from collections.abc import Mapping
from typing import Protocol

from replan.log.events.types import BaseEvent


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
