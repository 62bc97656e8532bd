"""What a run asks a person: a question, or a decision about a plan, a call or an outcome."""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue

from replan.base.values import Value, digest_of, fields_in
from replan.plan.model import PlanStep, TaskPlan
from replan.state.usage import TokenCount

QuestionKind = Literal["question", "approval", "unknown_outcome", "plan"]
"""A question, a tool call that needs approval, work that may have its effect a second time because
an attempt was cut off or is done, or a plan that needs approval. All but the first are decisions:
an answer lets something happen."""

PLAN = "plan"
"""The key of the first plan that a run asks about; the keys of later ones begin with it."""

CHOICES = "choices"
"""In the details of a question, the answers that it takes, if it does not take any."""

Approving = Literal["never", "plan", "revisions", "always"]
"""Which plans a person is asked to approve: none, the first one, revised ones, or all."""

QUESTION_KEY = re.compile(
    r"(?P<step>[1-9]\d{0,8})/(?P<specialist>[^/]+)/(?P<ordinal>[1-9]\d{0,8})\Z"
)
_PLAN_KEY = re.compile(r"(?P<path>(?:[1-9]\d{0,8}/[^/]+/)*)plan(?:/.*)?")
_LOOKS_LIKE_KEY = re.compile(
    r"[0-9a-f]{8,32}|(?:[1-9]\d{0,8}/[^/=]+/)*"
    r"(?:plan(?:/[\w/]+)?|[1-9]\d{0,8}(?:/[^/=]+(?:/[1-9]\d{0,8})?)?/?)"
)
_SHORT_KEY = 8
_SHORTEST = 4
_ASKED_ABOUT = (
    "description",
    "brief",
    "parameters",
    "assigned_to",
    "joined_by",
    "dependencies",
)


class Question(Value):
    """What a run asks a person, and the answer.

    Attributes:
        key: `"<step id>/<specialist>/<ordinal>"`; the ordinal counts the questions of the step at
            the specialist, from 1. That of a plan begins with `plan`. Before what a graph of ours
            in a step asks, there is `"<step id>/<specialist>/"`; that of a graph which asks with
            LangGraph's `interrupt` is the beginning of the interrupt's id.
        step_id: The step; 0 if the host asks.
        specialist: Who asks.
        text: The question; for a plan, its document; empty if the answer was given before the
            question.
        kind: The kind of the question.
        details: Further data, such as a tool and its arguments; for a plan, its `version`, the
            `reason` for it, and the `changes` of a revision as a unified diff.
        answer: The answer; None while the question is open.
        asked_at: When it was asked.
        answered_at: When the answer arrived.
        round: The round that asked.
        usage: The usage of the asking attempt so far; set on the first question of an attempt.
        fingerprint: An answer may carry it to name exactly this question.
        secret: Whether the answer may contain a secret, so that no event reports it.
        place: The place in a pipeline's thread where it is asked: finished work is not repeated
            there, so the same words in another round are another question.
        interrupt: The id of LangGraph's interrupt that takes the answer; empty if there is none.
        who: The step and the specialist that ask, for a person; empty if the host does.
        problem: Why the last answer could not be used.
        draft: For a plan, the changed document that could not be used.
    """

    key: str
    text: str
    step_id: int = 0
    specialist: str = ""
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
    interrupt: str = ""
    who: str = ""
    problem: str = ""
    draft: str = ""

    @property
    def payload(self) -> dict[str, Any]:
        """What an interrupt shows of it."""
        shown = self.model_dump(mode="json", exclude={*_NOT_SHOWN})
        last = {"problem": self.problem, "draft": self.draft}
        used = {name: text for name, text in last.items() if text}
        return {**shown, **used, "response_schema": self.response_schema}

    @property
    def fields(self) -> dict[str, JsonValue]:
        """Its details by their names; none if they have none."""
        return fields_in(self.details)

    @property
    def choices(self) -> tuple[str, ...]:
        """The answers that it takes; empty if it takes any."""
        given = self.fields.get(CHOICES) if self.kind == "question" else None
        return tuple(map(str, given)) if isinstance(given, list) else ()

    @property
    def response_schema(self) -> dict[str, JsonValue]:
        """The JSON schema of an answer."""
        return {"enum": [*self.choices]} if self.choices else dict(_RESPONSES[self.kind])

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person is told beside a plan: why it is as it is, and what a revision changes."""
        details = self.fields if self.kind == "plan" else {}
        parts = (str(details.get(name, "")).strip() for name in ("reason", "changes"))
        return tuple(filter(None, parts))

    @property
    def is_open(self) -> bool:
        """Whether it is unanswered."""
        return self.answer is None

    @property
    def is_decision(self) -> bool:
        """Whether an answer lets something happen, so that it counts only for what was shown."""
        return self.kind != "question"

    @property
    def is_own(self) -> bool:
        """Whether Replan asks it; what LangGraph's `interrupt` asks takes an answer as it is."""
        return self.is_keyed or self.is_decision

    @property
    def is_keyed(self) -> bool:
        """Whether its interrupt takes answers by key, because it may ask several questions."""
        return self.kind != "plan" and QUESTION_KEY.search(self.key) is not None

    @property
    def path(self) -> str:
        """Who asks, by steps and specialists, as the beginning of its key; empty if none does."""
        if self.is_keyed:
            return self.key.rpartition("/")[0]
        of_plan = _PLAN_KEY.fullmatch(self.key) if self.kind == "plan" else None
        return of_plan["path"].removesuffix("/") if of_plan else ""

    def inside(self, path: str, place: str) -> "Question":
        """The question about a plan, as a team asks it in a step with this path.

        The place is that of the step's pipeline at which the team works, if it has one: it may run
        teams one after another.
        """
        if not path:
            return self
        key = path + self.key + (f"/{digest_of(place)[:_SHORT_KEY]}" if place else "")
        return self.replace(key=key, fingerprint=fingerprint_of(key, self.fingerprint))

    def bound(self, answer: JsonValue) -> JsonValue:
        """The answer, bound to exactly this."""
        return {"answer": answer, "fingerprint": self.fingerprint} if self.fingerprint else answer

    @property
    def ordinal(self) -> int:
        """Its place among the questions of the step, from 1."""
        return int(self.key.rpartition("/")[2])

    def answered(self, answer: JsonValue, at: datetime) -> "Question":
        """Return the question with its answer."""
        return self.replace(answer=answer, answered_at=at)


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
    return digest_of(*shown)[:16]


