"""The ways to an MCP server: a program that is started, or an address; its answers are bounded.

MCP's client makes errors of answers that are not messages; of some it does not say what came, and
of none whether the request was carried out. So such an answer is replaced by a JSON-RPC error.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR

from replan.base.errors import ReplyTooLongError
from replan.base.failures import describe
from replan.base.values import fields_in
from replan.models.providers.reply_body import whole
from replan.specialists.tool_servers.results import LONGEST_MESSAGE, TOO_LONG


@dataclass(frozen=True)
class Program:
    """A program that speaks over its standard streams."""

    command: str
    args: Sequence[str]
    env: Mapping[str, str] = field(repr=False)  # in addition to the few that every program needs
    folder: Path | None

    def __str__(self) -> str:
        return f"the program {self.command}"


@dataclass(frozen=True)
class Address:
    """A server that speaks streamable HTTP."""

    url: str
    headers: Mapping[str, str] = field(repr=False)

    def __str__(self) -> str:
        return f"the address {self.url}"


Way = Program | Address


_EVENTS = "text/event-stream"
_JSON = "application/json"
_SESSION = "mcp-session-id"
_PARTING = 2.0
"""Seconds for the message that a session is over, which may be lost."""


class ToolClient(httpx2.AsyncClient):
    """Sends the messages for one tool server."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method == "DELETE":
            request.extensions["timeout"] = httpx2.Timeout(_PARTING).as_dict()
        try:
            response = await _bounded(await super().send(request, **options))
        except (httpx2.HTTPError, ReplyTooLongError) as error:
            if request.method != "POST":
                raise
            return _error_response(request, *_code_and_problem(error))
        failure = _unusable(request, response) if request.method == "POST" else None
        return _error_response(request, *failure) if failure else response


def _code_and_problem(error: httpx2.HTTPError | ReplyTooLongError) -> tuple[int, str]:
    """The code and the words for a request to which nothing came that could be read."""
    match error:
        case ReplyTooLongError():
            return PARSE_ERROR, TOO_LONG
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return INTERNAL_ERROR, f"it cannot be reached ({describe(error)})"
        case _:
            return PARSE_ERROR, f"its answer was cut off ({describe(error)})"


def _unusable(request: httpx2.Request, response: httpx2.Response) -> tuple[int, str] | None:
    """The code and the text for an unusable answer; None if it may be usable."""
    status = response.status_code
    text = f"{status} {response.reason_phrase}".strip()
    if status == HTTPStatus.NOT_FOUND and _SESSION in request.headers:
        return INVALID_REQUEST, "it has forgotten its session"
    if status >= HTTPStatus.BAD_REQUEST and not _is_error(response):
        # Who refuses has done nothing; a gateway that gave up does not know what the server did.
        is_refused = status < HTTPStatus.INTERNAL_SERVER_ERROR
        return INTERNAL_ERROR if is_refused else PARSE_ERROR, f"it answered with status {text}"
    is_message = _kind(response) and status != HTTPStatus.ACCEPTED
    if response.is_success and not is_message and _is_asking(request):
        return PARSE_ERROR, f"its answer with status {text} is not a message"
    return None


async def _bounded(response: httpx2.Response) -> httpx2.Response:
    """Read the body, but that of a stream: each of its events is bounded where it is read."""
    if response.is_success and _kind(response) == _EVENTS:
        return response
    read = await whole(response, LONGEST_MESSAGE)
    read.next_request = response.next_request
    return read


def _kind(response: httpx2.Response) -> str:
    """Which kind of message a body may hold; empty if none."""
    kind = response.headers.get("content-type", "").lower()
    return next((media_type for media_type in (_EVENTS, _JSON) if kind.startswith(media_type)), "")


def _is_error(response: httpx2.Response) -> bool:
    return isinstance(_fields(response.content).get("error"), dict)


def _is_asking(request: httpx2.Request) -> bool:
    """Whether a message needs an answer."""
    return {"id", "method"} <= _fields(request.content).keys()


def _fields(body: bytes) -> dict[str, Any]:
    try:
        return fields_in(json.loads(body))
    except (ValueError, RecursionError):
        return {}


def _error_response(request: httpx2.Request, code: int, problem: str) -> httpx2.Response:
    """An answer that the client takes for the error of this request."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": problem}}
    return httpx2.Response(HTTPStatus.BAD_GATEWAY, json=error, request=request)
