"""The stored form of an event."""

from datetime import datetime

from pydantic import JsonValue

from replan.events.types import (
    ApprovalRequested,
    Event,
    FeedbackGenerated,
    InputRequested,
    MemorySummary,
    ModelAnswered,
    ModelCalled,
    PlanCreated,
    PlanUpdated,
    SpecialistCompleted,
    StepsReopened,
    ThinkingCompleted,
    ToolEvent,
)
from replan.runs.log.event_texts import EventTexts
from replan.runs.log.outline import outlined
from replan.state.questions import Question

# The state and the journal hold these in full; a second copy would grow with the square of a plan.
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
    fields = event.model_dump(mode="json", exclude=_KEPT_ELSEWHERE - own) | _essence(event)
    if texts is not None:
        fields = texts.shortened(fields, at) | _said(event, at, texts)
    return {"at": at.isoformat(timespec="milliseconds"), **fields}


def _said(event: Event, at: datetime, texts: EventTexts) -> dict[str, JsonValue]:
    match event:
        case ModelCalled(prompt=prompt) if prompt:
            return {"prompt": [texts.said(each, at) for each in prompt]}
        case ModelAnswered(reply=reply) if reply is not None:
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


def _essence(event: Event) -> dict[str, JsonValue]:  # noqa: PLR0911 - one for each kind
    match event:
        case ThinkingCompleted(thinking=thought):
            return {"complexity": thought.complexity.value, "reasoning": thought.reasoning}
        case PlanCreated(plan=plan) | PlanUpdated(plan=plan):
            outline = outlined(plan) if isinstance(event, PlanCreated) else {}
            return {"version": plan.version, "steps": plan.total_steps, **outline}
        case StepsReopened(reruns=reruns):
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
