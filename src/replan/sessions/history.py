"""From a context to the input of the graph, with only the history that models will see."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from replan.state.conversation.conversation import MemoryPolicy, client_instructions
from replan.state.options import Summary
from replan.state.session.context import Content, Message


class Shown(NamedTuple):
    """The part of a history that the graph receives."""

    messages: list[AnyMessage]
    summary: Summary | None  # of the first of them, and of what was before
    held_back: int  # messages that it is not given


def message_of(role: str, content: Content, place: int) -> AnyMessage:
    """A message at a place of a history, which it is named by."""
    blocks: Any = content if isinstance(content, str) else [dict(block) for block in content]
    if role == "system":
        # A history comes from a client.
        return client_instructions(blocks, _message_id(place))
    return (AIMessage if role == "assistant" else HumanMessage)(blocks, id=_message_id(place))


def visible_part(
    history: Sequence[Message], summary: Summary | None, memories: Sequence[MemoryPolicy]
) -> Shown:
    """Select the part of a history that the graph needs.

    Args:
        history: What was said before the request.
        summary: The summary of the beginning of the history.
        memories: What models see; the graph is given what the widest of them needs.
    """
    # As `memory.conversation` takes a conversation apart: instructions, what was said, and at the
    # end what nobody has answered. Here without making a message of each.
    start, end = _conversation_span(history)
    covered = _covered(history, summary)
    first = min((_first_visible(policy, end - start, covered) for policy in memories), default=0)
    while first > 0 and history[start + first].role == "system":
        # At the beginning of what is shown, it would count as instructions for all of it.
        first -= 1
    places = [*range(start), *range(start + first, len(history))]
    shown = [message_of(history[at].role, history[at].content, at) for at in places]
    # A summary belongs to messages of which the last one is there.
    if summary is None or covered <= first:
        return Shown(shown, None, first)
    return Shown(shown, summary.replace(covered=covered - first), first)


def whole_summary(history: Sequence[Message], summary: Summary | None) -> Summary | None:
    """The summary of a history, from the summary of the messages that the graph received."""
    covered = _covered(history, summary)
    return summary.replace(covered=covered) if summary is not None and covered else None


def _message_id(place: int) -> str:
    return f"m{place}"


def _conversation_span(history: Sequence[Message]) -> tuple[int, int]:
    """The end of the instructions of a history, and the messages after them."""
    replies = (at for at in range(len(history), 0, -1) if history[at - 1].role == "assistant")
    end = next(replies, 0)
    return next((at for at in range(end) if history[at].role != "system"), end), end


def _covered(history: Sequence[Message], summary: Summary | None) -> int:
    """How many of the messages of a history, without the instructions, a summary covers."""
    if summary is None:
        return 0
    start, end = _conversation_span(history)
    places = range(start, end)
    last = (place for place in places if _message_id(place) == summary.last_covered_id)
    return next((place - start + 1 for place in last), 0)


def _first_visible(memory: MemoryPolicy, count: int, covered: int) -> int:
    """The first visible message, and with a summary the last one that it covers."""
    if memory.mode == "summary":
        return max(0, covered - 1)
    return max(0, count - memory.limit) if memory.limit else 0
