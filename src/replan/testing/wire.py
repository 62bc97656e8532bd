"""The OpenAI protocol as JSON: what a request says, how replies, vectors and errors look."""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from replan.prompts.sections import Call, call_of
from replan.state.usage import TokenCount
from replan.testing.faults import Reset, Truncated
from replan.testing.replies import Reply, finish_reason

_HIDDEN = frozenset({"authorization", "api-key", "x-api-key", "cookie"})
_END = b"data: [DONE]\n\n"


class BadRequest(Exception):  # noqa: N818 - named as the protocol does
    """A request that the server refuses with status 400."""

    def __init__(self, message: str, parameter: str | None = None) -> None:
        self.parameter = parameter
        super().__init__(message)


@dataclass(frozen=True)
class ChatRequest:
    """One request to a server.

    Attributes:
        body: The parsed JSON.
        headers: Its headers, names in lower case; keys and cookies are replaced by `***`.
        time: When it arrived, in seconds of the monotonic clock.
        messages: Its messages, as LangChain's.
        call: Who made it, if the prompt is Replan's.
    """

    body: Mapping[str, Any]
    headers: Mapping[str, str]
    time: float
    messages: tuple[BaseMessage, ...]
    call: Call | None

    @property
    def model(self) -> str:
        """The name of the model that was asked for."""
        return str(self.body.get("model", ""))

    @property
    def stream(self) -> bool:
        """Whether a stream was asked for."""
        return self.body.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        """Whether usage is to be reported: always, unless a stream does not ask for it."""
        options: Mapping[str, Any] = self.body.get("stream_options") or {}
        return not self.stream or options.get("include_usage") is True


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a server can do; it refuses the rest with status 400, as real ones do."""

    streaming: bool = True
    tools: bool = True  # it knows tools
    json_mode: bool = True  # it knows `response_format`
    # It insists on one system message, at the beginning, and on turns, the first of which is the
    # user's: no two messages of the same role in a row, but for the results of tools.
    strict_roles: bool = False

    def check(self, body: Mapping[str, Any]) -> None:
        asked = (
            ("stream", self.streaming),
            ("tools", self.tools),
            ("response_format", self.json_mode),
        )
        for parameter, allowed in asked:
            if body.get(parameter) and not allowed:
                msg = f"'{parameter}' is not supported by this server."
                raise BadRequest(msg, parameter)
        if self.strict_roles:
            _check_roles([message.get("role") for message in body["messages"]])


def read_request(raw: bytes, headers: Mapping[str, str], time: float) -> ChatRequest:
    try:
        body = json.loads(raw)
        messages = tuple(convert_to_messages(body["messages"]))
    except (ValueError, KeyError, TypeError, NotImplementedError) as error:
        raise BadRequest(f"The request cannot be read: {error}") from error
    shown = {k.lower(): "***" if k.lower() in _HIDDEN else v for k, v in headers.items()}
    return ChatRequest(body, shown, time, messages, call_of(messages))


def completion(request: ChatRequest, reply: Reply, number: int) -> bytes:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.refusal:
        message["refusal"] = reply.refusal
    if reply.tool_calls:
        message["tool_calls"] = _tool_calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(reply)}
    whole = _envelope(request, number, "chat.completion", [choice])
    return _json({**whole, "usage": _usage(reply.counted(request.messages))})


def chunks(
    request: ChatRequest, reply: Reply, number: int, report: Callable[[], None]
) -> Iterator[bytes]:
    """A reply as server-sent events: role, text, tools, finish reason, usage if asked for, end.

    `report` is called just before the usage. What breaks off has no events after that.
    """
    yield _delta(request, number, {"role": "assistant", "content": ""})
    reset_after = reply.fault.after if isinstance(reply.fault, Reset) else None
    for piece in reply.pieces[:reset_after]:
        yield _delta(request, number, {"content": piece})
    if reset_after is not None:
        return
    if reply.refusal:
        yield _delta(request, number, {"refusal": reply.refusal})
    if isinstance(reply.fault, Truncated) and reply.fault.how == "cut":
        return
    for index, call in enumerate(_tool_calls(reply)):
        yield _delta(request, number, {"tool_calls": [{"index": index, **call}]})
    yield _delta(request, number, {}, finish_reason(reply))
    if request.wants_usage:
        report()
        last = _envelope(request, number, "chat.completion.chunk", [])
        yield _event({**last, "usage": _usage(reply.counted(request.messages))})
    yield _END


def error_body(message: str, *, kind: str, parameter: str | None = None, code: str = "") -> bytes:
    error = {"message": message, "type": kind, "param": parameter, "code": code or None}
    return _json({"error": error})


def models_body(names: tuple[str, ...]) -> bytes:
    data = [{"id": name, "object": "model", "created": 0, "owned_by": "replan"} for name in names]
    return _json({"object": "list", "data": data})


def _check_roles(roles: list[str | None]) -> None:
    # `developer` is what OpenAI's newer models call the system.
    named = ["system" if role == "developer" else role for role in roles]
    if "system" in named[1:]:
        msg = "The system message must be the first and only one."
        raise BadRequest(msg, "messages")
    turns = named[1:] if named[:1] == ["system"] else named
    if "user" not in turns:
        msg = "There must be a message with the role 'user'."
        raise BadRequest(msg, "messages")
    if turns[0] != "user":
        msg = f"The first message after the system message must be the user's, not '{turns[0]}'."
        raise BadRequest(msg, "messages")
    for before, after in itertools.pairwise(named):
        if before == after != "tool":
            msg = f"Roles must alternate, but two '{after}' messages follow each other."
            raise BadRequest(msg, "messages")


def _tool_calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": call["id"] or f"call_{index}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
        }
        for index, call in enumerate(reply.tool_calls)
    ]


def _usage(count: TokenCount) -> dict[str, Any]:
    cached = {"prompt_tokens_details": {"cached_tokens": count.cached_tokens}}
    return {
        "prompt_tokens": count.input_tokens,
        "completion_tokens": count.output_tokens,
        "total_tokens": count.total_tokens,
        **(cached if count.cached_tokens else {}),
    }


def _envelope(
    request: ChatRequest, number: int, kind: str, choices: list[dict[str, Any]]
) -> dict[str, Any]:
    name = f"chatcmpl-{number}"
    return {"id": name, "object": kind, "created": 0, "model": request.model, "choices": choices}


def _delta(
    request: ChatRequest, number: int, delta: dict[str, Any], finish: str | None = None
) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _event(_envelope(request, number, "chat.completion.chunk", [choice]))


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + _json(data) + b"\n\n"


def _json(data: dict[str, Any]) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode()


WIDTH = 64
"""Numbers of a vector."""

_WORD = re.compile(r"\w+")


def vector_of(text: str) -> list[float]:
    """Return a vector of length 1 in which each word is at its own place, by its hash."""
    vector = [0.0] * WIDTH
    for word in _WORD.findall(text.casefold()):
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
        vector[digest[0] % WIDTH] += 1.0 if digest[1] % 2 else -1.0
    length = math.sqrt(sum(number * number for number in vector))
    return [number / length for number in vector] if length else [1.0, *vector[1:]]


def texts_in(raw: bytes) -> tuple[str, list[str]]:
    """The model and the texts of a request."""
    try:
        body = json.loads(raw)
        given = body["input"]
        texts: tuple[Any, ...] = (given,) if isinstance(given, str) else tuple(given)
    except (ValueError, KeyError, TypeError) as error:
        raise BadRequest(f"The request cannot be read: {error}") from error
    if not texts or any(not isinstance(text, str) for text in texts):
        raise BadRequest("'input' must be a text or a list of texts.", "input")
    return str(body.get("model", "")), [*texts]


def embeddings_body(model: str, texts: list[str]) -> bytes:
    """The answer, with the words of the texts as its tokens."""
    data = [
        {"object": "embedding", "index": index, "embedding": vector_of(text)}
        for index, text in enumerate(texts)
    ]
    tokens = sum(len(_WORD.findall(text)) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return json.dumps({"object": "list", "model": model, "data": data, "usage": usage}).encode()
