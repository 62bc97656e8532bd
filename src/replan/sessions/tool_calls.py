"""The calls of tools in one turn, from the events of its run."""

from collections.abc import Callable, Sequence
from datetime import datetime

from replan.log.events.types import Event, ToolCompleted, ToolInvoked
from replan.log.kept_events import events_of, with_whole_texts
from replan.log.run_log import RunLog
from replan.state.session.context import ToolExecution


class CompletedCalls:
    """Receives the events of a run, and collects the completed tool calls."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._began = dict[tuple[object, ...], datetime]()
        self._over: list[ToolExecution] = []

    @property
    def over(self) -> tuple[ToolExecution, ...]:
        """The calls, in the order in which they ended."""
        return tuple(self._over)

    def take(self, event: Event) -> None:
        """Take an event; a call that waits for a person does not count yet: it is made again."""
        if isinstance(event, ToolInvoked):
            self._began[event.call_key] = event.at or self._clock()
        elif isinstance(event, ToolCompleted):
            began = self._began.pop(event.call_key, None)
            if event.status != "waiting":
                self._over.append(_execution(event, began))


async def calls_on_record(
    log: RunLog, run_id: str, since: datetime | None
) -> Sequence[ToolInvoked | ToolCompleted]:
    """The events of the calls of tools that a run has on record since a time."""
    kept = events_of(run_id, await log.events(run_id))
    calls = [event for event in kept if isinstance(event, ToolInvoked | ToolCompleted)]
    new = [call for call in calls if since is None or (call.at is not None and call.at >= since)]
    texts = {ref: await log.text(run_id, ref) for call in new for ref in call.refs.values()}
    kept_texts = {ref: text for ref, text in texts.items() if text is not None}
    return [with_whole_texts(call, kept_texts) for call in new]


def _execution(event: ToolCompleted, began: datetime | None) -> ToolExecution:
    is_done = event.status == "success"
    return ToolExecution(
        id=event.tool_call_id or event.call,
        tool_name=event.tool,
        arguments=event.arguments,
        result=event.result if is_done else None,
        success=is_done,
        error=None if is_done else event.result or f"The call was {event.status}.",
        started_at=None if began is None else began.isoformat(),
        duration=None if began is None else event.seconds,
    )
