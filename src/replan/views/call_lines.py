"""Calls of models and tools in a line, while they are under way and after them."""

from collections.abc import Mapping

from pydantic import JsonValue

from replan.base.values import json_text
from replan.log.events.types import (
    CallEvent,
    ModelCompleted,
    ModelInvoked,
    ToolCompleted,
    ToolInvoked,
)
from replan.views.cells import counted, cut, one_line

_LONGEST_VALUE, _LONGEST = 60, 200


def call_begun_text(event: ModelInvoked | ToolInvoked) -> str:
    """What is done from the beginning of a call to its end."""
    if isinstance(event, ModelInvoked):
        return f"asks model {one_line(event.model)}"
    return f"calls {short_call_text(event.tool, event.arguments)}"


def call_text(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """A call of a tool as it would be written, such as `price(item="x")`."""
    pairs = ", ".join(f"{name}={json_text(value)}" for name, value in arguments.items())
    return one_line(f"{tool}({pairs})")


def short_call_text(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    """A call of a tool with its arguments shortened, each of them and all together."""
    pairs = ", ".join(f"{name}={short_value(value)}" for name, value in arguments.items())
    return one_line(f"{tool}({cut(pairs, _LONGEST)})")


def failure_text(call: ToolCompleted) -> str:
    """Why a call of a tool failed, shortened; nothing of one that did not."""
    error = one_line(call.result.removeprefix("Error: "))
    return cut(error, _LONGEST) if call.status == "failed" else ""


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


def short_value(value: object) -> str:
    """A value as JSON, shortened."""
    return cut(json_text(value), _LONGEST_VALUE)
