"""The order of a prompt's messages, which every server takes.

Servers differ in what they refuse. All take one system message, then messages of the user and of
the model in turn, the user's first, and each call of a tool together with its answer.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)

from replan.prompts.sections import conversation_text, section

TASK = "Follow your instructions."
"""The message of the user in a prompt that would end without one."""


def in_order(messages: Sequence[AnyMessage | BaseMessage]) -> list[AnyMessage]:
    """Put the messages of a prompt in the order that every server takes.

    System messages come first, neighbours of one role become one message, and empty replies are
    left out. What cannot stand in its role is shown to the model as data of the user's: what the
    model said before the user said anything, and calls of tools without their answers. The last
    message is the user's, or what a tool answered.
    """
    system: list[Any] = [message for message in messages if message.type == "system"]
    others: list[Any] = [
        message for message in messages if message.type != "system" and not _is_empty(message)
    ]
    ordered = _joined([*system, *_with_misplaced_as_data(others)])
    if not ordered or ordered[-1].type in ("system", "ai"):
        ordered.append(HumanMessage(TASK))
    return ordered


def with_data(messages: Sequence[AnyMessage], *data: str) -> list[AnyMessage]:
    """Put messages in order, and marked data before the request, in the same message."""
    *earlier, request = in_order(messages)
    text = "\n\n".join(part for part in data if part)
    if not text:
        return [*earlier, request]
    if request.type != "human":
        return [*earlier, request, HumanMessage(text)]
    content: Any = request.content
    if isinstance(content, str):
        content = f"{text}\n\n{section('request', content)}"
    else:
        content = [{"type": "text", "text": text}, *content]
    return [*earlier, request.model_copy(update={"content": content})]


def _with_misplaced_as_data(messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    has_begun = False
    placed: list[tuple[bool, list[AnyMessage]]] = []
    for group in _call_groups(messages):
        has_begun |= group[0].type == "human"
        placed.append((has_begun and _is_whole(group), group))
    for is_in_place, groups in groupby(placed, key=itemgetter(0)):
        said = [message for _, group in groups for message in group]
        if is_in_place:
            yield from said
        else:
            yield HumanMessage(section("conversation", conversation_text(said)))


def _call_groups(messages: Sequence[AnyMessage]) -> list[list[AnyMessage]]:
    """Put each message that calls tools together with what they answered; others are alone."""
    groups: list[list[AnyMessage]] = []
    for message in messages:
        if message.type == "tool" and groups and _calls_in(groups[-1][0]):
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def _is_whole(group: Sequence[AnyMessage]) -> bool:
    answers = (message for message in group if isinstance(message, ToolMessage))
    return _calls_in(group[0]) == {answer.tool_call_id for answer in answers}


def _calls_in(message: AnyMessage | BaseMessage) -> set[str | None]:
    if not isinstance(message, AIMessage):
        return set()
    return {call["id"] for call in (*message.tool_calls, *message.invalid_tool_calls)}


def _is_empty(message: AnyMessage | BaseMessage) -> bool:
    return isinstance(message, AIMessage) and not (message.content or _calls_in(message))


def _joined(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Join neighbours of one role; the answers of tools stay apart."""
    joined: list[AnyMessage] = []
    for message in messages:
        if joined and joined[-1].type == message.type != "tool":
            joined[-1] = _join(joined[-1], message)
        else:
            joined.append(message)
    return joined


def _join(first: AnyMessage, second: AnyMessage) -> AnyMessage:
    # Only the second one can call tools, whose answers follow it.
    content: Any = [*_blocks(first.content), *_blocks(second.content)]
    if isinstance(first.content, str) and isinstance(second.content, str):
        content = "\n\n".join(text for text in (first.content, second.content) if text)
    return second.model_copy(update={"content": content})


def _blocks(content: Any) -> list[Any]:
    given = [content] * bool(content) if isinstance(content, str) else content
    return [{"type": "text", "text": each} if isinstance(each, str) else each for each in given]
