"""To JSON text and back, for export and logs: one pair of functions for each value of a run."""

from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from replan.errors import DeserializationError
from replan.plan.model import TaskPlan, Value
from replan.state.results import CollectedResults, FeedbackResult, SpecialistResult, ThinkingResult

V = TypeVar("V", bound=Value)


def _pair(kind: type[V]) -> tuple[Callable[[V], str], Callable[[str], V]]:
    """Give the function that writes a value as JSON, and the one that reads it back.

    The second raises `DeserializationError` for a text that does not hold such a value.
    """

    def serialize(value: V) -> str:
        return value.model_dump_json()

    def deserialize(text: str) -> V:
        try:
            return kind.model_validate_json(text)
        except ValidationError as error:
            raise DeserializationError(kind.__name__, str(error)) from error

    return serialize, deserialize


serialize_thinking_result, deserialize_thinking_result = _pair(ThinkingResult)
serialize_task_plan, deserialize_task_plan = _pair(TaskPlan)
serialize_specialist_result, deserialize_specialist_result = _pair(SpecialistResult)
serialize_feedback_result, deserialize_feedback_result = _pair(FeedbackResult)
serialize_collected_results, deserialize_collected_results = _pair(CollectedResults)
