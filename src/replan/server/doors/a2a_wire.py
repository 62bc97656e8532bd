"""The content of A2A messages: texts, values and files, in requests and answers."""

import json
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from a2a.types.a2a_pb2 import Message, Part
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    TaskNotFoundError,
)
from google.protobuf.json_format import MessageToDict
from langchain_core.messages import HumanMessage
from pydantic import JsonValue

from replan.errors import ReplanError
from replan.runs.asked.asks import Ask
from replan.runs.asked.attached import block_of
from replan.server.bodies import NAME, checked_file_name
from replan.server.doors.conversations import answers_in
from replan.server.problems import refusal_of

_LONGEST = 1_000_000
_SERVER = 500


def request_in(message: Message) -> HumanMessage:
    """Read a message as a request.

    Raises:
        A2AError: It says nothing, or has a part that a team cannot read.
    """
    blocks = [_block(each) for each in message.parts]
    if not blocks:
        raise InvalidParamsError("message.parts: it is empty. Give it a text.")
    if all(each["type"] == "text" for each in blocks):
        text = "\n\n".join(str(each["text"]) for each in blocks)
        if not 0 < len(text.strip()) <= _LONGEST:
            fix = f"Give it a text of {_LONGEST:,} characters at most."
            raise InvalidParamsError(f"message.parts: it is empty, or too long. {fix}")
        return HumanMessage(text)
    return HumanMessage(cast("Any", blocks))


def answers_of(message: Message, asks: Sequence[Ask]) -> dict[str, JsonValue]:
    """Read a message as answers: a text, a decision, or answers by key.

    Raises:
        A2AError: A part is not an answer.
        InputError: Several things are asked, and it does not say which it answers.
    """
    values: list[JsonValue] = [_value(each) for each in message.parts]
    if len(values) != 1:
        raise InvalidParamsError("message.parts: an answer is one text, or one value. Send one.")
    (value,) = values
    if isinstance(value, dict) and value.keys() <= {ask.key for ask in asks}:
        return value
    if len(asks) == 1:
        return {asks[0].key: value}
    text = value if isinstance(value, str) else json.dumps(value)
    return answers_in(text, asks, {ask.key: ask.fingerprint for ask in asks})


def checked_context(message: Message, made: str) -> str:
    """The context that a message names, or one that is made for it.

    Raises:
        InvalidParamsError: The name cannot be kept.
    """
    if not message.context_id:
        return made
    if not re.fullmatch(NAME, message.context_id):
        fix = "Begin with a letter or a digit; use letters, digits and . _ : ~ -, 100 at most."
        raise InvalidParamsError(f"message.contextId: no context can have this name. {fix}")
    return message.context_id


def error_of(error: ReplanError) -> A2AError:
    """An error of the library as one of A2A."""
    refusal = refusal_of(error)
    problem = refusal.problem
    fixes = " ".join(each.fix for each in problem.mistakes)
    text = f"{problem.detail} {fixes}".strip()
    data = problem.model_dump(mode="json", include={"status", "code", "mistakes"})
    if refusal.retry_after is not None:
        data["retry_after"] = refusal.retry_after
    if problem.code == "unknown_run":
        return TaskNotFoundError("There is no such task here.")
    if problem.status >= _SERVER:
        return InternalError(text, data)
    kind = InvalidParamsError if problem.status == 422 else InvalidRequestError  # noqa: PLR2004 - mistakes of fields
    return kind(text, data)


@contextmanager
def errors_of_a2a() -> Generator[None]:
    """Raise errors of ours as those that the protocol has for them."""
    try:
        yield
    except ReplanError as error:
        raise error_of(error) from error


def _block(part: Part) -> dict[str, Any]:
    match part.WhichOneof("content"):
        case "text":
            return {"type": "text", "text": part.text}
        case "data":
            return {"type": "text", "text": json.dumps(MessageToDict(part.data))}
        case "raw":
            name = _file_name(part.filename or "file")
            return block_of(name, part.raw, f"The file {name}", "Send less of it.")
        case _:
            text = "message.parts: an address is not fetched. Send the file itself as `raw`."
            raise ContentTypeNotSupportedError(text)


def _file_name(name: str) -> str:
    try:
        return checked_file_name(name)
    except ValueError as error:
        raise InvalidParamsError(f"message.parts: the filename: {error}.") from None


def _value(part: Part) -> JsonValue:
    match part.WhichOneof("content"):
        case "text":
            return part.text
        case "data":
            return cast("JsonValue", MessageToDict(part.data))
        case _:
            text = "message.parts: a file is not an answer. Send a text or a value."
            raise ContentTypeNotSupportedError(text)
