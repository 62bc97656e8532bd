"""The prompt of a summary: the summary so far and the newer messages, as data."""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, BaseMessage

from replan.prompts.host import HostPrompts
from replan.prompts.sections import (
    Call,
    conversation_text,
    data_message,
    section,
    system_message,
)
from replan.prompts.templates import load, render
from replan.state.conversation.conversation import shortened


def build_summary_prompt(
    before: str, messages: Sequence[AnyMessage], host: HostPrompts, *, max_tokens: int
) -> list[BaseMessage]:
    """Ask for one summary of the summary so far and the messages that come after it."""
    asked = render(load("summary"), max_tokens=max_tokens)
    said = [shortened(message) for message in messages]
    data = (before and section("memory", before), section("conversation", conversation_text(said)))
    system = system_message(Call(node="memory_summary"), host.system, asked)
    return [system, data_message(*data)]
