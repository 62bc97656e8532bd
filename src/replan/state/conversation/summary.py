"""When a summary is due, and what it covers: pure functions of the state."""

from collections.abc import Sequence

from langchain_core.messages import AnyMessage

from replan.state.conversation.conversation import (
    MemoryPolicy,
    Parts,
    calls_of,
    parts_of,
    shortened,
    written_arguments,
)
from replan.state.enhanced import EnhancedState
from replan.state.memory import Summary

MOST_AT_ONCE = 100_000
"""The most characters that one summary covers; the next one covers the rest."""


def is_due(state: EnhancedState, memory: MemoryPolicy) -> bool:
    """Whether there are enough new messages since the newest summary."""
    if not memory.writes:
        return False
    parts = parts_of(state)
    # What a summary left as it was is not new to the next one.
    left = 0 if parts.summary is None else memory.limit
    enough = len(parts.since) - left >= memory.trigger
    return enough and bool(_next_to_cover(parts, memory))


def is_due_after(state: EnhancedState, said: Sequence[AnyMessage], memory: MemoryPolicy) -> bool:
    """Whether there are enough once this is said; a second answer takes the place of the first."""
    ids = {message.id for message in said if message.id}
    others = [message for message in state.get("messages", []) if message.id not in ids]
    return is_due({**state, "messages": [*others, *said]}, memory)


def to_cover(state: EnhancedState, memory: MemoryPolicy) -> tuple[str, Sequence[AnyMessage]]:
    """The newest summary, and the messages that the next one adds to it."""
    parts = parts_of(state)
    return "" if parts.summary is None else parts.summary.text, _next_to_cover(parts, memory)


def covering(state: EnhancedState, added: Sequence[AnyMessage], text: str) -> Summary:
    """The summary that covers some messages more."""
    covered = len(parts_of(state).covered) + len(added)
    return Summary(text=text, covered=covered, last_covered_id=str(added[-1].id))


def _next_to_cover(parts: Parts, memory: MemoryPolicy) -> list[AnyMessage]:
    """The oldest messages that no summary covers, without the newest; calls with their answers."""
    ends = [at for at, message in enumerate(parts.since) if message.type != "tool"]
    ends = [*ends[1:], len(parts.since)]
    wanted = len(parts.since) - memory.limit
    end = next((at_end for at_end in ends if at_end >= wanted), 0) if wanted > 0 else 0
    size, most = 0, 0
    for at, message in enumerate(parts.since[:end], start=1):
        size += _length_of(shortened(message))
        if size > MOST_AT_ONCE and most:
            break
        most = at if at in ends else most
    return parts.since[:most]


def _length_of(message: AnyMessage) -> int:
    calls = calls_of(message)
    return len(message.text) + sum(len(written_arguments(call)) for call in calls)
