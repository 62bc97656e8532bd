"""Turn a scripted reply into what a chat model gives: a message, its chunks, or an error."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCallChunk
from langchain_core.messages.ai import UsageMetadata

from replan.testing.faults import (
    Fault,
    HttpFault,
    Malformed,
    Raised,
    Reset,
    ScriptedHttpError,
    Truncated,
)
from replan.testing.replies import Reply

MODEL_NAME = "scripted"


def message_of(reply: Reply, messages: Sequence[BaseMessage]) -> AIMessage:
    """Return a reply in one piece, or raise the error that its fault is."""
    _fail(reply.fault)
    if isinstance(reply.fault, Reset):
        raise _broken()
    reply = reply.with_content
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
    reply = reply.with_content
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
        case _:
            return


def _broken() -> ConnectionResetError:
    return ConnectionResetError("The connection was reset in mid-reply.")
