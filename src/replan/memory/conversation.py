"""The conversation that a request belongs to, bounded, for whoever works on the request."""
# LangChain leaves a type of `trim_messages` open where its text splitters are not installed.
# pyright: reportUnknownVariableType=false

from collections.abc import Callable, Sequence
from typing import cast

from langchain_core.messages import AnyMessage, BaseMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately

from replan.state.enhanced import EnhancedState

MOST_MESSAGES = 10
"""Messages of a conversation, the request's and the caller's leading instructions included."""

MOST_TOKENS = 8_000
"""Tokens of a conversation, approximately; the request and those instructions are whole anyhow."""

_MAY_BEGIN = ("human", "ai", "system")

_Counter = Callable[[list[BaseMessage]], int]


def conversation_of(state: EnhancedState) -> list[AnyMessage]:
    """Give the newest messages of a thread, the request last."""
    # The system messages that it begins with are kept, as is the whole request; what a tool
    # answered is kept only together with its call.
    earlier, request = split_at_request(state.get("messages", []))
    told = _leading_instructions(earlier)
    kept = [*told, *request]
    earlier = _newest(earlier[len(told) :], MOST_MESSAGES - len(kept), len)
    left = MOST_TOKENS - count_tokens_approximately(kept)
    return [*told, *_newest(earlier, left, count_tokens_approximately), *request]


def split_at_request(
    messages: Sequence[AnyMessage],
) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """Split a conversation into what was said before, and the request: all after the last reply."""
    replies = (i + 1 for i, message in enumerate(messages) if message.type in ("ai", "tool"))
    start = max(replies, default=0)
    return list(messages[:start]), list(messages[start:])


def _leading_instructions(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    others = (i for i, message in enumerate(messages) if message.type != "system")
    return list(messages[: next(others, len(messages))])


def _newest(messages: list[AnyMessage], most: int, counter: _Counter) -> list[AnyMessage]:
    """The newest messages that fit; none of them is the answer of a tool without its call."""
    if not messages or (messages[0].type in _MAY_BEGIN and counter([*messages]) <= most):
        # LangChain looks at the counter's signature, which costs more than all of this.
        return messages
    kept = trim_messages(messages, max_tokens=most, token_counter=counter, start_on=_MAY_BEGIN)
    return cast("list[AnyMessage]", kept)
