"""The one gate before everything: it checks the host, the origin and the token of each request."""

import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from replan.server.callers.identity import Identity
from replan.server.problems import RefusedError

logger = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "localhost", "::1")
NOBODY = Identity(name="nobody", roles=frozenset())
"""The caller of an endpoint that is open to everybody."""

Tell = Callable[[Request, RefusedError], Response]
IdentityOf = Callable[[HTTPConnection], Awaitable[Identity | None]]


def bearer(headers: Headers) -> str:
    """The token in the header `Authorization`; empty if there is none."""
    credentials = headers.getlist("authorization")
    scheme, _, token = credentials[0].partition(" ") if len(credentials) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else ""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Lets a request through, or answers it with why not.

    Attributes:
        app: What is behind it.
        hosts: The names by which the server may be called.
        identity_of: Finds who sends a request.
        is_open: The addresses that need no token.
        tell: Makes an answer of a refusal, in the form of the address of a request.
    """

    app: ASGIApp
    hosts: Collection[str]
    identity_of: IdentityOf
    is_open: Collection[str]
    tell: Tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and hand it on."""
        if scope["type"] != "http":
            # There are no other protocols behind it.
            return
        began = False

        async def note_start(message: Message) -> None:
            nonlocal began
            began = began or message["type"] == "http.response.start"
            await send(message)

        request = Request(scope, receive)
        if _has_two_lengths(Headers(scope=scope)):
            detail = "The request has Content-Length and Transfer-Encoding. Send only one of them."
            answer = self.tell(request, RefusedError(400, "two_lengths", detail))
            # What follows is a request to one of two readers, and a body to the other.
            answer.headers["Connection"] = "close"
            await answer(scope, receive, send)
            return
        try:
            scope.setdefault("state", {})["who"] = await self._identify(HTTPConnection(scope))
            await self.app(scope, receive, note_start)
        except RefusedError as refusal:
            await self.tell(request, refusal)(scope, receive, send)
        except Exception:
            logger.exception("a request failed", extra={"path": scope["path"]})
            if began:
                raise
            detail = "The server failed. Its log says why; stored runs are safe."
            failed = RefusedError(500, "failed", detail)
            await self.tell(request, failed)(scope, receive, send)

    async def _identify(self, request: HTTPConnection) -> Identity:
        """Who calls.

        Raises:
            RefusedError: The host, the origin or the token is not valid for this server.
        """
        headers = request.headers
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _name_of(hosts[0]) not in self.hosts:
            there = ", ".join(self.hosts)
            detail = f"This server does not have this name. Its names are: {there}."
            fix = "Start it with --allowed-host for another name."
            raise RefusedError(421, "wrong_host", f"{detail} {fix}")
        for origin in headers.getlist("origin"):
            if urlsplit(origin).netloc.lower() != hosts[0].lower():
                detail = "A page of another origin may not call this server."
                raise RefusedError(
                    403, "wrong_origin", f"{detail} Serve the page from the same address."
                )
        if request.scope["path"] in self.is_open:
            return NOBODY
        identity = await self.identity_of(request)
        if identity is None:
            detail = "There is no valid token. Send it in the header Authorization, after Bearer."
            raise RefusedError(401, "no_token", detail)
        return identity


def _has_two_lengths(headers: Headers) -> bool:
    return "transfer-encoding" in headers and "content-length" in headers


def _name_of(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
