"""A model's message as what the host thinks or judges, for those who ask a model by themselves."""

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from langchain_core.messages import AIMessage, AnyMessage

from replan.errors import DeserializationError
from replan.replies.readings import read_feedback, read_think
from replan.replies.unreadable import Complaint
from replan.state.results import FeedbackResult, ThinkingResult


class HasText(Protocol):
    """A message, as far as it matters here."""

    @property
    def text(self) -> str:
        """The text of the message, without its other blocks."""
        ...


def parse_thinking_result(
    message: HasText,
    *,
    at: datetime,
    team: Collection[str] = (),
    original_messages: tuple[AnyMessage, ...] = (),
) -> ThinkingResult:
    """Read a model's message as what the host thinks.

    Raises:
        DeserializationError: The message cannot be read with certainty; ask for it again.
    """
    reading = read_think(message.text, team)
    if isinstance(reading, Complaint):
        raise DeserializationError("thinking result", reading.problem)
    return ThinkingResult(
        thought=reading.body,
        complexity=reading.complexity,
        reasoning=reading.reasoning,
        next_action=reading.next_action,
        original_messages=original_messages,
        score=reading.score,
        contradiction=reading.contradiction,
        timestamp=at,
    )


def parse_feedback_result(message: HasText, *, team: Collection[str] = ()) -> FeedbackResult:
    """Read a model's message as the host's judgement of a round.

    Raises:
        DeserializationError: The message cannot be read with certainty; ask for it again.
    """
    reading = read_feedback(message.text, team)
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
        contradiction=reading.contradiction,
    )