def question_key(step_id: int, specialist: str, ordinal: int) -> str:
    return f"{step_id}/{specialist}/{ordinal}"


def is_key_of(key: str, question: Question) -> bool:
    """Whether a question is asked under a key by its step and specialist."""
    start = question_key(question.step_id, question.specialist, 0).removesuffix("0")
    is_own = QUESTION_KEY.match(key) is not None and key.startswith(start)
    return is_own and key == question.key


def is_of_plan(key: str) -> bool:
    """Whether a key is that of a plan that waits for approval, also of a team in a step."""
    return _PLAN_KEY.fullmatch(key) is not None


def short_key(key: str) -> str:
    """A key as a person writes it: where a foreign graph asks, it is an interrupt's id, cut."""
    return key if "/" in key else key[:_SHORT_KEY]


def looks_like_key(name: object) -> bool:
    """Whether a name is that of a question, or the beginning of one, open or not."""
    return isinstance(name, str) and _LOOKS_LIKE_KEY.fullmatch(name) is not None


def meant_by(name: object, questions: Iterable[Question]) -> list[Question]:
    """The questions that a name means: the one that it is, or those that it begins."""
    if not isinstance(name, str) or not name:
        return []
    questions = list(questions)
    exact = [question for question in questions if question.key == name]
    return exact or [question for question in questions if _begins(name, question)]


def _begins(name: str, question: Question) -> bool:
    # A short name is rather a step than the beginning of an id.
    shortest = _SHORT_KEY if question.is_keyed else _SHORTEST
    is_begun = len(name) >= shortest and question.interrupt.startswith(name)
    is_of_id = name == question.interrupt or is_begun
    return is_of_id or question.key.startswith(f"{name}/")


def how_to_answer(questions: Iterable[Question]) -> str:
    """Say what is asked now, and how each question gets its own answer."""
    listed = ", ".join(f"'{question.key}'" for question in questions)
    return f"Answer by key, as KEY=TEXT or with a mapping; open: {listed}."


def questions_of(
    questions: Mapping[str, Question], step_id: int, specialist: str
) -> tuple[Question, ...]:
    questions_asked = (
        q for q in questions.values() if (q.step_id, q.specialist) == (step_id, specialist)
    )
    return tuple(sorted(questions_asked, key=lambda question: question.ordinal))


def still_asked(
    questions: Mapping[str, Question],
    before: TaskPlan,
    after: TaskPlan,
    asked: Collection[str] = (),  # the keys of those that the revised steps ask
) -> dict[str, Question]:
    """Drop the open questions of steps that a revision removed or changed."""
    return {
        key: question
        for key, question in questions.items()
        if not question.is_open
        or key in asked
        or _asks_the_same(before.by_id.get(question.step_id), after.by_id.get(question.step_id))
    }


_FOR_DOORS = ("interrupt", "who", "problem", "draft")
_NOT_SHOWN = ("usage", "round", "secret", "place", *_FOR_DOORS)
_FINGERPRINT: dict[str, JsonValue] = {
    "fingerprint": {
        "type": "string",
        "description": "The fingerprint of the question; an answer with another one is refused.",
    }
}


def _decision(**edited: JsonValue) -> Mapping[str, JsonValue]:
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
_RESPONSES: Mapping[str, Mapping[str, JsonValue]] = {
    "question": {"description": "Text, or any JSON value; not empty."},
    "approval": _decision(
        arguments={"type": "object", "description": "All arguments of the call, as changed."}
    ),
    "unknown_outcome": {"anyOf": [{"type": "string"}, _VERDICT]},
    "plan": _decision(plan={"type": "string", "description": "The whole document, as changed."}),
}
"""The JSON schemas of the answers to each kind of question."""


def _asks_the_same(before: PlanStep | None, after: PlanStep | None) -> bool:
    if before is None or after is None:
        return before is after
    return all(getattr(before, name) == getattr(after, name) for name in _ASKED_ABOUT)
