"""All addresses of the pages behind their gate, as one ASGI application."""

import secrets
from collections.abc import Collection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from replan.server.gate import LOOPBACK, NOBODY, Gate
from replan.server.problems import RefusedError
from replan.server.served_teams import ServedTeams
from replan.ui.acts.pages import ACTING
from replan.ui.door import Door
from replan.ui.entering import Entrance
from replan.ui.forms import read_fields
from replan.ui.htmx import script
from replan.ui.read_runs import Readings
from replan.ui.run_page import changes, one_run, prompt, step, whole_text
from replan.ui.runs_page import remarks, runs
from replan.ui.site import Page, Site, refusal_page, templates
from replan.ui.terminal_runs import Terminals

_STYLE = (Path(__file__).parent / "static" / "page.css").read_bytes()
_KEPT = {"Cache-Control": "private, max-age=3600"}


async def _entrance(site: Site, request: Request) -> Response:
    """Take the code of an opening address, or show where a token can be typed."""
    code = parse_qs(request.url.query).get("code", [""])[0]
    if token := site.entrance.token_for(code):
        return site.entrance.enter(request, token)
    return site.page(request, "enter", 401 if code else 200, is_used=bool(code), is_wrong=False)


async def _enter(site: Site, request: Request) -> Response:
    """Take a typed token."""
    token = (await read_fields(site, request)).get("token", "").strip()
    if await site.served.tokens.identity_of(token) is not None:
        return site.entrance.enter(request, token)
    return site.page(request, "enter", 401, is_used=False, is_wrong=True)


async def _leave(site: Site, request: Request) -> Response:
    return site.entrance.leave(request)


async def _script(_site: Site, _: Request) -> Response:
    return Response(script(), media_type="text/javascript", headers=_KEPT)


async def _style(_site: Site, _: Request) -> Response:
    return Response(_STYLE, media_type="text/css", headers={"Cache-Control": "no-cache"})


PAGES = (
    Page(method="GET", path="/", handler=runs),
    Page(method="GET", path="/remarks", handler=remarks),
    Page(method="GET", path="/runs/{run_id}", handler=one_run),
    Page(method="GET", path="/runs/{run_id}/changes", handler=changes),
    Page(method="GET", path="/runs/{run_id}/steps/{step:int}", handler=step),
    Page(method="GET", path="/runs/{run_id}/prompts/{seq:int}", handler=prompt),
    Page(method="GET", path="/runs/{run_id}/texts/{ref}", handler=whole_text),
    Page(method="GET", path="/enter", handler=_entrance, role=None),
    Page(method="POST", path="/enter", handler=_enter, role=None),
    Page(method="GET", path="/leave", handler=_leave, role=None),
    Page(method="GET", path="/lib/htmx.js", handler=_script, role=None),
    Page(method="GET", path="/lib/page.css", handler=_style, role=None),
    *ACTING,
)
"""What the pages answer."""


def application(
    served: ServedTeams,
    entrance: Entrance,
    hosts: Collection[str] = LOOPBACK,
    terminals: Terminals | None = None,
) -> ASGIApp:
    """The pages for the teams of a server.

    Args:
        served: The teams and their runs.
        entrance: Who gets in, and under which path.
        hosts: The names by which the pages may be called.
        terminals: What continues runs that a terminal began.
    """
    boot = secrets.token_hex(4)
    site = Site(
        served=served,
        entrance=entrance,
        boot=boot,
        templates=templates(),
        readings=Readings(served),
        terminals=terminals,
    )

    async def not_found(request: Request, _: Exception) -> Response:
        detail = f"There is no page {request.url.path[:100]} here."
        return refusal_page(site, request, RefusedError(404, "unknown_page", detail))

    handlers: Any = {HTTPException: not_found}
    routes = [each.route(site) for each in PAGES]
    gate = Gate(
        app=Starlette(routes=routes, exception_handlers=handlers),
        hosts=hosts,
        identity_of=entrance.identity_of,
        is_open={each.path for each in PAGES if each.role is None},
        tell=lambda _, refusal: _Refused(site, refusal),
    )
    return Door(app=gate, prefix=entrance.prefix)


class _Refused(Response):
    """A page that says why the gate refuses."""

    def __init__(self, site: Site, refusal: RefusedError) -> None:
        super().__init__()
        self._site, self._refusal = site, refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request({**scope, "state": {"who": NOBODY}}, receive)
        if self._refusal.problem.status == 401:  # noqa: PLR2004 - it asks for a token
            answer = self._site.page(request, "enter", 401, is_used=False, is_wrong=False)
        else:
            answer = refusal_page(self._site, request, self._refusal)
        await answer(scope, receive, send)
