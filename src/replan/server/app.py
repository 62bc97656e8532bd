"""All addresses of the server behind its gate, as one ASGI application."""

from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from replan.server.addresses import ENDPOINTS
from replan.server.doors.chat_wire import openai_error_response
from replan.server.doors.extra_doors import EXTRAS, a2a, ag_ui, open_mcp
from replan.server.endpoints import problem_response
from replan.server.gate import LOOPBACK, Gate, bearer
from replan.server.openapi import document
from replan.server.problems import RefusedError
from replan.server.served_teams import ServedTeams


@asynccontextmanager
async def open_application(
    served: ServedTeams, hosts: Collection[str] = LOOPBACK
) -> AsyncGenerator[ASGIApp]:
    """Open the application for the teams of a server.

    Args:
        served: The teams and their runs.
        hosts: The names by which the server may be called.
    """
    for_front_ends, for_agents = ag_ui(), a2a(served)
    endpoints = [*ENDPOINTS, *for_front_ends]
    described = document(endpoints)

    async def openapi(_: Request) -> Response:
        return JSONResponse(described)

    routes = [*(each.route(served) for each in endpoints), *for_agents]
    handlers: Any = {HTTPException: _not_found}
    async with open_mcp(served) as more:
        app = Starlette(
            routes=[*routes, Route("/openapi.json", openapi), *more], exception_handlers=handlers
        )
        # An address has one form; a redirect would lose the body of a request on its way.
        app.router.redirect_slashes = False
        doors = {"mcp": more, "ag-ui": for_front_ends, "a2a": for_agents}
        app.state.doors = [name for name, found in doors.items() if found]
        yield Gate(
            app=app,
            hosts=hosts,
            identity_of=lambda request: served.tokens.identity_of(bearer(request.headers)),
            is_open=[each.path for each in ENDPOINTS if each.role is None],
            tell=_refusal_at,
        )


def _refusal_at(path: str, refusal: RefusedError) -> Response:
    """The answer to a refused request, in the form that clients of the address expect."""
    return openai_error_response(refusal) if path.startswith("/v1/") else problem_response(refusal)


def _methods_at(request: Request) -> list[str]:
    """The methods that an address takes, each by its own endpoint."""
    path, found = request.url.path, set[str]()
    for each in request.app.routes:
        if isinstance(each, Route) and each.path_regex.match(path):
            found |= each.methods or set()
    return sorted(found - {"HEAD"})


async def _not_found(request: Request, error: HTTPException) -> Response:
    """What is not an address of the server, or takes another method."""
    if error.status_code == 405:  # noqa: PLR2004 - its method is wrong
        methods = _methods_at(request)
        detail = f"{request.url.path} takes {', '.join(methods)}, not {request.method}."
        return _refusal_at(request.url.path, RefusedError(405, "wrong_method", detail))
    path = request.url.path[:200]
    detail = f"There is nothing at {path}. GET /openapi.json lists what there is."
    extra = next((each for start, each in EXTRAS.items() if f"{path}/".startswith(start)), None)
    if extra is not None and extra not in request.app.state.doors:
        what = f"{path} needs packages that the server does not have."
        detail = f"{what} Install them: pip install 'replan[{extra}]'."
    refusal = RefusedError(error.status_code, "unknown_address", detail)
    return _refusal_at(request.url.path, refusal)
