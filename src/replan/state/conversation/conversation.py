"""The conversation of a request, as the host and specialists see it; when a summary is due."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolCall,
)
from langchain_core.messages.utils import count_tokens_approximately

from replan.base.values import json_text
from replan.state.enhanced import EnhancedState
from replan.state.options import BUILT_IN, MemoryOptions, Mode, Summary

MOST_TOKENS = 8_000
"""Approximate tokens of a window; the request and the caller's instructions are never cut."""

LONGEST_OLD = 2 * MOST_TOKENS
"""Characters of one message before the request: half of a window."""

_INSTRUCTIONS = "replan_instructions"
"""Marks a message of a user as what a client calls instructions."""

_Counter = Callable[[list[BaseMessage]], int]


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """What is seen of a conversation, with nothing left open."""

    mode: Mode
    limit: int  # messages of a window, and those that a new summary leaves; 0: all
    writes: bool  # whether summaries are written
    trigger: int  # so many new messages make one due
    max_tokens: int  # of a summary
    model: str  # the name of the model that writes it; empty: the host's


@dataclass(frozen=True, slots=True)
class Seen:
    """The parts of a conversation that a model sees, and those that it does not."""

    messages: list[AnyMessage]  # the instructions, what was said before, the request
    summary: str = ""  # of the beginning, in place of its messages
    summarised: int = 0  # messages that the summary replaces
    omitted: int = 0  # messages that were left out without a summary
    truncated: int = 0  # messages that are shown in part

    @property
    def is_whole(self) -> bool:
        """Whether the whole conversation is there."""
        return not (self.summarised or self.omitted or self.truncated)

    @property
    def numbers(self) -> dict[str, int]:
        """How many messages are shown, and how many are not."""
        lacking = {
            "summarised": self.summarised,
            "omitted": self.omitted,
            "truncated": self.truncated,
        }
        return {"visible": len(self.messages), **lacking}


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a conversation."""

    instructions: list[AnyMessage]  # what it begins with: of the caller, or of a client
    covered: list[AnyMessage]  # what the summary replaces
    since: list[AnyMessage]  # what was said since
    request: list[AnyMessage]
    summary: Summary | None = None


class AskedAgain(HumanMessage):
    """What is wrong with the reply before it, and what to write instead."""


def asked_again(messages: list[BaseMessage], reply: str, complaint: str) -> list[BaseMessage]:
    """Give the messages that show a model its reply, and why another one is wanted."""
    return [*messages, AIMessage(reply or "(empty)"), AskedAgain(content=complaint)]


def client_instructions(content: str | list[Any], id_: str | None = None) -> HumanMessage:
    """What a client sent as a system message: words of the user, which no window leaves out."""
    note = "Instructions for this conversation:"
    shown: Any = f"{note}\n\n{content}"
    if not isinstance(content, str):
        shown = [{"type": "text", "text": note}, *content]
    return HumanMessage(shown, id=id_, additional_kwargs={_INSTRUCTIONS: True})


@lru_cache(maxsize=256)
def resolved(*levels: MemoryOptions) -> MemoryPolicy:
    """Combine the options of several levels, the innermost last."""
    options: dict[str, Any] = dict(BUILT_IN)
    for level in levels:
        options |= {name: value for name, value in level.__dict__.items() if value is not None}
    mode, limit = options["mode"], max(0, options["history_limit"])
    if mode == "summary":
        limit = limit or cast("int", BUILT_IN.history_limit)
    return MemoryPolicy(
        mode=mode,
        limit=0 if mode == "full" else limit,
        writes=mode == "summary" and options["summary_enabled"] is not False,
        trigger=options["summary_trigger_messages"],
        max_tokens=options["summary_max_tokens"],
        model=options["summary_model_id"] or "",
    )


def visible_messages(state: EnhancedState, memory: MemoryPolicy) -> Seen:
    """Return what is seen of the conversation of a thread, the request last."""
    # The request is whole, and so are the instructions that the conversation begins with.
    if memory.mode == "summary":
        return _summarised(parts_of(state))
    earlier, request = split_at_request(state.get("messages", []))
    if not (memory.limit and earlier):
        return Seen([*earlier, *request])
    instructions = _leading_instructions(earlier)
    kept = [*instructions, *request]
    newest = _newest(earlier[len(instructions) :], memory.limit - len(kept), len)
    shown = _shortened(newest)
    left = MOST_TOKENS - count_tokens_approximately(kept)
    shown = _newest(shown, left, count_tokens_approximately)
    return Seen(
        [*instructions, *shown, *request],
        omitted=len(earlier) - len(instructions) - len(shown),
        truncated=_count_changed(newest[len(newest) - len(shown) :], shown),
    )


def parts_of(state: EnhancedState) -> Parts:
    """Split the conversation of a thread into its parts."""
    earlier, request = split_at_request(state.get("messages", []))
    instructions = _leading_instructions(earlier)
    messages, summary = earlier[len(instructions) :], state.get("memory_summary")
    # A summary of removed messages must not outlive them.
    if summary is None or not _is_summary_of(summary, messages):
        return Parts(instructions, [], messages, request)
    return Parts(
        instructions, messages[: summary.covered], messages[summary.covered :], request, summary
    )


def split_at_request(
    messages: Sequence[AnyMessage],
) -> tuple[list[AnyMessage], list[AnyMessage]]:
    """Split a conversation into earlier messages and the request.

    The request is all after the last reply, or after the instructions at the beginning.
    """
    replies = (i + 1 for i, message in enumerate(messages) if message.type in ("ai", "tool"))
    start = max(replies, default=len(_leading_instructions(messages)))
    return list(messages[:start]), list(messages[start:])


def within_budget(text: str, budget: int) -> str:
    """Keep the beginning of a text that is longer than its budget, and say how much is missing."""
    if len(text) <= budget:
        return text
    return f"{text[:budget].rstrip()}\n[… {len(text) - budget} characters cut]"


def shortened(message: AnyMessage) -> AnyMessage:
    """An old message as it is shown: very long parts are cut to their beginning."""
    cut = _with_short_text(message)
    calls = calls_of(message)
    if sum(len(written_arguments(call)) for call in calls) <= LONGEST_OLD:
        return cut
    # What was cut is no longer JSON, so text replaces the arguments.
    most = LONGEST_OLD // len(calls)
    short: Any = [
        {**call, "args": {"cut": within_budget(written_arguments(call), most)}} for call in calls
    ]
    # Providers keep what they sent again.
    raw = {"tool_calls", "function_call"}
    others = {name: value for name, value in message.additional_kwargs.items() if name not in raw}
    return cut.model_copy(update={"tool_calls": short, "additional_kwargs": others})


def calls_of(message: AnyMessage) -> list[ToolCall]:
    """The calls of tools that a message asks for."""
    return message.tool_calls if isinstance(message, AIMessage) else []


def written_arguments(call: ToolCall) -> str:
    """What a call hands to its tool, as JSON."""
    return json_text(call["args"])


def _with_short_text(message: AnyMessage) -> AnyMessage:
    content = message.content
    text = content if isinstance(content, str) else message.text
    if len(text) <= LONGEST_OLD:
        return message
    cut: Any = within_budget(text, LONGEST_OLD)
    if not isinstance(content, str):
        others = [block for block in content if not isinstance(block, str)]
        cut = [{"type": "text", "text": cut}, *(o for o in others if o.get("type") != "text")]
    return message.model_copy(update={"content": cut})


def _summarised(parts: Parts) -> Seen:
    shown = _shortened(parts.since)
    return Seen(
        [*parts.instructions, *shown, *parts.request],
        summary="" if parts.summary is None else parts.summary.text,
        summarised=len(parts.covered),
        truncated=_count_changed(parts.since, shown),
    )


def _is_summary_of(summary: Summary, messages: Sequence[AnyMessage]) -> bool:
    covered = summary.covered
    return 0 < covered <= len(messages) and messages[covered - 1].id == summary.last_covered_id


def _leading_instructions(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    others = (i for i, message in enumerate(messages) if not _is_instruction(message))
    return list(messages[: next(others, len(messages))])


def _is_instruction(message: AnyMessage) -> bool:
    return message.type == "system" or _INSTRUCTIONS in message.additional_kwargs


def _shortened(messages: list[AnyMessage]) -> list[AnyMessage]:
    return [shortened(message) for message in messages]


def _count_changed(before: Sequence[AnyMessage], after: Sequence[AnyMessage]) -> int:
    return sum(one is not other for one, other in zip(before, after, strict=True))


def _newest(messages: list[AnyMessage], most: int, counter: _Counter) -> list[AnyMessage]:
    """The newest messages that fit, from a message of the user on, if there is one."""
    size, start = 0, len(messages)
    while start and (size := size + counter([messages[start - 1]])) <= most:
        start -= 1
    window = messages[start:]
    begins = [at for at, message in enumerate(window) if start and message.type == "human"]
    # An answer of a tool is not there without its call.
    begins += [at for at, message in enumerate(window) if message.type != "tool"]
    return window[next(iter(begins), len(window)) :]


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
