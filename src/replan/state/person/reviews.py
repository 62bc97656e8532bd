"""What a run asks, in the shape of LangChain's human-in-the-loop middleware.

Agent Inbox and Agent Chat UI draw forms and buttons for an interrupt that has `action_requests` and
`review_configs`, and resume with `{"decisions": [...]}`, one for each request, in their order, or
for the first ones alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from replan.base.errors import InputError
from replan.state.questions import Question

PLAN = "run_plan"
"""The name of the action that a plan's approval is about."""

ANSWER = "answer"
"""The name of the action that answers a question, and of its only argument."""

Changed = Callable[[Mapping[str, JsonValue]], object]
"""What an edited action changes, from its arguments."""

_JUDGED = ["approve", "edit", "reject"]
_ANSWERED = ["respond", "edit"]


class _Action(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    args: dict[str, JsonValue]


class _Decision(BaseModel):
    model_config = ConfigDict(extra="forbid")

    type: str
    edited_action: _Action | None = None
    message: str = ""


_DECISIONS: JsonValue = {
    "type": "object",
    "properties": {
        "decisions": {
            "type": "array",
            "description": "One decision for each of the action_requests, in their order.",
            "items": {
                "type": "object",
                "properties": {
                    "type": {
                        "enum": ["approve", "edit", "reject", "respond"],
                        "description": "What is decided, of what its review_config allows.",
                    },
                    "edited_action": {
                        "type": "object",
                        "description": "With 'edit': the name of the action, and its new args.",
                    },
                    "message": {
                        "type": "string",
                        "description": "The answer, or why it is rejected.",
                    },
                },
                "required": ["type"],
            },
        }
    },
    "required": ["decisions"],
}
"""The JSON schema of the values with which these clients resume."""


def interrupt_about(questions: Sequence[Question]) -> dict[str, Any]:
    """What an interrupt about questions shows: them, and the same in the form of these clients."""
    requests: list[JsonValue] = [
        {
            "name": _name(question),
            "args": _arguments(question),
            "description": _description(question),
        }
        for question in questions
    ]
    configs: list[JsonValue] = [
        {"action_name": _name(question), "allowed_decisions": [*_allowed(question)]}
        for question in questions
    ]
    return {
        "questions": [question.payload for question in questions],
        "problem": questions[0].problem,
        "action_requests": requests,
        "review_configs": configs,
    }


def schema_of(questions: Sequence[Question]) -> dict[str, Any]:
    """The JSON schema of answers to these questions: by key, or the answer to the only one."""
    by_key: dict[str, JsonValue] = {
        question.key: {**question.response_schema, "description": question.text}
        for question in questions
    }
    answers: dict[str, JsonValue] = {"type": "object", "properties": by_key, "minProperties": 1}
    only = [question.response_schema for question in questions] if len(questions) == 1 else []
    return {"anyOf": [*only, answers, _DECISIONS]}


def is_review(value: object) -> bool:
    """Whether a value has the form of these clients, which name no question."""
    return isinstance(value, Mapping) and set(cast("Mapping[Any, Any]", value)) == {"decisions"}


def holds_review(value: object) -> bool:
    """Whether a value has that form, or has it under the id of an interrupt."""
    by_id: Mapping[Any, Any] = {}
    if isinstance(value, Mapping):
        by_id = cast("Mapping[Any, Any]", value)
    return is_review(cast("object", value)) or any(map(is_review, by_id.values()))


def answers_decided(review: object, questions: Sequence[Question]) -> dict[str, object]:
    """Read the decisions of such a client as answers by key.

    Raises:
        InputError: They are more than what is asked, or one does not fit its request.
    """
    decisions = _decisions(review, len(questions))
    return {
        question.key: _answer(question, decision)
        for question, decision in zip(questions, decisions, strict=False)
    }


def _answer(question: Question, decision: _Decision) -> object:
    if question.kind == "plan":
        return _judged(decision, PLAN, "plan", lambda args: args.get("plan"))
    if question.kind == "approval":
        return _judged(decision, _name(question), "arguments", lambda args: args)
    if decision.type == "respond":
        return decision.message
    if decision.type == "edit":
        return _edited(decision, ANSWER).get(ANSWER)
    raise InputError(f"{question.key} is answered with 'respond' or 'edit', not '{decision.type}'.")


def _judged(decision: _Decision, name: str, field: str, changed: Changed) -> dict[str, object]:
    """Read a decision about an action as a mapping with `action`."""
    if decision.type == "edit":
        return {"action": "edit", field: changed(_edited(decision, name))}
    # What is said about an action, without leave to do it, is why it is not done.
    if decision.type == "reject" or (decision.type == "respond" and decision.message):
        return {"action": "reject", "reason": decision.message}
    if decision.type == "approve":
        return {"action": "approve"}
    raise InputError(f"'{name}' takes 'approve', 'edit' or 'reject', not '{decision.type}'.")


def _edited(decision: _Decision, name: str) -> Mapping[str, JsonValue]:
    action = decision.edited_action
    if action is None or action.name != name:
        raise InputError(f"An edit needs an edited_action of the name '{name}', with its args.")
    return action.args


def _decisions(review: object, count: int) -> list[_Decision]:
    """The decisions, at most as many as requested."""
    rows = cast("Any", review)["decisions"]
    if not isinstance(rows, list | tuple) or not 0 < len(cast("list[object]", rows)) <= count:
        raise InputError(f"Give one decision for each of the {count} action_requests, in order.")
    try:
        return [_Decision.model_validate(row) for row in cast("list[object]", rows)]
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise InputError(
            f"A decision has a wrong field '{where}'. It is a mapping with type, and message or "
            "edited_action."
        ) from error


def _name(question: Question) -> str:
    if question.kind == "plan":
        return PLAN
    tool = question.fields.get("tool")
    return str(tool) if question.kind == "approval" and tool else ANSWER


def _arguments(question: Question) -> JsonValue:
    if question.kind == "plan":
        return {"plan": question.draft or question.text}
    details = question.details
    if question.kind == "approval" and isinstance(details, dict):
        return details.get("arguments", {})
    return {ANSWER: ""}


def _description(question: Question) -> str:
    if question.kind != "plan":
        return question.text
    reason = cast("Mapping[str, str]", question.details)["reason"]
    return "\n\n".join(filter(None, [reason, question.problem]))


def _allowed(question: Question) -> list[str]:
    return _JUDGED if question.kind in ("plan", "approval") else _ANSWERED
