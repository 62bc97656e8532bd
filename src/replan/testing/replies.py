"""One reply of a scripted model: the forms in which it is written, and what a chat model gives."""

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall, ToolCallChunk
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from replan.state.usage import TokenCount
from replan.testing.faults import (
    Empty,
    Fault,
    Hang,
    HttpFault,
    Malformed,
    Raised,
    Raw,
    Reset,
    ScriptedHttpError,
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
        cached: Those of the tokens in that come from a cache.
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
    cached: int = 0
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
    def as_sent(self) -> "Reply":
        """The reply as it is sent: one that is to be empty has its usage alone."""
        if not isinstance(self.fault, Empty):
            return self
        return Reply(usage=self.usage, latency=self.latency)

    def counted(self, messages: Sequence[BaseMessage]) -> TokenCount:
        """The usage that this reply reports as the answer to these messages."""
        tokens = self.usage
        if tokens is None:
            tokens = (sum(_estimate(message.text) for message in messages), _estimate(self.text))
        read, written = tokens
        return TokenCount(
            calls=1, input_tokens=read, output_tokens=written, cached_tokens=self.cached
        )


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


def as_reply(reply: Said | Exception | Fault) -> Reply:
    match reply:
        case Reply():
            return reply
        case str():
            return Reply(reply)
        case AIMessage():
            return _of_message(reply)
        case Exception():
            return Reply(fault=Raised(reply))
        case (
            HttpFault() | Reset() | Hang() | Malformed() | Truncated() | Empty() | Raised() | Raw()
        ):
            return Reply(fault=reply)
        case _:
            msg = f"A reply is a text, an AIMessage, a Reply, a fault or an error, not {reply!r}."
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


MODEL_NAME = "scripted"


def message_of(reply: Reply, messages: Sequence[BaseMessage]) -> AIMessage:
    """Return a reply in one piece, or raise the error that its fault is."""
    _fail(reply.fault)
    if isinstance(reply.fault, Reset):
        raise _broken()
    reply = reply.as_sent
    if reply.message is None:
        calls, extra = list(reply.tool_calls), _refusal_of(reply)
        ending = _ending(reply, messages)
        return AIMessage(reply.text, tool_calls=calls, additional_kwargs=extra, **ending)
    # A copy, since callers give messages an id, and the same reply may be used again.
    ending = {**_ending(reply, messages), "response_metadata": reply.message.response_metadata}
    return reply.message.model_copy(update=ending)


def chunks_of(reply: Reply, messages: Sequence[BaseMessage]) -> Iterator[AIMessageChunk]:
    """Yield a reply in pieces; usage, tool calls and the finish reason come with the last one."""
    _fail(reply.fault)
    reply = reply.as_sent
    reset_after = reply.fault.after if isinstance(reply.fault, Reset) else None
    for piece in _contents(reply)[:reset_after]:
        yield AIMessageChunk(content=piece)
    if reset_after is not None:
        raise _broken()
    extra = _refusal_of(reply) if reply.message is None else reply.message.additional_kwargs
    yield AIMessageChunk(
        content="",
        tool_call_chunks=_call_chunks(reply),
        additional_kwargs=extra,
        chunk_position="last",
        **_ending(reply, messages),
    )


def finish_reason(reply: Reply) -> str:
    """Why the model stopped, in the terms of the OpenAI protocol."""
    if reply.finish_reason:
        return reply.finish_reason
    if isinstance(reply.fault, Truncated):
        return "length"
    return "tool_calls" if reply.tool_calls else "stop"


def _ending(reply: Reply, messages: Sequence[BaseMessage]) -> dict[str, Any]:
    if isinstance(reply.fault, Truncated) and reply.fault.how == "cut":
        return {"usage_metadata": None, "response_metadata": {"model_name": MODEL_NAME}}
    count = reply.counted(messages)
    usage = UsageMetadata(
        input_tokens=count.input_tokens,
        output_tokens=count.output_tokens,
        total_tokens=count.total_tokens,
    )
    if count.cached_tokens:
        usage["input_token_details"] = InputTokenDetails(cache_read=count.cached_tokens)
    metadata = {"model_name": MODEL_NAME, "finish_reason": finish_reason(reply)}
    return {"usage_metadata": usage, "response_metadata": metadata}


def _refusal_of(reply: Reply) -> dict[str, Any]:
    return {"refusal": reply.refusal} if reply.refusal else {}


def _contents(reply: Reply) -> Sequence[Any]:
    if reply.message is not None and not isinstance(reply.message.content, str):
        return (reply.message.content,)
    return reply.pieces


def _call_chunks(reply: Reply) -> list[ToolCallChunk]:
    calls = [(call["name"], json.dumps(call["args"]), call["id"]) for call in reply.tool_calls]
    invalid = [] if reply.message is None else reply.message.invalid_tool_calls
    broken = [(call["name"], call["args"], call["id"]) for call in invalid]
    return [
        ToolCallChunk(name=name, args=args, id=id_, index=index, type="tool_call_chunk")
        for index, (name, args, id_) in enumerate([*calls, *broken])
    ]


def _fail(fault: Fault | None) -> None:
    match fault:
        case Raised():
            raise fault.error
        case HttpFault():
            raise ScriptedHttpError(fault)
        case Malformed():
            raise ValueError("The reply of the server is not JSON.")
        case Raw():
            raise TypeError("A Raw answer is bytes of HTTP. Use OpenAIServer in this test.")
        case _:
            return


def _broken() -> ConnectionResetError:
    return ConnectionResetError("The connection was reset in mid-reply.")
