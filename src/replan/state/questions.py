"""What a run asks a person: questions of its steps, and the approval of its plan."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue

from replan.plan.model import PlanStep, TaskPlan, Value
from replan.state.usage import TokenCount

QuestionKind = Literal["question", "approval", "in doubt"]
"""A specialist's question, a tool call that needs approval, or work that may have its effect a
second time because an attempt was cut off or is done."""

Approving = Literal["never", "plan", "revisions", "always"]
"""Which plans a person is asked to approve: none, the first one, revised ones, or all."""

QUESTION_KEY = re.compile(
    r"(?P<step>[1-9]\d{0,8})/(?P<specialist>[^/]+)/(?P<ordinal>[1-9]\d{0,8})\Z"
)
_SHORT_KEY = 8
_ASKED_ABOUT = (
    "description",
    "brief",
    "parameters",
    "assigned_to",
    "joined_by",
    "dependencies",
)


class Question(Value):
    """What a step asks a person, and the answer.

    Attributes:
        key: `"<step id>/<specialist>/<ordinal>"`; the ordinal counts the questions of the step at
            the specialist, from 1.
        step_id: The step.
        specialist: Who asks.
        text: The question; empty if the answer was given before the question.
        kind: The kind of the question.
        details: Further data, such as a tool and its arguments.
        answer: The answer; None while the question is open.
        asked_at: When it was asked.
        answered_at: When the answer arrived.
        round: The round that asked.
        usage: The usage of the asking attempt so far; set on the first question of an attempt.
        fingerprint: An answer may carry it to name exactly this question.
        secret: Whether the answer may contain a secret, so that no event reports it.
        place: The place in a pipeline's thread where it is asked: finished work is not repeated
            there, so the same words in another round are another question.
    """

    key: str
    step_id: int
    specialist: str
    text: str
    kind: QuestionKind = "question"
    details: JsonValue = None
    answer: JsonValue | None = None
    asked_at: datetime | None = None
    answered_at: datetime | None = None
    round: int = 0
    usage: TokenCount = TokenCount()
    fingerprint: str = ""
    secret: bool = False
    place: str = ""

    @property
    def payload(self) -> dict[str, Any]:
        """What an interrupt shows of it."""
        shown = self.model_dump(mode="json", exclude={"usage", "round", "secret", "place"})
        return {**shown, "response_schema": RESPONSES[self.kind]}

    @property
    def is_open(self) -> bool:
        """Whether it is unanswered."""
        return self.answer is None

    @property
    def ordinal(self) -> int:
        """Its place among the questions of the step, from 1."""
        return int(self.key.rpartition("/")[2])

    def answered(self, answer: JsonValue, at: datetime) -> "Question":
        """Return the question with its answer."""
        return self.replace(answer=answer, answered_at=at)


class Approval(Value):
    """A plan that waits for a person's decision.

    Attributes:
        approve: The plan's document.
        version: The plan's version.
        reason: Why the plan is as it is, or why it was revised.
        changes: What the revision changes, as a unified diff; empty for a first plan.
        problem: Why the last decision could not be used; empty at first.
        draft: The changed document that could not be used, to be fixed; empty at first.
        fingerprint: A decision may carry it to name exactly this plan.
    """

    approve: str
    version: int = 1
    reason: str = ""
    changes: str = ""
    problem: str = ""
    draft: str = ""
    fingerprint: str = ""

    @property
    def payload(self) -> dict[str, Any]:
        """What an interrupt shows of it: its own fields, and those that every question has."""
        shown = self.model_dump(mode="json")
        details = {name: shown[name] for name in ("version", "reason", "changes")}
        every = {"key": "plan", "kind": "plan", "text": self.approve, "details": details}
        return {**shown, **every, "response_schema": RESPONSES["plan"]}


class Decision(Value):
    """What a person decided about a plan, or about a tool's call.

    Attributes:
        action: Run it unchanged (approve), run it with changes (edit), or do not run it (reject).
        plan: The changed document of a plan.
        arguments: The changed arguments of a tool's call.
        reason: Why it was rejected; a rejected plan is planned again only if there is one.
    """

    action: Literal["approve", "edit", "reject"]
    plan: str = ""
    arguments: dict[str, JsonValue] | None = None
    reason: str = ""


def fingerprint_of(*shown: JsonValue) -> str:
    """The fingerprint that binds a decision to everything that was shown for it."""
    text = json.dumps(shown, ensure_ascii=True, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def question_key(step_id: int, specialist: str, ordinal: int) -> str:
    return f"{step_id}/{specialist}/{ordinal}"


def is_key_of(key: str, question: Question) -> bool:
    """Whether a question is asked under a key by its step and specialist."""
    start = question_key(question.step_id, question.specialist, 0).removesuffix("0")
    is_own = QUESTION_KEY.match(key) is not None and key.startswith(start)
    return is_own and key == question.key


def short_key(key: str) -> str:
    """A key as a person writes it: where a foreign graph asks, it is an interrupt's id, cut."""
    return key if "/" in key else key[:_SHORT_KEY]


