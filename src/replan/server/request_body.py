"""Reads a request into a value: bounded in size, depth and time, with every mistake named."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar, get_origin

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from replan.base.declared.mistakes import mistakes_in
from replan.base.errors import mistake
from replan.base.texts.storable import DEEPEST
from replan.base.values import adapter
from replan.server.problems import RefusedError, bad_request
from replan.state.session.context_fields import ValueReader

V = TypeVar("V", bound=BaseModel)

MOST_BYTES = 32_000_000
"""The size of a body at most: twenty files are sent with one, and a plan of a thousand steps."""

MOST_VALUES = 200_000
"""The values in a body at most: texts, numbers, lists and mappings at any depth."""

MOST_ENTRIES = 10_000
"""The entries of a list or a mapping in a body at most, if its kind does not have another bound."""

BODY_SECONDS = 30.0
"""Seconds in which a body has to arrive."""

_MOST_MISTAKES = 100  # that are named of one body

_BIG = 10_000
"""Bytes from which a body is read in a thread, outside the event loop."""

_SEE = "GET /openapi.json describes this field."


async def read_body(request: Request, kind: type[V], seconds: float) -> V:
    """Read the body of a request.

    Raises:
        RefusedError: It is too large, too slow, no JSON, or has wrong fields.
    """
    content = await read_bytes(request, seconds)
    if len(content) > _BIG:
        return await asyncio.to_thread(_parse, content, kind)
    return _parse(content, kind)


def read_query(request: Request, kind: type[V]) -> V:
    """Read what is after the question mark.

    Raises:
        RefusedError: It has wrong fields.
    """
    fields: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        field = kind.model_fields.get(name)
        is_list = field is not None and get_origin(field.annotation) is tuple
        fields[name] = values if is_list else values[-1]
    return check_fields(kind, lambda: kind.model_validate(fields))


async def read_bytes(request: Request, seconds: float, most: int = MOST_BYTES) -> bytes:
    """The body of a request, whose declared length may be wrong."""
    parts, size = list[bytes](), 0
    if _declared_length(request) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
    except TimeoutError:
        detail = f"The body did not arrive within {seconds:g} seconds. Send all of it."
        raise RefusedError(408, "slow_request", detail) from None
    except ClientDisconnect:
        raise RefusedError(400, "half_request", "The body was cut off. Send all of it.") from None
    return b"".join(parts)


def _declared_length(request: Request) -> int:
    size = request.headers.get("content-length", "")
    return int(size) if size.isascii() and size.isdigit() and len(size) < len("9" * 18) else 0


def _too_large(most: int) -> RefusedError:
    detail = f"The body is larger than {most:,} bytes. Send less, or fewer files."
    return RefusedError(413, "too_large", detail)


def _parse(content: bytes, kind: type[V]) -> V:
    value = read_json(content, getattr(kind, "most_entries", MOST_ENTRIES))
    return check_fields(kind, lambda: adapter(kind).validate_json(json.dumps(value)))


async def read_call(request: Request, seconds: float) -> bytes:
    """The body of a call by JSON-RPC, which is JSON that can be stored.

    Raises:
        RefusedError: It is too large, too slow, or no such JSON.
    """
    content = await read_bytes(request, seconds)
    await asyncio.to_thread(read_json, content)
    return content


def replay(content: bytes, receive: Receive) -> Receive:
    """Receive a body that was read, and then what comes after it."""
    parts: list[Message] = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive_again() -> Message:
        return parts.pop() if parts else await receive()

    return receive_again


def read_json(content: bytes, most_entries: int = MOST_ENTRIES) -> object:
    """Read JSON that can be stored and sent without loss; it is counted before it is checked.

    Raises:
        RefusedError: It is not JSON, too deep, too long, or has a value that cannot be stored.
    """
    try:
        value: object = json.loads(content) if content.strip() else {}
    except RecursionError:
        raise RefusedError(
            400, "bad_json", "The body is nested too deep. Use fewer levels."
        ) from None
    except json.JSONDecodeError as error:
        fix = "Send JSON, with Content-Type: application/json."
        wrong = mistake("", None, error.msg, fix, "bad_json", error.lineno, error.colno)
        detail = f"The body is not JSON: {error.msg}, line {error.lineno}, column {error.colno}."
        raise RefusedError(400, "bad_json", detail, [wrong]) from None
    except ValueError:
        detail = "The body is not JSON in UTF-8, or has a number of too many digits. Send JSON."
        raise RefusedError(400, "bad_json", detail) from None
    reading = ValueReader(
        MOST_BYTES,
        "Send only what JSON can hold, and less.",
        deepest=DEEPEST,
        most_values=MOST_VALUES,
        most_entries=most_entries,
    )
    copy: object = reading.plain(value)
    if reading.mistakes:
        named = islice(reading.mistakes.items(), _MOST_MISTAKES)
        raise bad_request([replace(each, field=each.field if path else "") for path, each in named])
    return copy


def check_fields(kind: type[V], read: Callable[[], V]) -> V:
    """Read a value; every mistake in it is named.

    Raises:
        RefusedError: It has wrong fields.
    """
    try:
        return read()
    except ValidationError as error:
        raise bad_request([*mistakes_in(error, kind, _SEE)]) from None
