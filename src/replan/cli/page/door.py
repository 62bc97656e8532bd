"""What is around a server with pages: the path of a proxy, and what browsers may do."""

from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer` a browser says about our own forms that their origin is `null`.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_OWN = ("same-origin", "none")


@dataclass(frozen=True, kw_only=True)
class Door:
    """Takes the prefix off a path, refuses forms of other sites, and adds the policy.

    Attributes:
        app: The server's gate, with everything behind it.
        prefix: What a proxy in front of it may leave before the path.
    """

    app: ASGIApp
    prefix: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and hand it on."""
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        if self.prefix and (path == self.prefix or path.startswith(f"{self.prefix}/")):
            scope = {**scope, "path": path.removeprefix(self.prefix) or "/"}
            scope.pop("raw_path", None)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        is_foreign = headers.get("sec-fetch-site", "none") not in _OWN
        if scope["method"] not in ("GET", "HEAD") and "origin" not in headers and is_foreign:
            refused = Response("A page of another site may not act here.\n", 403)
            await refused(scope, receive, guarded)
            return
        await self.app(scope, receive, guarded)
