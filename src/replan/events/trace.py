"""A trace learns immediately what happens in a call of a graph, in its context."""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from typing import Protocol, TypeVar

from replan.events.at_once import with_set
from replan.events.types import BaseEvent, StepEvent

T = TypeVar("T")


class AttemptEnded(StepEvent):
    """An attempt of a step ended without a result; the status is that of the log."""

    outcome: str
    error: str = ""


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
        """Take an event, or how an attempt ended; from whatever thread."""
        ...

    def end(self, error: BaseException | None) -> None:
        """The call ended; `error` is the exception that it raised."""
        ...


class Tracing(Protocol):
    """What traces calls of graphs."""

    def begun(
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

worked_before: ContextVar[tuple[str, Callable[[], Mapping[object, float]]] | None] = ContextVar(
    "replan_worked_before", default=None
)
"""A thread, and a function for the seconds of work on its run; None if they are not counted."""

trace_at_work: ContextVar[Trace | None] = ContextVar("replan_trace", default=None)
"""The trace of what happens here; None without tracing."""


async def as_traced(trace: Trace, parts: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """Yield the parts of a call's stream; its work is traced, its reader is not."""
    error: BaseException | None = None
    try:
        async with aclosing(with_set(trace_at_work, trace, parts)) as given:
            async for part in given:
                yield part
    except BaseException as raised:
        error = raised
        raise
    finally:
        trace.end(error)
