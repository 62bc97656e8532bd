"""The stored form of an event; a long text is stored once, and found by a reference."""

import json
from collections.abc import Mapping
from datetime import datetime

from pydantic import JsonValue

from replan.events.types import (
    ApprovalRequested,
    Event,
    FeedbackGenerated,
    InputRequested,
    MemorySummary,
    MessageText,
    ModelCompleted,
    ModelInvoked,
    PlanCreated,
    PlanUpdated,
    SpecialistCompleted,
    StepsInvalidated,
    ThinkingCompleted,
    ToolEvent,
)
from replan.log.rows import KeptText, reference_to
from replan.runs.log.outline import outlined
from replan.state.questions import Question

LONGEST = 1_000  # characters of a text that is in its event as it is

_PART = 100


class EventTexts:
    """The texts of a run's events that are not stored yet."""

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._new: dict[str, KeptText] = {}

    def take(self) -> list[KeptText]:
        taken, self._new = list(self._new.values()), {}
        return taken

    def give_back(self, texts: list[KeptText]) -> None:
        """Put back texts that could not be stored."""
        self._new = {each.ref: each for each in texts} | self._new

    def ref(self, text: str, at: datetime) -> str:
        """Store a text, and return its key."""
        ref = reference_to(text)
        if ref not in self._known:
            self._known.add(ref)
            self._new[ref] = KeptText(ref, text, at)
        return ref

    def shortened(self, fields: Mapping[str, JsonValue], at: datetime) -> dict[str, JsonValue]:
        """Return the fields of an event; of a long text its beginning and the key of the whole."""
        # The whole of `result` is under `result_ref`.
        kept = dict(fields)
        for name, value in fields.items():
            if isinstance(value, str) and len(value) > LONGEST:
                kept |= {name: f"{value[:LONGEST]}…", f"{name}_ref": self.ref(value, at)}
        arguments = fields.get("arguments")
        if isinstance(arguments, dict) and len(whole := _json(arguments)) > LONGEST:
            short: JsonValue = {name: _part(value) for name, value in arguments.items()}
            kept |= {"arguments": short, "arguments_ref": self.ref(whole, at)}
        return kept

    def said(self, message: MessageText, at: datetime) -> JsonValue:
        """Return what is kept of a message in its event: who said it, how long it is, and where."""
        length = len(message.text)
        return {"role": message.role, "length": length, "ref": self.ref(message.text, at)}


def _part(value: JsonValue) -> JsonValue:
    text = value if isinstance(value, str) else _json(value)
    return value if len(text) <= _PART else f"{text[:_PART]}…"


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)


# The state and the log hold these in full; a second copy would grow with the square of a plan.
_KEPT_ELSEWHERE = {
    "seq",
    "at",
    "run_id",
    "plan",
    "markdown",
    "answer",
    "output",
    "thinking",
    "feedback",
    "result",
    "question",
    "approval",
    "usage",
}


def recorded(event: Event, at: datetime, texts: EventTexts | None = None) -> dict[str, JsonValue]:
    """Return what is kept of an event: that it happened, and when."""
    own = {"result", "approval"} if isinstance(event, ToolEvent) else set[str]()
    fields = event.model_dump(mode="json", exclude=_KEPT_ELSEWHERE - own) | _main_fields(event)
    if texts is not None:
        fields = texts.shortened(fields, at) | _fields_of_messages(event, at, texts)
    return {"at": at.isoformat(timespec="milliseconds"), **fields}


def _fields_of_messages(event: Event, at: datetime, texts: EventTexts) -> dict[str, JsonValue]:
    match event:
        case ModelInvoked(prompt=prompt) if prompt:
            return {"prompt": [texts.said(each, at) for each in prompt]}
        case ModelCompleted(reply=reply) if reply is not None:
            return {"reply": texts.said(reply, at)}
        case MemorySummary(prompt=prompt, reply=reply):
            kept: dict[str, JsonValue] = {"prompt": [texts.said(each, at) for each in prompt]}
            return kept if reply is None else kept | {"reply": texts.said(reply, at)}
        case _:
            return {}


def _call_asked_about(question: Question) -> dict[str, JsonValue]:
    """The call of a tool that a person decides about, as events of calls have it."""
    shown = question.details if question.kind == "approval" else None
    return (
        {n: shown[n] for n in ("tool", "arguments") if n in shown}
        if isinstance(shown, dict)
        else {}
    )


def _main_fields(event: Event) -> dict[str, JsonValue]:  # noqa: PLR0911 - one for each kind
    match event:
        case ThinkingCompleted(thinking=thought):
            return {"complexity": thought.complexity.value, "reasoning": thought.reasoning}
        case PlanCreated(plan=plan) | PlanUpdated(plan=plan):
            outline = outlined(plan) if isinstance(event, PlanCreated) else {}
            return {"version": plan.version, "steps": plan.total_steps, **outline}
        case StepsInvalidated(reruns=reruns):
            return {"reruns": [str(rerun) for rerun in reruns]}
        case InputRequested(question=question):
            asked: dict[str, JsonValue] = {"key": question.key, "question": question.text}
            return asked | {"kind": question.kind} | _call_asked_about(question)
        case ApprovalRequested(approval=approval):
            return {"reason": approval.reason, "problem": approval.problem}
        case SpecialistCompleted(result=result):
            return {
                "status": result.status.value,
                "seconds": round(result.duration, 3),
                "error": result.error,
                "cut": result.cut,
            }
        case FeedbackGenerated(feedback=said):
            return {"feedback": said.feedback, "should_continue": said.should_continue}
        case _:
            return {}
