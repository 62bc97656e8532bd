"""The stored prompts and replies of models, call by call."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from replan.runs.course.whole_run import WholeRun
from replan.runs.log.event_log import RunEvent
from replan.texts.signs import harmless
from replan.views.cells import one_line
from replan.views.run.attempt_calls import usage_text
from replan.views.run.history import time_text

# The only event of a summary reports its call and its end.
_CALLS = ("model_invoked", "model_completed", "memory_summary")

GONE = "(not kept any more)"
NONE_KEPT = "No prompts and replies are kept of this: no model was called, or keep_prompts is off."


def prompts_record(run: WholeRun, events: Iterable[RunEvent]) -> dict[str, Any]:
    """The calls as JSON."""
    return {
        "calls": [
            {
                **call.details,
                "at": call.at and call.at.isoformat(),
                "prompt": [_message(each, run) for each in _prompt(call)],
                "answer": answer and {**answer.details, "reply": _reply(answer, run)},
            }
            for call, answer in _calls(events)
        ]
    }


def prompts_lines(run: WholeRun, events: Iterable[RunEvent]) -> list[str]:
    """The calls in lines."""
    lines = list[str]()
    for call, answer in _calls(events):
        lines += ["", *_call_lines(call, answer, run)] if lines else _call_lines(call, answer, run)
    return lines or [NONE_KEPT]


def _calls(events: Iterable[RunEvent]) -> list[tuple[RunEvent, RunEvent | None]]:
    """The calls of models whose texts were stored, each with its end."""
    own = [event for event in events if event.type in _CALLS]
    ends = {event.call_key: event for event in own if event.type != "model_invoked"}
    begun = [event for event in own if event.type != "model_completed" and _prompt(event)]
    return [(event, ends.get(event.call_key)) for event in begun]


def _call_lines(call: RunEvent, answer: RunEvent | None, run: WholeRun) -> list[str]:
    details: Mapping[str, Any] = call.details
    step, attempt = details.get("step_id"), details.get("attempt")
    who = f"step {step} {details['specialist']}, attempt {attempt}" if step else details["node"]
    at = f"{time_text(call.at, run.started_at)} " if call.at else ""
    lines = [f"{at}{one_line(str(who))}, model {one_line(str(details['model']))}"]
    for each in (_message(part, run) for part in _prompt(call)):
        lines += [f"  {one_line(each['role'])}:", *_indented(each["text"])]
    if answer is None:
        return [*lines, "  not over"]
    reply = _reply(answer, run)
    lines.append(f"  reply ({usage_text(answer.details)}):")
    return [*lines, *_indented(reply["text"] if reply else "(none)")]


def _indented(text: str) -> Iterator[str]:
    return (f"    {line}".rstrip() for line in harmless(text).splitlines())


def _prompt(call: RunEvent) -> list[Any]:
    prompt = call.details.get("prompt")
    return prompt if isinstance(prompt, list) else []


def _message(part: Mapping[str, Any], run: WholeRun) -> dict[str, str]:
    return {"role": str(part["role"]), "text": run.texts.get(str(part["ref"]), GONE)}


def _reply(answer: RunEvent, run: WholeRun) -> dict[str, str] | None:
    reply = answer.details.get("reply")
    return _message(reply, run) if isinstance(reply, dict) else None
