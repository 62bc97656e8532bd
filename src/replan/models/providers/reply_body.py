"""Bodies of a model server's replies, read no further than a reply goes."""

import json
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import cast

import httpx2

from replan.base.errors import ConfigurationError, ReplyTooLongError
from replan.base.values import fields_in

LONGEST_BODY = 2_000_000
"""Bytes of a whole reply, and of one event of a stream; counted after decompression."""

LONGEST_STREAM = 40_000_000
"""Bytes of a stream: most of them are around the few characters of each token."""

_MOST_LINES = 1_000
_DECODED = ("content-encoding", "content-length", "transfer-encoding")
# How an event of a stream ends; of a blank line after `\r\n`, these are the last three bytes.
_ENDS = (b"\n\n", b"\n\r\n", b"\r\r")
_LONGEST_END = 3


def check_no_redirect(response: httpx2.Response) -> None:
    """Refuse to send a conversation to another address than the one that was named."""
    if not response.has_redirect_location:
        return
    requested, target = (
        response.request.url,
        response.request.url.join(response.headers["location"]),
    )
    raise ConfigurationError(
        "base_url",
        _origin(requested),
        f"the server redirects to {_origin(target)} (status {response.status_code}), which is not "
        "followed, since the conversation would go there",
        "Give the address of the server itself, if you trust it.",
    )


async def whole(response: httpx2.Response, longest: int = LONGEST_BODY) -> httpx2.Response:
    parts, length = list[bytes](), 0
    try:
        async for part in response.aiter_bytes():
            length += len(part)
            if length > longest:
                raise ReplyTooLongError(longest, "bytes")
            parts.append(part)
    finally:
        await response.aclose()
    return httpx2.Response(
        response.status_code,
        headers=_headers(response),
        content=b"".join(parts),
        request=response.request,
        extensions=response.extensions,
    )


def streamed(response: httpx2.Response) -> httpx2.Response:
    """Return a reply whose events are read as they come, as long as they are within the bounds."""
    return httpx2.Response(
        response.status_code,
        headers=_headers(response),
        stream=_Events(response),
        request=response.request,
        extensions=response.extensions,
    )


class _Events(httpx2.AsyncByteStream):
    """The body of a stream; `ReplyTooLongError` where it, or one event of it, does not end."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total, since, lines, tail = 0, 0, 0, b""
        async for part in self._response.aiter_bytes():
            total += len(part)
            seen = tail + part
            if end := _last_end(seen):
                since, lines = len(seen) - end, seen.count(b"\n", end)
            else:
                since, lines = since + len(part), lines + part.count(b"\n")
            if total > LONGEST_STREAM or since > LONGEST_BODY or lines > _MOST_LINES:
                longest = LONGEST_STREAM if total > LONGEST_STREAM else LONGEST_BODY
                raise ReplyTooLongError(longest, "bytes")
            tail = seen[-_LONGEST_END + 1 :]
            yield part

    async def aclose(self) -> None:
        await self._response.aclose()


def _last_end(seen: bytes) -> int:
    """Where the last event ends that ends in a piece; 0 if none does."""
    return max(at + len(end) if (at := seen.rfind(end)) >= 0 else 0 for end in _ENDS)


def _headers(response: httpx2.Response) -> httpx2.Headers:
    kept = [
        (name, value)
        for name, value in response.headers.multi_items()
        if name.lower() not in _DECODED
    ]
    return httpx2.Headers(kept)


def _origin(url: httpx2.URL) -> str:
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"


_STATUS_OF_KIND = {
    "invalid_request_error": HTTPStatus.BAD_REQUEST,
    "authentication_error": HTTPStatus.UNAUTHORIZED,
    "insufficient_quota": HTTPStatus.PAYMENT_REQUIRED,
    "permission_error": HTTPStatus.FORBIDDEN,
    "not_found_error": HTTPStatus.NOT_FOUND,
    "rate_limit_error": HTTPStatus.TOO_MANY_REQUESTS,
    "overloaded_error": HTTPStatus.SERVICE_UNAVAILABLE,
}
_PLACES = ("code", "status", "status_code", "type")


def status_in_body(body: bytes) -> int | None:
    """Return the HTTP status that a chat completion's JSON means; None if it is a reply."""
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        # LangChain raises an error for what is not JSON, and shows it.
        return None
    whole = fields_in(value)
    if _is_reply(whole):
        return None
    places = (fields_in(whole.get("error")), whole)
    statuses = (_status(place.get(name)) for place in places for name in _PLACES)
    return next((status for status in statuses if status), HTTPStatus.BAD_GATEWAY)


def _is_reply(value: dict[str, object]) -> bool:
    choices = value.get("choices")
    first = cast("list[object]", choices)[:1] if isinstance(choices, list) else []
    return any(fields_in(fields_in(choice).get("message")) for choice in first)


def _status(value: object) -> int | None:
    if isinstance(value, str):
        number = int(value) if value.isdecimal() else _STATUS_OF_KIND.get(value, 0)
    else:
        number = value if isinstance(value, int) else 0
    return number if HTTPStatus.BAD_REQUEST <= number < 600 else None  # noqa: PLR2004
