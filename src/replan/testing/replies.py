"""One reply of a scripted model or server, and the short forms in which it may be written."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, ToolCall

from replan.state.usage import TokenCount
from replan.testing.faults import (
    Empty,
    Fault,
    Hang,
    HttpFault,
    Malformed,
    Raised,
    Reset,
    Truncated,
)

_WORD = re.compile(r"\s*\S+|\s+\Z")
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class Reply:
    """One reply of a scripted model or server.

    Attributes:
        text: What it says.
        tool_calls: The tools that it calls.
        usage: Tokens in and out; none: estimated, a token for each four characters.
        latency: Seconds before the first byte.
        chunk_delay: Seconds before each further chunk of a stream.
        chunks: The pieces in which the text is streamed; none: word by word.
        fault: How it fails.
        finish_reason: Why it ends, in the terms of the OpenAI protocol; empty: as its tool calls
            and its fault say.
        refusal: What the model says instead of an answer, in addition to the text.
        message: A whole message, which `ScriptedModel` returns unchanged.
    """

    text: str = ""
    tool_calls: Sequence[ToolCall] = ()
    usage: tuple[int, int] | None = None
    latency: float = 0.0
    chunk_delay: float = 0.0
    chunks: Sequence[str] | None = None
    fault: Fault | None = None
    finish_reason: str = ""
    refusal: str = ""
    message: AIMessage | None = None

    def __post_init__(self) -> None:
        if self.chunks is not None and "".join(self.chunks) != self.text:
            raise ValueError("The chunks of a reply must join to its text.")

    @property
    def pieces(self) -> tuple[str, ...]:
        """The chunks in which the text is streamed."""
        return tuple(_WORD.findall(self.text)) if self.chunks is None else tuple(self.chunks)

    @property
    def with_content(self) -> "Reply":
        """The reply as it is sent: one that is to be empty has its usage alone."""
        return Reply(usage=self.usage) if isinstance(self.fault, Empty) else self

    def counted(self, messages: Sequence[BaseMessage]) -> TokenCount:
        """The usage that this reply reports as the answer to these messages."""
        tokens = self.usage
        if tokens is None:
            tokens = (sum(_estimate(message.text) for message in messages), _estimate(self.text))
        return TokenCount(calls=1, input_tokens=tokens[0], output_tokens=tokens[1])


Said = str | AIMessage | Reply
"""What a reply may be written as."""

Maker = Callable[[Sequence[BaseMessage]], Said | Awaitable[Said]]
"""A function, sync or async, that sees the messages of a call and gives the reply."""


@dataclass(frozen=True)
class Always:
    """A reply for every call of its key, any number of times, none included."""

    reply: "Entry"


Entry = Said | Exception | Fault | Maker
"""A reply, an error to raise, a way to fail, or a function that makes the reply."""


def always(reply: Entry) -> Always:
    """Return the same reply, or call the same function, for every call that is still to come."""
    return Always(reply)


def as_reply(given: Said | Exception | Fault) -> Reply:
    match given:
        case Reply():
            return given
        case str():
            return Reply(given)
        case AIMessage():
            return _of_message(given)
        case Exception():
            return Reply(fault=Raised(given))
        case HttpFault() | Reset() | Hang() | Malformed() | Truncated() | Empty() | Raised():
            return Reply(fault=given)
        case _:
            msg = f"A reply is a text, an AIMessage, a Reply, a fault or an error, not {given!r}."
            raise TypeError(msg)


def _of_message(message: AIMessage) -> Reply:
    usage = message.usage_metadata
    return Reply(
        text=str(message.text),
        tool_calls=tuple(message.tool_calls),
        usage=(usage["input_tokens"], usage["output_tokens"]) if usage else None,
        message=message,
    )


def _estimate(text: str) -> int:
    return len(text) // _CHARACTERS_PER_TOKEN
