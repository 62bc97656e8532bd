"""What a reply means: typed readings of it, and what to say where it cannot be read."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Protocol

from langchain_core.messages import AIMessage, AnyMessage

from replan.errors import DeserializationError
from replan.plan.model import PlanUpdateType, Value
from replan.replies.body_plan import LooksLikePlan, plan_of, read_plan
from replan.replies.complaints import FEEDBACK_FORM, THINK_FORM, Complaint, problem_of
from replan.replies.labels import (
    Verdict,
    action_of,
    complexity_of,
    number_of,
    update_type_of,
    verdict_of,
)
from replan.replies.reply import FEEDBACK_KEYS, HOST_KEYS, THINK_KEYS, Reply, read_reply
from replan.replies.specialist_reading import SpecialistReading, read_specialist
from replan.state.results import ActionType, FeedbackResult, TaskComplexity, ThinkingResult

__all__ = [
    "Complaint",
    "FeedbackReading",
    "SpecialistReading",
    "ThinkReading",
    "parse_feedback_result",
    "parse_thinking_result",
    "read_answer",
    "read_feedback",
    "read_plan",
    "read_specialist",
    "read_think",
    "says_complete",
    "says_simple",
]

WRAPPED = ("<", "---", "[THINK]", "◁")
"""How a reply begins that may hold more than its answer."""

BodyKind = Literal["answer", "plan", "text", "empty"]
"""What a body is: an answer, a plan, text under a complex judgement that is no plan, or nothing."""

_NOTHING = (
    frozenset(("", "none", "nothing", "n/a", "na", "null", "empty", "unchanged", "same plan", "no"))
    | frozenset(
        ("no change", "no changes", "no changes needed", "no update", "no updates", "keep the plan")
    )
    | frozenset(
        (
            "the plan stays as it is",
            "empty: go on with the plan as it is",
            "same as before",
            "keine",
        )
    )
    | frozenset(("无", "沒有", "没有", "なし", "ninguno", "ninguna", "aucun", "aucune", "нет"))
)
"""What says in a place for a wish that there is none."""


class ThinkReading(Value):
    """What a think reply says.

    Attributes:
        complexity: The label; without one, what score or body stand for.
        score: The number from 0 to 1, if the model gave one.
        reasoning: Why.
        next_action: What the host means to do; it may contradict the label.
        body: The answer or the plan.
        kind: What the body is.
        contradiction: What in the reply does not go together, or empty.
    """

    complexity: TaskComplexity
    score: float | None = None
    reasoning: str = ""
    next_action: ActionType | None = None
    body: str = ""
    kind: BodyKind = "empty"
    contradiction: str = ""


class FeedbackReading(Value):
    """What a feedback reply says.

    Attributes:
        verdict: Whether the work is done.
        feedback: What the host says of the results.
        suggested_action: What the host would do next; it may contradict the verdict.
        update: What should change in the plan.
        plan_update_type: The kind of change, if the host named one.
        body: The final answer (complete) or the revised plan (continue).
        contradiction: What in the reply does not go together, or empty.
    """

    verdict: Verdict
    feedback: str = ""
    suggested_action: ActionType | None = None
    update: str = ""
    plan_update_type: PlanUpdateType | None = None
    body: str = ""
    contradiction: str = ""


class HasText(Protocol):
    """A message, as far as it matters here."""

    @property
    def text(self) -> str:
        """The text of the message, without its other blocks."""
        ...


def read_think(
    text: str, looks_like_plan: LooksLikePlan, threshold: float = 0.5
) -> ThinkReading | Complaint[ThinkReading]:
    """Read a think reply.

    The label decides. Where it is missing or unknown, a score does; without one, a body with steps
    of a plan is a plan. Anything else is asked for again.
    """
    reply = read_reply(text, THINK_KEYS)
    written = reply.fields.get("complexity", "")
    score = number_of(reply.fields.get("score", "") or written)
    label = complexity_of(written)
    plan = plan_of(reply.body, looks_like_plan, expected=label not in (None, "simple"))
    complexity = label or _without_label(score, threshold, has_plan=plan is not None)
    reading = _think_reading(reply, complexity or TaskComplexity.SIMPLE, plan, score)
    if complexity:
        return reading
    return Complaint[ThinkReading](
        problem=problem_of(reply, "complexity", "simple, moderate, complex", THINK_FORM),
        reading=reading if reading.body else None,
    )


def says_simple(fields: Mapping[str, str], threshold: float = 0.5) -> bool:
    """Whether a front matter alone, before its body is known, certainly announces an answer."""
    written = fields.get("complexity", "")
    label, score = complexity_of(written), number_of(fields.get("score", "") or written)
    found = label or _without_label(score, threshold, has_plan=False)
    return found is TaskComplexity.SIMPLE


def says_complete(fields: Mapping[str, str]) -> bool:
    """Whether a front matter alone, before its body is known, certainly announces an answer."""
    return verdict_of(fields.get("verdict", "")) == "complete"


def _without_label(
    score: float | None, threshold: float, *, has_plan: bool
) -> TaskComplexity | None:
    if score is not None:
        return TaskComplexity.COMPLEX if score >= threshold else TaskComplexity.SIMPLE
    return TaskComplexity.COMPLEX if has_plan else None


def _think_reading(
    reply: Reply, complexity: TaskComplexity, plan: str | None, score: float | None
) -> ThinkReading:
    is_simple = complexity is TaskComplexity.SIMPLE
    body = reply.body if is_simple or plan is None else plan
    kind: BodyKind = "answer" if is_simple else "text" if plan is None else "plan"
    action = action_of(reply.fields.get("next_action", ""))
    against = (
        (ActionType.CREATE_PLAN, ActionType.EXECUTE_STEP, ActionType.UPDATE_PLAN)
        if is_simple
        else (ActionType.DIRECT_ANSWER,)
    )
    return ThinkReading(
        complexity=complexity,
        score=score,
        reasoning=reply.fields.get("reasoning", ""),
        next_action=action,
        body=body,
        kind=kind if body else "empty",
        contradiction=f"complexity is {complexity}, next_action is {action}"
        if action in against
        else "",
    )


def read_feedback(
    text: str, looks_like_plan: LooksLikePlan
) -> FeedbackReading | Complaint[FeedbackReading]:
    """Read a feedback reply.

    Where the verdict is missing or unknown, a body with steps of a plan means continue. Anything
    else is asked for again.
    """
    reply = read_reply(text, FEEDBACK_KEYS)
    verdict = verdict_of(reply.fields.get("verdict", ""))
    plan = plan_of(reply.body, looks_like_plan, expected=verdict == "continue")
    if verdict is None and plan is not None:
        verdict = "continue"
    if verdict:
        return _feedback_reading(reply, verdict, plan)
    return Complaint[FeedbackReading](
        problem=problem_of(reply, "verdict", "complete, continue", FEEDBACK_FORM),
        reading=_feedback_reading(reply, "complete", plan) if reply.body else None,
    )


def _feedback_reading(reply: Reply, verdict: Verdict, plan: str | None) -> FeedbackReading:
    update = _unless_nothing(reply.fields.get("update", ""))
    body = reply.body
    if verdict == "continue":
        body = plan or ""
        if plan is None:  # a suggestion in prose
            update = "\n\n".join(part for part in (update, _unless_nothing(reply.body)) if part)
    action = action_of(reply.fields.get("suggested_action", ""))
    against = (
        (ActionType.DIRECT_ANSWER,)
        if verdict == "continue"
        else (ActionType.CREATE_PLAN, ActionType.EXECUTE_STEP, ActionType.UPDATE_PLAN)
    )
    return FeedbackReading(
        verdict=verdict,
        feedback=reply.fields.get("feedback", ""),
        suggested_action=action,
        update=update,
        plan_update_type=update_type_of(reply.fields.get("plan_update_type", "")),
        body=body,
        contradiction=f"verdict is {verdict}, suggested_action is {action}"
        if action in against
        else "",
    )


def read_answer(text: str) -> str:
    """Give the answer in a reply that should be nothing else, without thinking or front matter."""
    start = text.lstrip()
    if start.startswith(WRAPPED):
        return read_reply(text, HOST_KEYS if start.startswith("-") else ()).body
    return text.strip()


def _unless_nothing(text: str) -> str:
    return "" if text.strip(" .()[]*_`-\n").lower() in _NOTHING else text


def parse_thinking_result(
    message: HasText,
    *,
    at: datetime,
    looks_like_plan: LooksLikePlan,
    original_messages: tuple[AnyMessage, ...] = (),
) -> ThinkingResult:
    """Read a model's message as what the host thinks.

    Raises:
        DeserializationError: The message cannot be read with certainty; ask for it again.
    """
    reading = read_think(message.text, looks_like_plan)
    if isinstance(reading, Complaint):
        raise DeserializationError("thinking result", reading.problem)
    return ThinkingResult(
        thought=reading.body,
        complexity=reading.complexity,
        reasoning=reading.reasoning,
        next_action=reading.next_action,
        original_messages=original_messages,
        score=reading.score,
        timestamp=at,
    )


def parse_feedback_result(message: HasText, *, looks_like_plan: LooksLikePlan) -> FeedbackResult:
    """Read a model's message as the host's judgement of a round.

    Raises:
        DeserializationError: The message cannot be read with certainty; ask for it again.
    """
    reading = read_feedback(message.text, looks_like_plan)
    if isinstance(reading, Complaint):
        raise DeserializationError("feedback result", reading.problem)
    is_done = reading.verdict == "complete"
    return FeedbackResult(
        feedback=reading.feedback,
        should_continue=not is_done,
        suggested_action=reading.suggested_action,
        plan_update_suggestion=reading.update,
        plan_update_type=reading.plan_update_type,
        revised_plan="" if is_done else reading.body,
        final_answer=AIMessage(reading.body) if is_done and reading.body else None,
    )
