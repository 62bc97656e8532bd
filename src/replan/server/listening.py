"""Listens on an address, and ends without leaving runs in the middle."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from replan.base.errors import InputError

HEADER_SECONDS = 15.0
"""Seconds in which a new connection has to send the head of its first request."""

_GRACE = 5
_BACKLOG = 1024


class _PatientProtocol(H11Protocol):
    """HTTP/1.1, which drops clients that stop in the middle of a request."""

    def __init__(self, *args: Any, seconds: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._timer = self.loop.call_later(self._seconds, self._end_if_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _end_if_silent(self) -> None:
        # uvicorn sets what it has of a request once its head is there.
        if getattr(self, "cycle", None) is None and not self.transport.is_closing():
            self.transport.close()


class _Server(uvicorn.Server):
    """uvicorn, which leaves the signals to its caller."""

    def __init__(self, config: uvicorn.Config, before: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._before = before

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals as they are."""
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; streams end by themselves once their runs rest."""
        await self._before()
        await super().shutdown(sockets)


def bind_socket(host: str, port: int) -> socket.socket:
    """A socket that listens on an address.

    Raises:
        InputError: The address cannot be taken.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        problem = f"The server cannot listen on {host}, port {port}: {why}."
        raise InputError(f"{problem} Give another --port, or 0 for a free one.") from None


@asynccontextmanager
async def listening(
    app: ASGIApp,
    listener: socket.socket,
    before_end: Callable[[], Awaitable[None]],
    head_seconds: float = HEADER_SECONDS,
) -> AsyncGenerator[None]:
    """Serve an application on a socket until the block is left.

    Args:
        app: The application.
        listener: The socket.
        before_end: Is awaited before the connections are closed.
        head_seconds: Seconds in which the head of a first request has to arrive.
    """
    options: Any = {
        "http": partial(_PatientProtocol, seconds=head_seconds),
        "ws": "none",
        "lifespan": "off",
        "loop": "none",
    }
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        **options,
    )
    server = _Server(config, before_end)
    serving = asyncio.ensure_future(server.serve([listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await serving
