"""What was done in a run as a tree: step, attempt, call of a model or a tool."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue

from replan.events.types import (
    Event,
    MemorySummary,
    MessageText,
    ModelCompleted,
    ModelInvoked,
    ToolCompleted,
    ToolInvoked,
)
from replan.log.calls import Calls, calls_of
from replan.log.kept_events import prompt_of, reply_of
from replan.log.report import RunReport
from replan.log.step_reports import AttemptReport, StepReport
from replan.views.call_lines import failure_text, short_call_text
from replan.views.run.error_lines import is_in_text, same_error_before

HOST = 0
"""The number of the branch that has the calls of the host."""

_OfCall = ModelInvoked | ModelCompleted | ToolInvoked | ToolCompleted | MemorySummary


@dataclass(frozen=True, kw_only=True)
class Text:
    """A long text that is stored next to the events, and read when it is opened."""

    ref: str
    role: str = ""
    length: int | None = None


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a model or a tool."""

    seq: int  # of its newest event: its address in the run
    first: int  # of its first event
    kind: Literal["model", "tool"]
    name: str
    node: str
    at: datetime | None
    # running, cut off, failed, done, unusable; of a tool its own word, such as rejected
    state: str
    text: str  # its state in words
    shown: str = ""  # of a tool, with its arguments shortened
    seconds: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    error: str = ""
    prompt: tuple[Text, ...] = ()
    reply: Text | None = None
    effects: str = ""
    approval: str = ""
    arguments: Mapping[str, JsonValue] | None = None
    arguments_text: Text | None = None  # the whole, where `arguments` is shortened
    result: str = ""
    result_text: Text | None = None


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An attempt of a step at a specialist."""

    number: int
    specialist: str
    began: datetime
    outcome: str
    text: str  # how it ended, in words
    error: str  # in full; empty where `text` says where it stands already
    seconds: float | None
    spent: Calls
    calls: tuple[Call, ...]


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A step, or the host, with its attempts and calls."""

    step: int
    title: str
    specialists: tuple[str, ...]
    standing: str
    seconds: float | None
    spent: Calls
    attempts: tuple[Attempt, ...] = ()
    calls: tuple[Call, ...] = ()  # those of the host, which belong to no attempt


def tree_of(report: RunReport) -> list[Branch]:
    """Return the branches of a run: the host, then its steps in their order."""
    took, resumed = calls_of(report.host_calls), report.fold.resumed
    since = _seq(resumed) if resumed else 0
    is_at_work = report.outcome == "running"
    return [
        Branch(
            step=HOST,
            title="host",
            specialists=(),
            standing="",
            seconds=took.seconds,
            spent=took,
            calls=tuple(
                _call(each, report, "running" if is_at_work and _seq(each) > since else "cut off")
                for each in report.fold.host_calls.values()
            ),
        ),
        *(branch_of(step, report) for step in report.steps),
    ]


def _seq(event: Event) -> int:
    return event.seq or 0


def branch_of(step: StepReport, report: RunReport) -> Branch:
    """Return the branch of one step."""
    return Branch(
        step=step.step.id,
        title=step.step.description,
        specialists=step.specialists,
        standing=step.standing,
        seconds=step.seconds,
        spent=step.calls,
        attempts=tuple(_attempt(each, step, report) for each in step.attempts),
    )


def _attempt(attempt: AttemptReport, step: StepReport, report: RunReport) -> Attempt:
    no_end = "running" if attempt.outcome == "running" else "cut off"
    elsewhere = _error_elsewhere(attempt, step)
    return Attempt(
        number=attempt.entry.number,
        specialist=attempt.entry.specialist,
        began=attempt.entry.started_at,
        outcome=attempt.outcome,
        text=f"{attempt.outcome_text}: {elsewhere}" if elsewhere else attempt.outcome_text,
        error="" if elsewhere else attempt.entry.error,
        seconds=attempt.seconds,
        spent=calls_of(attempt.calls),
        calls=tuple(_call(each, report, no_end) for each in attempt.calls),
    )


def _error_elsewhere(attempt: AttemptReport, step: StepReport) -> str:
    """The place that shows the error of an attempt already; empty if there is none."""
    error, above = attempt.entry.error, step.step.feedback
    is_above = error and above and is_in_text(error, above)
    return "the error above" if is_above else same_error_before(attempt, step.attempts)


def _call(event: _OfCall, report: RunReport, no_end: str) -> Call:
    is_summary = isinstance(event, MemorySummary)
    began = event if is_summary else report.fold.begun.get(event.call_key, event)
    common: dict[str, Any] = {
        "seq": _seq(event),
        "first": _seq(began),
        "node": event.node,
        "at": began.at,
    }
    if isinstance(event, ToolInvoked | ToolCompleted):
        return _tool_call(event, no_end, common)
    is_open = isinstance(event, ModelInvoked)
    error = "" if is_open else event.error
    state = no_end if is_open else "failed" if error else "done"
    instead = report.unusable.get(_seq(event), "")
    reply = reply_of(event)
    return Call(
        kind="model",
        name=event.model,
        state="unusable" if instead else state,
        text=f"not usable, {instead}" if instead else state,
        error=error,
        seconds=None if is_open else event.seconds,
        input_tokens=None if is_open else event.input_tokens,
        output_tokens=None if is_open else event.output_tokens,
        cost=None if is_open else event.cost,
        prompt=tuple(map(_text_of, prompt_of(began))),
        reply=reply and _text_of(reply),
        **common,
    )


def _tool_call(event: ToolInvoked | ToolCompleted, no_end: str, common: dict[str, Any]) -> Call:
    is_over = isinstance(event, ToolCompleted)
    status = event.status if is_over else no_end
    return Call(
        kind="tool",
        name=event.tool,
        state=status,
        text={"success": "done", "waiting": "asked a person"}.get(status, status),
        shown=short_call_text(event.tool, event.arguments),
        seconds=event.seconds if is_over else None,
        error=failure_text(event) if is_over else "",
        effects=event.effects,
        approval=event.approval or "",
        arguments=event.arguments,
        arguments_text=_whole(event, "arguments"),
        result=event.result if is_over else "",
        result_text=_whole(event, "result"),
        **common,
    )


def _text_of(part: MessageText) -> Text:
    return Text(ref=part.ref, role=part.role, length=part.length)


def _whole(event: Event, name: str) -> Text | None:
    ref = event.refs.get(name)
    return Text(ref=ref) if ref else None
