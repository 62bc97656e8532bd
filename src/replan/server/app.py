"""All routes of the server behind its gate, as one web application."""

import json
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from replan.base.errors import ReplanError
from replan.server.callers.identity import Identity
from replan.server.doors import chat_routes, runs, sessions, stats, teams
from replan.server.doors.chat_wire import openai_error_response
from replan.server.doors.extra_doors import EXTRAS, a2a, ag_ui, open_mcp
from replan.server.gate import LOOPBACK, Gate, IdentityOf, Tell, bearer
from replan.server.problems import Problem, RefusedError, as_refusal, problem_response
from replan.server.served_teams import ServedTeams
from replan.server.web import role_of

ROUTERS = (runs.router, stats.router, sessions.router, teams.router, chat_routes.router)
"""The routes that every server has."""

_AT = "#/components/schemas/{model}"


@dataclass(frozen=True, kw_only=True)
class Part:
    """Routes below a path, with their own form of errors, and their own way to know a caller.

    Attributes:
        path: What their paths begin with.
        router: The routes.
        tell: Makes an answer of a refusal.
        identity_of: Finds who sends a request.
        is_open: The paths that need no token.
        outer: What is around the whole application.
    """

    path: str
    router: APIRouter
    tell: Tell
    identity_of: IdentityOf
    is_open: Collection[str] = ()
    outer: Callable[[ASGIApp], ASGIApp]


def own_routes() -> list[APIRoute]:
    """The routes that every server has."""
    return [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]


def web_application(routers: Sequence[APIRouter] = ROUTERS) -> FastAPI:
    """Make the application with its description, without what it serves."""
    app = FastAPI(
        title="Replan",
        version=version("replan"),
        # Pages of others' scripts would be behind the token.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would lose the body of a request on its way
    )
    for router in routers:
        app.include_router(router)
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _completed(describe())
        return app.openapi_schema

    app.openapi = openapi
    return app


def _completed(described: dict[str, Any]) -> dict[str, Any]:
    """Add what FastAPI does not know: the form of problems, and that all routes need a token."""
    schemas: dict[str, Any] = described["components"]["schemas"]
    _, problem = models_json_schema([(Problem, "serialization")], ref_template=_AT)
    schemas |= problem["$defs"]
    # Of two models of one name, one is never shown: events are written without it.
    for name in [schema for schema in schemas if "__" in schema]:
        shown, short = json.dumps(described), name.rpartition("__")[2]
        schema = schemas.pop(name)
        if _AT.format(model=name) in shown:
            schemas[short] = schema
            described = json.loads(json.dumps(described).replace(name, short))
            schemas = described["components"]["schemas"]
    described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {**described, "security": [{"token": []}]}


@asynccontextmanager
async def open_application(
    served: ServedTeams, hosts: Collection[str] = LOOPBACK, pages: Part | None = None
) -> AsyncGenerator[ASGIApp]:
    """Open the application for the teams of a server.

    Args:
        served: The teams and their runs.
        hosts: The names by which the server may be called.
        pages: The routes of the page.
    """
    extras = {"ag-ui": ag_ui(), "a2a": a2a()}
    more = [*extras.values(), pages and pages.router]
    app = web_application([*ROUTERS, *(router for router in more if router is not None)])
    async with open_mcp(served) as mcp:
        app.router.routes.extend(mcp)
        app.state.served = served
        routers = {**extras, "mcp": mcp}
        answers = _Answers(pages, [name for name, router in routers.items() if router])
        app.add_exception_handler(ReplanError, answers.refused)
        app.add_exception_handler(HTTPException, answers.not_found)
        gate = Gate(
            app=_with_heads(app),
            hosts=hosts,
            identity_of=partial(_identity_of, served, pages),
            is_open=[
                *(route.path for route in own_routes() if role_of(route) is None),
                *(pages.is_open if pages else ()),
            ],
            tell=answers.tell,
        )
        yield pages.outer(gate) if pages else gate


async def _identity_of(
    served: ServedTeams, pages: Part | None, request: HTTPConnection
) -> Identity | None:
    """Who sends a request: a page's caller may be a browser that is in."""
    if pages is not None and is_below(pages.path, request.scope["path"]):
        return await pages.identity_of(request)
    return await served.tokens.identity_of(bearer(request.headers))


def is_below(start: str, path: str) -> bool:
    """Whether a path is one of those that begin so."""
    return f"{path}/".startswith(f"{start}/")


def _with_heads(app: ASGIApp) -> ASGIApp:
    """Answer requests for the head alone; the body is not sent."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "method": "GET"} if scope["method"] == "HEAD" else scope, receive, send)

    return answer


@dataclass(frozen=True)
class _Answers:
    """Errors as answers, in the form that clients of a path expect."""

    pages: Part | None
    extras: Sequence[str]  # those whose packages are there

    def tell(self, request: Request, refusal: RefusedError) -> Response:
        """The answer to a refused request."""
        path = request.scope["path"]
        if self.pages is not None and is_below(self.pages.path, path):
            return self.pages.tell(request, refusal)
        return (openai_error_response if is_below("/v1", path) else problem_response)(refusal)

    async def refused(self, request: Request, error: Any) -> Response:
        """What a route raises."""
        return self.tell(request, as_refusal(error))

    async def not_found(self, request: Request, error: Any) -> Response:
        """What is not an address of the server, or takes another method."""
        path: str = request.scope["path"]
        if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
            detail = f"{path} takes {', '.join(_methods_at(path))}, not {request.method}."
            return self.tell(request, RefusedError(405, "wrong_method", detail))
        detail = f"There is nothing at {path[:200]}. GET /openapi.json lists what there is."
        extra = next((module for start, module in EXTRAS.items() if is_below(start, path)), None)
        if extra is not None and extra not in self.extras:
            what = f"{path[:200]} needs packages that the server does not have."
            detail = f"{what} Install them: pip install 'replan[{extra}]'."
        return self.tell(request, RefusedError(error.status_code, "unknown_address", detail))


def _methods_at(path: str) -> list[str]:
    """The methods that an address takes, each by its own route."""
    methods_of_routes = [
        route.methods or () for route in own_routes() if route.path_regex.match(path)
    ]
    return sorted({method for methods in methods_of_routes for method in methods})
