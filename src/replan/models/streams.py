"""Replies that come in pieces: their text is shown once it is known to be no tool call."""

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import AIMessageChunk
from langchain_core.messages.content import InvalidToolCall
from langchain_core.messages.tool import ToolCall, ToolCallChunk, invalid_tool_call, tool_call

from replan.base.errors import ConfigurationError, ReplyTooLongError
from replan.base.failures import describe
from replan.base.texts.storable import well_formed

ToolCallChecker = Callable[[AsyncIterator[AIMessageChunk]], bool | Awaitable[bool]]
"""Whether a streamed reply holds a tool call: mostly an async function of the reply's pieces."""

OnText = Callable[[str], None]  # gets the pieces of a reply's text as they arrive

LONGEST_REPLY = 2_000_000
"""The maximum number of characters of a reply's text; a longer one is cut off."""

# What a piece counts for at least: it takes a thousand times the memory of its text.
_LEAST_PIECE = 10

LONGEST_REMARK = 200  # characters before a tool call that are not yet taken for an answer


async def holds_tool_call(chunks: AsyncIterator[AIMessageChunk]) -> bool:
    """Wait for a tool call, the end, or more text than models say before they call a tool."""
    length = 0
    async for chunk in chunks:
        if chunk.tool_call_chunks:
            return True
        length += len(chunk.text)
        if length > LONGEST_REMARK:
            return False
    return False


@dataclass(frozen=True)
class Toolset:
    """The tools that a model may call, and what detects whether it does."""

    tools: Sequence[Any]  # LangChain tools, and names of tools that the model's provider has
    # While it says that a reply holds a tool call, or nothing yet, the text is not shown.
    checker: ToolCallChecker = holds_tool_call


async def read(
    stream: AsyncIterator[Any],
    chunks: list[AIMessageChunk],
    on_text: OnText | None,
    toolset: Toolset | None,
    hear: Callable[[AIMessageChunk, str], None],
) -> None:
    """Read a stream into `chunks`, and show its text as soon as it is known to be an answer."""
    length = 0

    def take(chunk: AIMessageChunk) -> str:
        nonlocal length
        # For each token: `text` takes seven times as long where the content is a text anyway.
        text = chunk.content if isinstance(chunk.content, str) else chunk.text
        hear(chunk, text)
        length += max(len(text), _LEAST_PIECE)
        if length > LONGEST_REPLY:
            raise ReplyTooLongError(LONGEST_REPLY)
        chunks.append(chunk)
        return text

    async def heard() -> AsyncIterator[AIMessageChunk]:
        async for chunk in stream:
            take(chunk)
            yield chunk

    if on_text is not None and toolset is not None:
        on_text = await _show_if_answer(toolset.checker, heard(), chunks, on_text)
    async for chunk in stream:
        text = take(chunk)
        if on_text is not None and text:
            on_text(text)


def whole_characters(on_text: OnText) -> OnText:
    """Show text in whole characters: some servers cut one in two, and its first half waits."""
    half = ""

    def show(text: str) -> None:
        nonlocal half
        text = half + text
        half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        on_text(well_formed(text.removesuffix(half)))

    return show


async def _show_if_answer(
    checker: ToolCallChecker,
    stream: AsyncIterator[AIMessageChunk],
    chunks: Sequence[AIMessageChunk],
    on_text: OnText,
) -> OnText | None:
    """Let the checker read as much as it needs; then show what it read, or nothing."""
    if await _verdict(checker, stream):
        return None
    for chunk in chunks:
        if chunk.text:
            on_text(chunk.text)
    return on_text


async def _verdict(checker: ToolCallChecker, stream: AsyncIterator[AIMessageChunk]) -> bool:
    """Ask the team's checker; errors of the stream are not its errors."""
    failed: list[Exception] = []

    async def remembered() -> AsyncIterator[AIMessageChunk]:
        try:
            async for chunk in stream:
                yield chunk
        except Exception as error:
            failed.append(error)
            raise

    try:
        verdict = checker(remembered())
        return bool(await verdict if inspect.isawaitable(verdict) else verdict)
    except Exception as error:
        if error in failed:
            raise
        problem = f"this checker failed: {describe(error)}"
        fix = "Let it return True or False, or leave the field out."
        raise ConfigurationError("stream_tool_call_checker", checker, problem, fix) from error


def calls_in(chunks: Sequence[ToolCallChunk]) -> dict[str, Any]:
    # LangChain completes arguments that were cut off, and would call a tool with half of them.
    calls: list[ToolCall] = []
    broken: list[InvalidToolCall] = []
    for chunk in chunks:
        name, text, id_ = chunk["name"], chunk["args"], chunk["id"]
        try:
            args = json.loads(text or "{}", strict=False)
        except ValueError:
            args = None
        if isinstance(args, dict):
            calls.append(tool_call(name=name or "", args=cast("dict[str, Any]", args), id=id_))
        else:
            broken.append(invalid_tool_call(name=name, args=text, id=id_))
    return {"tool_calls": calls, "invalid_tool_calls": broken}
