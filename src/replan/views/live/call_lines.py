"""What a step does now, and did, in a line: the calls of its models and tools."""

import json
from collections.abc import Mapping

from pydantic import JsonValue

from replan.events.types import CallEvent, ModelCompleted, ModelInvoked, ToolCompleted, ToolInvoked
from replan.views.cells import counted, cut, one_line

_LONGEST_VALUE, _LONGEST = 60, 200


def call_begun_text(event: ModelInvoked | ToolInvoked) -> str:
    """What is done from the beginning of a call to its end."""
    if isinstance(event, ModelInvoked):
        return f"asks model {one_line(event.model)}"
    return f"calls {call_text(event.tool, event.arguments)}"


def call_text(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """A call of a tool as it would be written, such as `price(item="x")`."""
    given = ", ".join(f"{name}={_value(value)}" for name, value in arguments.items())
    return cut(one_line(f"{tool}({given})"), _LONGEST)


def call_line(event: CallEvent) -> str:
    """The line of a call, for `--verbose`."""
    who = f"step {event.step_id} {event.specialist}" if event.step_id else event.node
    attempt = f" (attempt {event.attempt})" if event.attempt and event.attempt > 1 else ""
    return f"{one_line(who)}{attempt} {_event_text(event)}"


def _event_text(event: CallEvent) -> str:
    match event:
        case ModelInvoked() | ToolInvoked():
            return call_begun_text(event)
        case ModelCompleted(error=error) if error:
            return f"got no answer from {one_line(event.model)}: {one_line(error)}"
        case ModelCompleted():
            tokens = (event.input_tokens or 0) + (event.output_tokens or 0)
            used = f", {counted(tokens, 'token')}" if tokens else ""
            return f"is answered by {one_line(event.model)} ({event.seconds:.1f} s{used})"
        case ToolCompleted():
            result = f": {cut(one_line(event.result), _LONGEST)}" if event.result else ""
            return f"has called {one_line(event.tool)}, {event.status}{result}"
        case _:
            return ""


def _value(value: JsonValue) -> str:
    return cut(json.dumps(value, ensure_ascii=False), _LONGEST_VALUE)
