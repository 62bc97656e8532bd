"""The one conversion between messages of threads and LangChain's."""

from collections.abc import Iterable
from datetime import datetime

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from replan.state.pipeline.threads import ThreadMessage
from replan.texts.storable import storable_text


def to_langchain(messages: Iterable[ThreadMessage]) -> list[BaseMessage]:
    """Return what a model sees of messages: the first level, without the virtual ones."""
    return [
        (AIMessage if each.sender == "bot" else HumanMessage)(each.text, id=each.id)
        for each in messages
        if not each.is_virtual
    ]


def from_langchain(message: BaseMessage, message_id: str, at: datetime) -> ThreadMessage:
    """Make a message of a thread from a person's or a model's message."""
    sender = "user" if message.type == "human" else "bot"
    text = storable_text(message.text)
    return ThreadMessage(id=message.id or message_id, sender=sender, text=text, timestamp=at)
