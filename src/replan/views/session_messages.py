"""The messages of a session, as people read them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import JsonValue

from replan.base.texts.signs import harmless
from replan.state.session.context import Content, Message

_WHO = {"user": "you", "assistant": "replan", "system": "system"}


def messages_text(messages: Sequence[Message]) -> str:
    """The messages as Markdown, each under its author."""
    return "\n\n".join(
        f"**{_WHO[message.role]}:**\n{harmless(message_text(message))}" for message in messages
    )


def message_text(message: Message) -> str:
    """What a message says; answers by key as decisions."""
    answers = message.metadata.get("answers")
    if isinstance(answers, dict):
        return "; ".join(_answer(key, answer) for key, answer in answers.items())
    return text_of(message.content)


def text_of(content: Content) -> str:
    """A content as text; a block without text is shown by its type."""
    if isinstance(content, str):
        return content
    blocks = cast("Sequence[Mapping[str, Any]]", content)
    return "\n".join(
        str(block.get("text") or f"[{block.get('type', 'block')}]") for block in blocks
    )


def _answer(key: str, answer: JsonValue) -> str:
    if not isinstance(answer, dict):
        return f"{key}: {answer}"
    decided = answer.get("answer", answer)
    decision = decided if isinstance(decided, dict) else {"action": decided}
    why = f" ({decision['reason']})" if decision.get("reason") else ""
    return f"{key}: {decision.get('action', 'answered')}{why}"
