"""How a browser gets in: an address that works once, or a token, becomes a cookie."""

import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, unquote

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response

from replan.server.gate import bearer


@dataclass(frozen=True, kw_only=True)
class Entrance:
    """The cookie of a page, and the code that is good for one cookie.

    Attributes:
        prefix: The path below which the pages are; empty or `/tools/replan`.
        cookie: The name of the cookie; it holds the port, since cookies know none.
        codes: The tokens of unused codes.
    """

    prefix: str
    cookie: str
    codes: dict[str, str] = field(default_factory=dict[str, str], repr=False)

    def new_code(self, token: str) -> str:
        """Make a code that is good for a token, once."""
        code = secrets.token_urlsafe(24)
        self.codes[code] = token
        return code

    def token_for(self, code: str) -> str:
        """The token for a code, which is good no more; empty if it is not good."""
        return self.codes.pop(code, "")

    def token_in(self, headers: Headers) -> str:
        """The token of a request: in the header `Authorization`, else in the cookie."""
        if given := bearer(headers):
            return given
        jar: SimpleCookie = SimpleCookie()
        try:
            jar.load("; ".join(headers.getlist("cookie")))
        except CookieError:
            return ""
        return unquote(jar[self.cookie].value) if self.cookie in jar else ""

    def enter(self, token: str) -> Response:
        """Let a browser in."""
        answer = RedirectResponse(f"{self.prefix}/", 303)
        answer.set_cookie(
            self.cookie,
            quote(token),
            path=f"{self.prefix}/",
            httponly=True,
            samesite="strict",
        )
        return answer

    def leave(self) -> Response:
        """Take the cookie away."""
        answer = RedirectResponse(f"{self.prefix}/enter", 303)
        answer.delete_cookie(self.cookie, path=f"{self.prefix}/", httponly=True, samesite="strict")
        return answer


def form_token(token: str) -> str:
    """What a form of a page carries: only who has the cookie's token can know it."""
    return hmac.new(token.encode("utf-8", "replace"), b"form of a page", "sha256").hexdigest()
