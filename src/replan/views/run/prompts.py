"""The stored prompts and replies of models, call by call."""

from collections.abc import Iterable, Iterator
from typing import Any

from replan.base.texts.signs import harmless
from replan.events.types import (
    Event,
    MemorySummary,
    MessageText,
    ModelCompleted,
    ModelInvoked,
)
from replan.log.kept_events import prompt_of
from replan.runs.reports import WholeReport
from replan.views.cells import one_line
from replan.views.run.attempt_calls import call_usage_text
from replan.views.run.history import time_text

GONE = "(not kept any more)"
NONE_KEPT = "No prompts and replies are kept of this: no model was called, or keep_prompts is off."

# The only event of a summary reports its call and its end.
_Call = ModelInvoked | MemorySummary
_End = ModelCompleted | MemorySummary


def prompts_record(run: WholeReport, events: Iterable[Event]) -> dict[str, Any]:
    """The calls as JSON."""
    return {
        "calls": [
            {
                **call.model_dump(mode="json"),
                "prompt": [_message(message, run) for message in call.prompt],
                "answer": end and {**end.model_dump(mode="json"), "reply": _reply(end, run)},
            }
            for call, end in _calls(events)
        ]
    }


def prompts_lines(run: WholeReport, events: Iterable[Event]) -> list[str]:
    """The calls in lines."""
    lines = list[str]()
    for call, end in _calls(events):
        lines += ["", *_call_lines(call, end, run)] if lines else _call_lines(call, end, run)
    return lines or [NONE_KEPT]


def _calls(events: Iterable[Event]) -> list[tuple[_Call, _End | None]]:
    """The calls of models whose texts were stored, each with its end."""
    call_events = list(events)
    ends = {event.call_key: event for event in call_events if isinstance(event, ModelCompleted)}
    begun = [event for event in call_events if isinstance(event, _Call) and prompt_of(event)]
    return [
        (event, event if isinstance(event, MemorySummary) else ends.get(event.call_key))
        for event in begun
    ]


def _call_lines(call: _Call, end: _End | None, run: WholeReport) -> list[str]:
    who = call.node
    if isinstance(call, ModelInvoked) and call.step_id:
        who = f"step {call.step_id} {call.specialist}, attempt {call.attempt}"
    at = f"{time_text(call.at, run.started_at)} " if call.at else ""
    lines = [f"{at}{one_line(who)}, model {one_line(call.model)}"]
    for message in (_message(part, run) for part in call.prompt):
        lines += [f"  {one_line(message['role'])}:", *_indented(message["text"])]
    if end is None:
        return [*lines, "  not over"]
    reply = _reply(end, run)
    lines.append(f"  reply ({call_usage_text(end, run.currency)}):")
    return [*lines, *_indented(reply["text"] if reply else "(none)")]


def _indented(text: str) -> Iterator[str]:
    return (f"    {line}".rstrip() for line in harmless(text).splitlines())


def _message(part: MessageText, run: WholeReport) -> dict[str, str]:
    return {"role": part.role, "text": run.texts.get(part.ref, GONE)}


def _reply(end: _End, run: WholeReport) -> dict[str, str] | None:
    return None if end.reply is None else _message(end.reply, run)
