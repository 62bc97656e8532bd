"""One place that numbers events and tells everybody: the stream first, then the callbacks."""

import inspect
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from replan.events.callbacks import HOOKS
from replan.events.types import BaseEvent

logger = logging.getLogger(__name__)


@dataclass
class Counter:
    """The number of a run's newest event; the tasks of one round share it."""

    value: int = 0


@dataclass(frozen=True)
class Emitter:
    """Tells of the events of one node.

    Attributes:
        write: LangGraph's stream writer of the node.
        callbacks: Objects with some of the eight hooks.
        run_id: The run.
        round: The round.
        counter: The run's event numbers.
    """

    write: Callable[[BaseEvent], None]
    callbacks: Sequence[object]
    run_id: str
    round: int
    counter: Counter

    async def emit(self, kind: type[BaseEvent], **fields: Any) -> None:
        """Write an event to the stream and call its hook."""
        await self.call(self.stream(kind, **fields))

    def stream(self, kind: type[BaseEvent], **fields: Any) -> BaseEvent:
        """Number an event and write it to the stream, at once."""
        self.counter.value += 1
        event = kind(seq=self.counter.value, run_id=self.run_id, round=self.round, **fields)
        self.write(event)
        return event

    async def call(self, event: BaseEvent) -> None:
        """Call the hook of an event on every callback, in the order of the list."""
        name = HOOKS.get(type(event))
        for callback in self.callbacks if name else ():
            hook = getattr(callback, str(name), None)
            if hook is None:
                continue
            try:
                answer = hook(event)
                if inspect.isawaitable(answer):
                    await answer
            except Exception:  # a callback is foreign code; it must not break a run
                logger.exception("callback failed", extra={"hook": name, "run_id": self.run_id})
