"""Put one reply, or the way it fails, on the wire of an HTTP server."""

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from replan.base.failures import describe, status_of
from replan.testing.faults import Hang, HttpFault, Malformed, Raised, Raw, Reset, Truncated
from replan.testing.replies import Reply
from replan.testing.wire import ChatRequest, chunks, completion, error_body

_JSON = "application/json"
_EVENTS = "text/event-stream"
_SERVER_ERROR = 500
_BROKEN_JSON = b'{"id": "chatcmpl-0", "object": "chat.completion", "choices": [{"index": 0, "mes'
# On, with no time to linger: closing the socket sends a reset instead of an orderly end.
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_KINDS = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """A request, its reply, and where both are."""

    http: web.Request  # the request as the HTTP server knows it
    request: ChatRequest  # the request as the protocol knows it
    reply: Reply  # what to answer
    number: int  # counts the server's answers
    # Called just before the usage is written, so that no client knows it earlier.
    report: Callable[[], None]


async def answer(exchange: Exchange) -> web.StreamResponse:
    await asyncio.sleep(exchange.reply.latency)
    match exchange.reply.fault:
        case HttpFault() as fault:
            return refusal(fault.status, fault.text, retry_after=fault.retry_after, code=fault.code)
        case Raised(error):
            return refusal(status_of(error) or _SERVER_ERROR, describe(error))
        case Hang():
            await asyncio.Event().wait()
        case Reset(after=0):
            _reset(exchange.http)
            return web.Response()
        case Raw() as raw:
            return _raw(raw)
        case Malformed():
            broken = b"data: " + _BROKEN_JSON + b"\n\n"
            return _raw(Raw([broken] if exchange.request.stream else _BROKEN_JSON))
        case _:
            pass
    return await (_stream(exchange) if exchange.request.stream else _whole_response(exchange))


def refusal(
    status: int,
    message: str,
    *,
    parameter: str | None = None,
    retry_after: float | None = None,
    code: str = "",
) -> web.Response:
    """An error with an HTTP status, as OpenAI writes it."""
    kind = _KINDS.get(
        status, "server_error" if status >= _SERVER_ERROR else "invalid_request_error"
    )
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    body = error_body(message, kind=kind, parameter=parameter, code=code)
    return web.Response(status=status, body=body, content_type=_JSON, headers=headers)


def _raw(raw: Raw) -> web.Response:
    """The answer of another server, as it is."""
    body, kind = raw.body, _JSON
    if isinstance(body, Mapping):
        body = json.dumps(body)
    elif not isinstance(body, str | bytes):
        kind = _EVENTS
        events = [part if isinstance(part, bytes) else _event(part) for part in body]
        body = b"".join(events)
    data = body.encode() if isinstance(body, str) else body
    return web.Response(status=raw.status, body=data, headers={"Content-Type": kind, **raw.headers})


def _event(data: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


async def _whole_response(exchange: Exchange) -> web.StreamResponse:
    body = completion(exchange.request, exchange.reply, exchange.number)
    match exchange.reply.fault:
        case Reset():
            return await _broken_off(exchange.http, body, _reset)
        case Truncated(how="cut"):
            return await _broken_off(exchange.http, body, _hang_up)
        case _:
            exchange.report()
            return web.Response(body=body, content_type=_JSON)


async def _broken_off(
    http: web.Request, body: bytes, end: Callable[[web.Request], None]
) -> web.StreamResponse:
    """Send half of a body, then end the connection."""
    response = web.StreamResponse(headers={"Content-Type": _JSON})
    response.content_length = len(body)
    await response.prepare(http)
    await response.write(body[: len(body) // 2])
    end(http)
    return response


async def _stream(exchange: Exchange) -> web.StreamResponse:
    http, reply = exchange.http, exchange.reply
    response = web.StreamResponse(headers={"Content-Type": _EVENTS, "Cache-Control": "no-cache"})
    await response.prepare(http)
    events = chunks(exchange.request, reply, exchange.number, exchange.report)
    for index, chunk in enumerate(events):
        # The first chunk tells the role, the second has the first piece of the text.
        is_further = 1 < index <= len(reply.pieces)
        await asyncio.sleep(reply.chunk_delay if is_further else 0)
        await response.write(chunk)
    if isinstance(reply.fault, Reset):
        _reset(http)
    else:
        await response.write_eof()
    return response


def _reset(http: web.Request) -> None:
    transport = http.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    transport.abort()


def _hang_up(http: web.Request) -> None:
    if http.transport is not None:
        http.transport.close()
