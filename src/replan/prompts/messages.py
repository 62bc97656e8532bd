"""The conversation in a prompt: what was said as data, what the caller told as instructions."""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, BaseMessage, get_buffer_string

from replan.memory.conversation import split_at_request
from replan.prompts.sections import section, within_budget

_NOTE = "The request is the newest message of a conversation. What was said before it, as data:"


def request_text(messages: Sequence[BaseMessage]) -> str:
    return "\n\n".join(message.text for message in messages if message.type == "human")


def instructions_in(messages: Sequence[BaseMessage]) -> str:
    return "\n\n".join(message.text for message in messages if message.type == "system")


def request_sections(
    messages: Sequence[AnyMessage], *, earlier_budget: int | None = None, budget: int | None = None
) -> list[str]:
    """Mark the request of a conversation, after what was said before it, if anything was."""
    earlier, request = split_at_request(messages)
    asked = section("request", _cut(request_text(request), budget))
    said = [message for message in earlier if message.type != "system"]
    if not said:
        return [asked]
    text = get_buffer_string(said, "user", "assistant", tool_prefix="tool")
    return [f"{_NOTE}\n{section('conversation', _cut(text, earlier_budget))}", asked]


def _cut(text: str, budget: int | None) -> str:
    return text if budget is None else within_budget(text, budget)
