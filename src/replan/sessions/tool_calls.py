"""The calls of tools in one turn, from the events of its run."""

from collections.abc import Callable
from datetime import datetime

from replan.events.types import Event, ToolCompleted, ToolInvoked
from replan.state.context import ToolExecution

_Place = tuple[str, int | None, str, int | None, str]


class ToolCalls:
    """Takes the events of a run, and keeps the calls of tools that are over."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._began: dict[_Place, datetime] = {}
        self._over: list[ToolExecution] = []

    @property
    def over(self) -> tuple[ToolExecution, ...]:
        """The calls, in the order in which they ended."""
        return tuple(self._over)

    def take(self, event: Event) -> None:
        """Take an event; a call that waits for a person is none yet, it will be made again."""
        if isinstance(event, ToolInvoked):
            self._began[_place(event)] = self._clock()
        elif isinstance(event, ToolCompleted):
            began, ended = self._began.pop(_place(event), None), self._clock()
            if event.status != "waiting":
                self._over.append(_execution(event, began, ended))


def _place(event: ToolInvoked | ToolCompleted) -> _Place:
    return event.node, event.step_id, event.specialist, event.attempt, event.call


def _execution(event: ToolCompleted, began: datetime | None, ended: datetime) -> ToolExecution:
    is_done = event.status == "success"
    return ToolExecution(
        id=event.tool_call_id or event.call,
        tool_name=event.tool,
        arguments=event.arguments,
        result=event.result if is_done else None,
        success=is_done,
        error=None if is_done else event.result or f"The call was {event.status}.",
        started_at=None if began is None else began.isoformat(),
        duration=None if began is None else max(0.0, (ended - began).total_seconds()),
    )
