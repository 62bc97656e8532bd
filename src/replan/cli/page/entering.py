"""How a browser gets in: an address that works once, or a token, begins a session of the page."""

import hmac
import logging
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response

from replan.server.callers.identity import Identity
from replan.server.callers.tokens import Tokens, digest_of
from replan.server.gate import bearer

logger = logging.getLogger(__name__)

PAGES = "/ui"
"""The path below which the pages are."""

MOST_SESSIONS = 100
"""Browsers at most that are in; the one that has been in for the longest time leaves."""

_AGE = 30 * 24 * 3600.0  # seconds after which a browser enters again
_HOST_ONLY = "__Host-"  # browsers take such a cookie from this host alone, by TLS alone


@dataclass(frozen=True)
class _Session:
    """One browser that is in."""

    began: float  # seconds since 1970
    caller: str  # the digest of its token, in hexadecimal digits
    jwt: str = ""  # the token itself, if an identity provider made it


_SESSIONS = TypeAdapter(dict[str, _Session])


@dataclass(frozen=True, kw_only=True)
class Entrance:
    """The sessions of the browsers, by the digests of what their cookies hold.

    Attributes:
        prefix: The path below which a proxy offers the server; empty or `/tools/replan`.
        cookie: The name of the cookie; it holds the port, since cookies know none.
        tokens: Who may enter.
        clock: The time, in seconds since 1970.
        kept: The file that has the sessions from start to start; None for none.
        codes: The tokens of unused codes.
    """

    prefix: str
    cookie: str
    tokens: Tokens
    clock: Callable[[], float]
    kept: Path | None = None
    codes: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    _sessions: dict[str, _Session] = field(default_factory=dict[str, _Session], repr=False)

    def __post_init__(self) -> None:
        self._sessions.update(_kept_sessions(self.kept))

    @property
    def home(self) -> str:
        """What is before every path of a page."""
        return self.prefix + PAGES

    def new_code(self, token: str) -> str:
        """Make a code that is good for a token, once."""
        code = secrets.token_urlsafe(24)
        self.codes[code] = token
        return code

    def token_for(self, code: str) -> str:
        """The token for a code, which is good no more; empty if it is not good."""
        return self.codes.pop(code, "")

    def credential_in(self, request: HTTPConnection) -> str:
        """What a request shows: the token in its header `Authorization`, else its cookie."""
        if given := bearer(request.headers):
            return given
        return request.cookies.get(self._name(request), "")

    async def identity_of(self, request: HTTPConnection) -> Identity | None:
        """Who sends a request; None if it shows neither a token nor a session.

        Raises:
            RefusedError: The keys of the identity provider cannot be read.
        """
        if given := bearer(request.headers):
            return await self.tokens.identity_of(given)
        session = self._sessions.get(_digest(self.credential_in(request)))
        if session is None or self.clock() - session.began > _AGE:
            return None
        if session.jwt:
            return await self.tokens.identity_of(session.jwt)
        return self.tokens.by_digest.get(bytes.fromhex(session.caller))

    def enter(self, request: HTTPConnection, token: str) -> Response:
        """Let a browser in, as the caller of a token."""
        answer, session_id = RedirectResponse(f"{self.home}/", 303), secrets.token_urlsafe(32)
        caller, now = digest_of(token), self.clock()
        jwt = "" if caller in self.tokens.by_digest else token
        self._end(self.credential_in(request))
        self._sessions[_digest(session_id)] = _Session(now, caller.hex(), jwt)
        oldest = sorted(self._sessions, key=lambda each: self._sessions[each].began)
        for session in oldest[:-MOST_SESSIONS]:
            del self._sessions[session]
        self._keep()
        answer.set_cookie(self._name(request), session_id, **self._attributes(request))
        return answer

    def leave(self, request: HTTPConnection) -> Response:
        """End the session of a browser, and take its cookie away."""
        answer = RedirectResponse(f"{self.home}/enter", 303)
        self._end(self.credential_in(request))
        self._keep()
        answer.delete_cookie(self._name(request), **self._attributes(request))
        return answer

    def _end(self, session_id: str) -> None:
        self._sessions.pop(_digest(session_id), None)

    def _name(self, request: HTTPConnection) -> str:
        is_host_only = _is_by_tls(request) and not self.prefix
        return f"{_HOST_ONLY}{self.cookie}" if is_host_only else self.cookie

    def _attributes(self, request: HTTPConnection) -> Any:
        path, by_tls = f"{self.prefix}/", _is_by_tls(request)
        return {"path": path, "secure": by_tls, "httponly": True, "samesite": "strict"}

    def _keep(self) -> None:
        """Write the sessions for later starts; none whose token this process alone has."""
        if self.kept is None:
            return
        kept = {name: session for name, session in self._sessions.items() if not session.jwt}
        new = self.kept.with_name(f"{self.kept.name}.{secrets.token_hex(4)}")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(_SESSIONS.dump_json(kept))
        new.replace(self.kept)


def _is_by_tls(request: HTTPConnection) -> bool:
    # The server takes the scheme from `X-Forwarded-Proto` where the proxy is one that it trusts.
    return request.url.scheme == "https"


def _digest(session_id: str) -> str:
    return sha256(session_id.encode("utf-8", "replace")).hexdigest()


def _kept_sessions(where: Path | None) -> dict[str, _Session]:
    """The sessions of earlier starts; without a file that can be read, browsers enter again."""
    if where is None or not where.exists():
        return {}
    try:
        return _SESSIONS.validate_json(where.read_bytes())
    except (OSError, ValueError):
        logger.warning("the sessions of the page cannot be read", extra={"file": str(where)})
        return {}


def form_token(credential: str) -> str:
    """What a form of a page carries: only who has the session of a browser can know it."""
    return hmac.new(credential.encode("utf-8", "replace"), b"form of a page", "sha256").hexdigest()
