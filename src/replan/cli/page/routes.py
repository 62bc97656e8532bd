"""The pages, as a part of the server's web application."""

import secrets
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from replan.cli.page.acts import answering, chatting, editing, starting, steering
from replan.cli.page.door import Door
from replan.cli.page.entering import PAGES as HOME, Entrance
from replan.cli.page.forms import read_fields
from replan.cli.page.htmx import script
from replan.cli.page.read_runs import Readings
from replan.cli.page.run_page import changes, compare, one_run, prompt, step, whole_text
from replan.cli.page.runs_page import runs, stats
from replan.cli.page.site import Page, Site, page_path, refusal_page, templates
from replan.cli.page.terminal_runs import Terminals
from replan.server.app import Part
from replan.server.problems import RefusedError
from replan.server.served_teams import ServedTeams

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


_RUN, _CHAT = "/runs/{run_id}", "/chat/{session_id}"
_STEP = f"{_RUN}/steps/{{step:int}}"
PAGES = (
    Page("GET", "/", runs),
    Page("GET", "/stats", stats),
    Page("GET", _RUN, one_run),
    Page("GET", f"{_RUN}/changes", changes),
    Page("GET", f"{_RUN}/compare", compare),
    Page("GET", _STEP, step),
    Page("GET", f"{_RUN}/prompts/{{seq:int}}", prompt),
    Page("GET", f"{_RUN}/texts/{{ref}}", whole_text),
    Page("GET", "/enter", _entrance, role=None),
    Page("POST", "/enter", _enter, role=None),
    Page("GET", "/leave", _leave, role=None),
    Page("GET", "/lib/htmx.js", _script, role=None),
    Page("GET", "/lib/page.css", _style, role=None),
    Page("POST", f"{_RUN}/answer", answering.answer, role="answer"),
    Page("GET POST", f"{_RUN}/stop", steering.stop, role="run"),
    Page("GET POST", f"{_RUN}/resume", steering.resume, role="run"),
    Page("GET POST", f"{_STEP}/retry", partial(steering.correct, action="retry"), role="operate"),
    Page("GET POST", f"{_STEP}/skip", partial(steering.correct, action="skip"), role="operate"),
    Page("GET POST", f"{_RUN}/plan", editing.edit, role="run"),
    Page("GET POST", f"{_RUN}/message", steering.tell, role="run"),
    Page("GET POST", "/start", starting.start, role="run"),
    Page("GET", "/chat", chatting.chats),
    Page("GET", _CHAT, chatting.chat),
    Page("POST", _CHAT, chatting.say, role="run"),
    Page("GET", f"{_CHAT}/changes", chatting.changes),
    Page("POST", f"{_CHAT}/answer", chatting.answer, role="answer"),
)
"""The addresses of all pages and acts, and who may open them."""


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
