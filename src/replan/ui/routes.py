"""The pages, as a part of the server's web application."""

import secrets
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from replan.server.app import Part
from replan.server.problems import RefusedError
from replan.server.served_teams import ServedTeams
from replan.ui.acts.pages import ACTING
from replan.ui.door import Door
from replan.ui.entering import PAGES as HOME, Entrance
from replan.ui.forms import read_fields
from replan.ui.htmx import script
from replan.ui.read_runs import Readings
from replan.ui.run_page import changes, compare, one_run, prompt, step, whole_text
from replan.ui.runs_page import runs
from replan.ui.site import Page, Site, page_path, refusal_page, templates
from replan.ui.stats_page import stats
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
    Page(method="GET", path="/stats", handler=stats),
    Page(method="GET", path="/runs/{run_id}", handler=one_run),
    Page(method="GET", path="/runs/{run_id}/changes", handler=changes),
    Page(method="GET", path="/runs/{run_id}/compare", handler=compare),
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


def page_router(site: Site) -> APIRouter:
    """The pages, as a part of the web application."""
    router = APIRouter(include_in_schema=False)
    for page in PAGES:
        page.add_to(router, site)

    async def home(_: Request) -> Response:
        return RedirectResponse(f"{site.prefix}/", 307)

    router.add_route("/", home, methods=["GET"])
    return router


def pages_part(served: ServedTeams, entrance: Entrance, terminals: Terminals) -> Part:
    """The pages for the teams of a server.

    Args:
        served: The teams and their runs.
        entrance: Who gets in, and under which path.
        terminals: What continues runs that no served team does.
    """
    site = Site(
        served=served,
        entrance=entrance,
        boot=secrets.token_hex(4),
        templates=templates(),
        readings=Readings(served, terminals.lacks),
        terminals=terminals,
    )
    return Part(
        path=HOME,
        router=page_router(site),
        tell=partial(_refusal_page, site),
        identity_of=entrance.identity_of,
        is_open=["/", *(f"{HOME}{page.path}" for page in PAGES if page.role is None)],
        outer=lambda app: Door(app=app, prefix=entrance.prefix),
    )


def _refusal_page(site: Site, request: Request, refusal: RefusedError) -> Response:
    if refusal.problem.code in ("unknown_address", "wrong_method"):
        detail = f"There is no page {page_path(request)[:100]} here."
        refusal = RefusedError(404, "unknown_page", detail)
    return refusal_page(site, request, refusal)
