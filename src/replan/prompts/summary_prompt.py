"""The prompt of a summary: the summary so far and the newer messages, as data."""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage

from replan.memory.conversation import shortened
from replan.prompts.host import HostPrompts
from replan.prompts.sections import Call, call_tag, conversation_text, section
from replan.prompts.templates import load, render


def build_summary_prompt(
    before: str, messages: Sequence[AnyMessage], host: HostPrompts, *, max_tokens: int
) -> list[BaseMessage]:
    """Ask for one summary of the summary so far and the messages that come after it."""
    asked = render(load("summary"), max_tokens=max_tokens)
    tag = call_tag(Call(node="memory_summary"))
    said = [shortened(message) for message in messages]
    parts = [section("memory", before)] if before else []
    parts.append(section("conversation", conversation_text(said)))
    return [
        SystemMessage("\n\n".join(part for part in (host.system, asked, tag) if part)),
        HumanMessage("\n\n".join(parts)),
    ]
