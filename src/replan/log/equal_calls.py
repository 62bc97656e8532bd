"""Calls that another run of the same place made, equal to one that a person is asked about."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from pydantic import JsonValue

from replan.base.values import Value, json_text
from replan.log.rows import LoggedEvent, reference_to
from replan.state.questions import Question

CALLS = ("tool_invoked", "tool_completed")
"""The kinds of rows that tell of calls."""

_NOT_MADE = ("rejected",)


class EqualCall(Value):
    """A call of the same tool with the same arguments, whose effect must not happen twice."""

    run_id: str  # the run that made it
    at: datetime | None = None  # when it ended, or began where its end is not on record
    status: str = ""  # how it ended; empty where that is not on record


def call_in(question: Question) -> tuple[str, Mapping[str, JsonValue]] | None:
    """The call of a tool that a person is asked about; None where it is none."""
    details = question.fields
    arguments = details.get("arguments")
    # A step that asks first has itself as its tool.
    is_step = details.get("tool") == f"step {question.step_id}"
    if question.kind not in ("approval", "unknown_outcome") or is_step:
        return None
    return (str(details["tool"]), arguments) if isinstance(arguments, dict) else None


def equal_call(question: Question, run_id: str, logged: Iterable[LoggedEvent]) -> EqualCall | None:
    """The newest unsafe call in the log of a run that equals the one that a person is asked about.

    Its events are looked through as they are kept: most of them are of other calls.
    """
    wanted = call_in(question)
    found: EqualCall | None = None
    for event in (event.event for event in logged) if wanted else ():
        if isinstance(event, dict) and wanted and _is_equal(event, *wanted):
            status, at = str(event.get("status", "")), event.get("at")
            when = datetime.fromisoformat(at) if isinstance(at, str) else None
            found = EqualCall(run_id=run_id, at=when, status=status)
    return found


def _is_equal(
    event: Mapping[str, JsonValue], tool: str, arguments: Mapping[str, JsonValue]
) -> bool:
    is_unsafe = (event.get("tool"), event.get("effects")) == (tool, "unsafe")
    if not is_unsafe or event.get("status") in _NOT_MADE:
        return False
    # Of long arguments an event has the beginning, and what the whole of them is found by.
    refs = event.get("refs")
    whole = refs.get("arguments") if isinstance(refs, dict) else None
    if whole is None:
        return event.get("arguments") == arguments
    return whole == reference_to(json_text(arguments))
