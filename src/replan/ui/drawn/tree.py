"""What was done in a run as a tree: step, attempt, call of a model or a tool."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from pydantic import JsonValue

from replan.runs.course.attempts import AttemptView
from replan.runs.course.story import StepStory, Story
from replan.runs.log.call_counts import Calls, calls_of
from replan.runs.log.run_event import RunEvent
from replan.views.run.error_lines import is_in_text, same_error_before
from replan.views.run.history import failure_text, short_call_text

HOST = 0
"""The number of the branch that has the calls of the host."""

_BEGINNINGS = ("model_invoked", "tool_invoked")
_ENDS = ("model_completed", "tool_completed", "memory_summary")
_MODEL = ("model_invoked", "model_completed", "memory_summary")


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


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known about calls beyond their newest events."""

    begun: Mapping[Any, RunEvent]  # their beginnings: those of models have the prompts
    unusable: Mapping[int, str]  # what was done instead of using a reply


def tree_of(story: Story) -> list[Branch]:
    """Return the branches of a run: the host, then its steps in their order."""
    known = known_of(story)
    took, since = calls_of(story.host_calls), _resumed_at(story)
    is_at_work = story.run.outcome == "running"
    return [
        Branch(
            step=HOST,
            title="host",
            specialists=(),
            standing="",
            seconds=took.seconds,
            spent=took,
            calls=tuple(
                _call(each, known, "running" if is_at_work and _seq(each) > since else "cut off")
                for each in _calls_of_host(story.run.events)
            ),
        ),
        *(branch_of(step, known) for step in story.steps),
    ]


def _calls_of_host(events: Iterable[RunEvent]) -> Iterable[RunEvent]:
    """The newest event of each call of the host, in the order in which they began."""
    newest = dict[Any, RunEvent]()
    for event in events:
        if event.type in (*_BEGINNINGS, *_ENDS) and event.details.get("step_id") is None:
            is_summary = event.type == "memory_summary"
            newest[_seq(event) if is_summary else event.call_key] = event
    return newest.values()


def _resumed_at(story: Story) -> int:
    """The number of the event with which the last process began."""
    return max((_seq(e) for e in story.run.events if e.type == "run_resumed"), default=0)


def _seq(event: RunEvent) -> int:
    return event.seq or 0


def branch_of(step: StepStory, known: Known) -> Branch:
    """Return the branch of one step."""
    return Branch(
        step=step.step.id,
        title=step.step.description,
        specialists=step.specialists,
        standing=step.status_text,
        seconds=step.seconds,
        spent=step.calls,
        attempts=tuple(_attempt(each, step, known) for each in step.attempts),
    )


def _attempt(attempt: AttemptView, step: StepStory, known: Known) -> Attempt:
    no_end = "running" if attempt.outcome == "running" else "cut off"
    elsewhere = _error_elsewhere(attempt, step)
    return Attempt(
        number=attempt.entry.number,
        specialist=attempt.entry.specialist,
        began=attempt.entry.started_at,
        outcome=attempt.outcome,
        text=f"{attempt.told}: {elsewhere}" if elsewhere else attempt.told,
        error="" if elsewhere else attempt.entry.error,
        seconds=attempt.seconds,
        spent=calls_of(attempt.calls),
        calls=tuple(_call(each, known, no_end) for each in attempt.calls),
    )


def _error_elsewhere(attempt: AttemptView, step: StepStory) -> str:
    """The place that shows the error of an attempt already; empty if there is none."""
    error, above = attempt.entry.error, step.step.feedback
    is_above = error and above and is_in_text(error, above)
    return "the error above" if is_above else same_error_before(attempt, step.attempts)


def known_of(story: Story) -> Known:
    """Return what is known about the calls of a run."""
    begun = {event.call_key: event for event in story.run.events if event.type in _BEGINNINGS}
    return Known(begun=begun, unusable=story.unusable)


def _call(event: RunEvent, known: Known, no_end: str) -> Call:
    details = cast("dict[str, Any]", event.details)
    began = known.begun.get(event.call_key, event)
    common: dict[str, Any] = {
        "seq": _seq(event),
        "first": _seq(began),
        "node": str(details.get("node", "")),
        "at": began.at,
        "seconds": details.get("seconds"),
        "cost": details.get("cost"),
    }
    if event.type in _MODEL:
        is_open, error = event.type == "model_invoked", str(details.get("error") or "")
        state = no_end if is_open else "failed" if error else "done"
        instead = known.unusable.get(_seq(event), "")
        return Call(
            kind="model",
            name=str(details.get("model", "")),
            state="unusable" if instead else state,
            text=f"not usable, {instead}" if instead else state,
            error=error,
            input_tokens=details.get("input_tokens"),
            output_tokens=details.get("output_tokens"),
            prompt=tuple(map(_text_of, cast("Any", began.details.get("prompt") or ()))),
            reply=_text_of(details["reply"]) if details.get("reply") else None,
            **common,
        )
    status = no_end if event.type == "tool_invoked" else str(details.get("status", ""))
    return Call(
        kind="tool",
        name=str(details.get("tool", "")),
        state=status,
        text={"success": "done", "waiting": "asked a person"}.get(status, status),
        shown=short_call_text(details),
        error=failure_text(details).removeprefix(": "),
        effects=str(details.get("effects", "")),
        approval=str(details.get("approval") or ""),
        arguments=details.get("arguments") or {},
        arguments_text=_whole(details, "arguments"),
        result=str(details.get("result", "")),
        result_text=_whole(details, "result"),
        **common,
    )


def _text_of(part: Mapping[str, Any]) -> Text:
    return Text(ref=str(part["ref"]), role=str(part["role"]), length=part.get("length"))


def _whole(details: Mapping[str, Any], name: str) -> Text | None:
    ref = details.get(f"{name}_ref")
    return Text(ref=str(ref)) if ref else None
