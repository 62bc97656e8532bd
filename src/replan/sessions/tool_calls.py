"""The calls of tools in one turn, from the events of its run."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, cast

from replan.events.types import Event, ToolCompleted, ToolInvoked
from replan.log.run_log import RunLog
from replan.state.session.context import ToolExecution
from replan.values import restored

_KINDS: dict[str, type[Any]] = {"tool_invoked": ToolInvoked, "tool_completed": ToolCompleted}

_Place = tuple[str, int | None, str, int | None, str]


class ToolCalls:
    """Receives the events of a run, and collects the completed tool calls."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._began: dict[_Place, datetime] = {}
        self._over: list[ToolExecution] = []

    @property
    def over(self) -> tuple[ToolExecution, ...]:
        """The calls, in the order in which they ended."""
        return tuple(self._over)

    def take(self, event: Event) -> None:
        """Take an event; a call that waits for a person does not count yet: it is made again."""
        if isinstance(event, ToolInvoked):
            self._began[_place(event)] = event.at or self._clock()
        elif isinstance(event, ToolCompleted):
            began = self._began.pop(_place(event), None)
            ended = event.at or self._clock()
            if event.status != "waiting":
                self._over.append(_execution(event, began, ended))


async def calls_on_record(
    log: RunLog, run_id: str, since: datetime | None
) -> Sequence[ToolInvoked | ToolCompleted]:
    """The events of the calls of tools that a run has on record since a time."""
    kept = [dict(cast("Any", each.event)) for each in await log.events(run_id)]
    found = [await _whole(log, run_id, each) for each in kept if each.get("type") in _KINDS]
    return [each for each in found if since is None or (each.at is not None and each.at >= since)]


async def _whole(log: RunLog, run_id: str, fields: dict[str, Any]) -> ToolInvoked | ToolCompleted:
    """An event as it was before its long texts were put next to it."""
    for name in ("result", "arguments"):
        ref = fields.pop(f"{name}_ref", None)
        text = None if ref is None else await log.text(run_id, ref)
        if text is not None:
            fields[name] = text if name == "result" else json.loads(text)
    return restored(_KINDS[fields["type"]], {**fields, "run_id": run_id})


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
