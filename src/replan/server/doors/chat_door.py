"""OpenAI's chat completions as exchanges: a run answers the newest message of a conversation.

The question of a run that waits is the answer. The next request of the same conversation, which
its messages or its session id identify, answers it. A plan or a call is decided only by an explicit
decision about what was shown.
"""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal

from openai.types import CompletionUsage
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessage
from openai.types.chat.chat_completion import Choice
from openai.types.chat.chat_completion_chunk import Choice as Delta, ChoiceDelta
from pydantic import JsonValue

from replan.base.errors import ReplanError
from replan.log.events.types import AnswerReset, AnswerToken
from replan.log.report import RunReport
from replan.server.doors.chat_wire import ChatBody, ChatMessage, comparable, openai_error
from replan.server.exchange import Begun, Ended, Exchange, RequestNames
from replan.server.exchange_texts import progress_line
from replan.server.problems import as_refusal

_SENT_BEFORE = (
    "\n\n(This message was sent before. To give it as an answer now, name the question: "
    "`{}=ANSWER`.)"
)


def next_key(body: ChatBody, reply: str) -> JsonValue:
    """By what the next request finds a run that waits: its session, or all that was said."""
    return _key(body, [*body.messages, ChatMessage(role="assistant", content=reply)])


async def begin(exchange: Exchange, body: ChatBody, idempotency_key: str) -> Begun:
    """Begin a run, or continue the one that waits."""
    # What waits has asked something before: of a new conversation, nothing is looked up.
    is_new = not body.session_id and all(message.role != "assistant" for message in body.messages)
    # The server keeps what was said in a session, from its first request on.
    is_kept = body.session_id and await exchange.knows(body.session_id)
    news = body.messages[-1:] if is_kept else body.messages
    # The thread of its runs, too: what was said in it is there.
    conversation = exchange.conversation(body.session_id)
    return await exchange.begin_or_continue(
        None if is_new else _key(body, body.messages[:-1]),
        lambda: {"messages": [message.message for message in news]},
        lambda _: body.messages[-1].answer,
        _names(body, idempotency_key),
        conversation,
        conversation=conversation,
    )


async def completion(exchange: Exchange, body: ChatBody, begun: Begun) -> ChatCompletion:
    """Wait for the answer.

    Raises:
        ReplanError: There is none, because the run broke off.
    """
    end = await exchange.wait_for_end(begun)
    fields: dict[str, Any] = {}
    if body.tells_course:
        lines = [progress_line(event) async for event in exchange.events(begun)]
        fields["reasoning_content"] = "".join(lines)
    message: Any = {"role": "assistant", "content": _reply(body, end), "refusal": None, **fields}
    return ChatCompletion(
        **_head(exchange, begun, "chat.completion"),
        choices=[
            Choice(
                index=0,
                message=ChatCompletionMessage(**message),
                finish_reason=_finish(end.report),
                logprobs=None,
            )
        ],
        usage=_usage(end.report),
        **_run_of(body, end),
    )


async def pieces(exchange: Exchange, body: ChatBody, begun: Begun) -> AsyncGenerator[str]:
    """Stream the answer piece by piece; failures are errors in OpenAI's form."""
    head = _head(exchange, begun, "chat.completion.chunk")
    yield _piece(head, {"role": "assistant", "content": ""})
    async with aclosing(exchange.parts(begun)) as parts:
        async for part in parts:
            match part:
                case AnswerToken(text=text):
                    yield _piece(head, {"content": text})
                case AnswerReset():
                    yield _piece(head, {"content": "\n\n"})
                case ReplanError():
                    yield f"data: {json.dumps(openai_error(as_refusal(part)))}\n\n"
                    return
                case Ended():
                    for piece in _last_pieces(head, body, part):
                        yield piece
                case _ if body.tells_course and (line := progress_line(part)):
                    yield _piece(head, {"reasoning_content": line})
                case _:
                    continue
    yield "data: [DONE]\n\n"


def _last_pieces(head: Mapping[str, Any], body: ChatBody, end: Ended) -> Iterator[str]:
    if rest := end._replace(reply=_reply(body, end)).rest:
        yield _piece(head, {"content": rest})
    yield _piece({**head, **_run_of(body, end)}, {}, _finish(end.report))
    if body.has_usage:
        usage = ChatCompletionChunk(**head, choices=[], usage=_usage(end.report))
        yield f"data: {usage.model_dump_json(exclude_unset=True)}\n\n"


def _head(exchange: Exchange, begun: Begun, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{begun.run.run_id}",
        "object": kind,
        "created": int(exchange.served.clock().timestamp()),
        "model": exchange.team,
    }


def _piece(
    head: Mapping[str, Any],
    delta: Mapping[str, Any],
    finish: Literal["stop", "length"] | None = None,
) -> str:
    choice = Delta(index=0, delta=ChoiceDelta(**delta), finish_reason=finish)
    chunk = ChatCompletionChunk(**head, choices=[choice])
    return f"data: {chunk.model_dump_json(exclude_unset=True)}\n\n"


def _reply(body: ChatBody, end: Ended) -> str:
    """The reply; a repetition after which something else is asked says how that is answered."""
    is_newest = body.session_id and end.report.outcome == "waiting"
    if not (end.is_repeated and is_newest):
        return end.reply
    return end.reply + _SENT_BEFORE.format(end.report.pending_questions[0].key)


def _run_of(body: ChatBody, end: Ended) -> dict[str, Any]:
    """What the form of OpenAI has no place for."""
    told = {"run_id": end.report.run_id, "outcome": end.report.outcome}
    return {"replan": {**told, **({"unused": unused} if (unused := body.unused) else {})}}


def _key(body: ChatBody, messages: Sequence[ChatMessage]) -> JsonValue:
    """The key of a conversation: its session id, else its messages."""
    return body.session_id or comparable(messages)


def _names(body: ChatBody, idempotency_key: str) -> RequestNames:
    """What a request is known by: everything that was said, or the key of its client."""
    messages = [message.model_dump(mode="json") for message in body.messages]
    said: JsonValue = ["said", body.session_id, *messages]
    if idempotency_key:
        return RequestNames(ids=(["idempotency", idempotency_key],), content=said)
    return RequestNames(history=said)


def _finish(report: RunReport) -> Literal["stop", "length"]:
    return "length" if report.limit_reached else "stop"


def _usage(report: RunReport) -> CompletionUsage:
    used = report.calls
    return CompletionUsage(
        prompt_tokens=used.input_tokens,
        completion_tokens=used.output_tokens,
        total_tokens=used.total_tokens,
    )
