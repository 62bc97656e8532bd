"""A result as JSON, to store or to send."""

from typing import cast

from langchain_core.messages import AIMessage
from pydantic import JsonValue

from replan.state.results import SpecialistResult


def result_as_json(result: SpecialistResult, *, is_short: bool = False) -> dict[str, JsonValue]:
    """Write a result as JSON; of messages of other classes, only their text.

    Args:
        result: The result.
        is_short: Whether fields are left out that are as in any other result.
    """
    message = result.result
    if message is not None and type(message) is not AIMessage:
        result = result.replace(result=AIMessage(message.text, id=message.id))
    try:
        written = result.model_dump(mode="json", exclude_defaults=is_short)
    except ValueError:
        result = result.replace(result=AIMessage(result.text))
        written = result.model_dump(mode="json", exclude_defaults=is_short)
    return cast("dict[str, JsonValue]", written)