def keys_meant(name: object, keys: Iterable[str]) -> list[str]:
    """The keys that a name means: the one that it is, or those that it begins, such as a step."""
    if not isinstance(name, str):
        return []
    keys = list(keys)
    return [name] if name in keys else [key for key in keys if key.startswith(f"{name}/")]


def how_to_answer(keys: Iterable[str]) -> str:
    """Say how each of several questions gets its own answer."""
    listed = ", ".join(f"'{key}'" for key in keys)
    return f"Answer with a mapping from a question's key to its answer; open: {listed}."


def questions_of(
    questions: Mapping[str, Question], step_id: int, specialist: str
) -> tuple[Question, ...]:
    own = (q for q in questions.values() if (q.step_id, q.specialist) == (step_id, specialist))
    return tuple(sorted(own, key=lambda question: question.ordinal))


def still_asked(
    questions: Mapping[str, Question], before: TaskPlan, after: TaskPlan
) -> dict[str, Question]:
    """Drop the open questions of steps that a revision removed or changed."""
    return {
        key: question
        for key, question in questions.items()
        if not question.is_open
        or _asks_the_same(before.by_id.get(question.step_id), after.by_id.get(question.step_id))
    }


_FINGERPRINT: dict[str, JsonValue] = {
    "fingerprint": {
        "type": "string",
        "description": "The fingerprint of the question; an answer with another one is refused.",
    }
}


def _decision(**edited: JsonValue) -> JsonValue:
    fields: dict[str, JsonValue] = {
        "action": {"enum": ["approve", "edit", "reject"], "description": "What is decided."},
        "reason": {"type": "string", "description": "Why it is rejected."},
        **_FINGERPRINT,
        **edited,
    }
    form: JsonValue = {"type": "object", "properties": fields, "required": ["action"]}
    return {"anyOf": [{"type": "boolean"}, {"type": "string"}, form]}


_VERDICT: JsonValue = {
    "type": "object",
    "properties": {
        "action": {
            "enum": ["run again", "done", "fail"],
            "description": "What becomes of work that may or may not have had its effect.",
        },
        "text": {"type": "string", "description": "Its result, or why it has failed."},
        **_FINGERPRINT,
    },
    "required": ["action"],
}
RESPONSES: Mapping[str, JsonValue] = {
    "question": {"description": "Text, or any JSON value; not empty."},
    "approval": _decision(
        arguments={"type": "object", "description": "All arguments of the call, as changed."}
    ),
    "in doubt": {"anyOf": [{"type": "string"}, _VERDICT]},
    "plan": _decision(plan={"type": "string", "description": "The whole document, as changed."}),
}
"""The JSON schemas of the answers to each kind of question."""


def _asks_the_same(before: PlanStep | None, after: PlanStep | None) -> bool:
    if before is None or after is None:
        return before is after
    return all(getattr(before, name) == getattr(after, name) for name in _ASKED_ABOUT)
