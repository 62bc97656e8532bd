"""How a route takes a request: its caller, its bounds, its form of errors; FastAPI describes it."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Receive, Scope

from replan.server.bodies import EmptyRequest
from replan.server.callers.identity import Identity, Role, check_role
from replan.server.problems import PROBLEM
from replan.server.request_body import read_body, read_query
from replan.server.served_teams import ServedTeams

EVENTS = "text/event-stream"

ROLE = "x-role"
"""What the description of a route says about who may call it; null for anybody."""

_LONGEST_KEY = 1_000
_PROBLEM = {"schema": {"$ref": "#/components/schemas/Problem"}}
_PROBLEMS = {
    400: "Not JSON, or not a whole request",
    401: "No valid token",
    403: "Not allowed",
    404: "There is no such thing",
    408: "A request that is too slow",
    409: "It conflicts with the current state",
    413: "Too large a request",
    421: "Another host",
    422: "Mistakes, each with its field and fix",
    429: "A limit of the token",
    500: "The server failed",
    503: "The storage does not answer",
}


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request that is allowed, with the teams that it is for."""

    served: ServedTeams
    who: Identity
    request: Request

    @property
    def idempotency_key(self) -> str:
        """The name that the client gave the request, to send it twice; empty without one."""
        return self.request.headers.get("idempotency-key", "").strip()[:_LONGEST_KEY]

    @property
    def wants_events(self) -> bool:
        """Whether the client asks for a stream of events."""
        return EVENTS in self.request.headers.get("accept", "")


async def _call_of(request: Request) -> Call:
    return Call(served=request.app.state.served, who=request.state.who, request=request)


Called = Annotated[Call, Depends(_call_of)]
"""The parameter of a route that is its call."""


def problems(media_type: str = PROBLEM, content: Any = None) -> dict[int | str, dict[str, Any]]:
    """Describe the errors of routes, which have this form."""
    form = {media_type: content or _PROBLEM}
    return {
        status: {"description": description, "content": form}
        for status, description in _PROBLEMS.items()
    }


def needs(role: Role | None) -> dict[str, Any]:
    """Options of a route that needs a role; None lets anybody in, without a token."""
    is_open = {"security": list[Any]()} if role is None else {}
    return {"openapi_extra": {ROLE: role, **is_open}}


def streams(**more: Any) -> dict[int | str, dict[str, Any]]:
    """Describe the answers of a route that can tell events as they come."""
    return {200: {"content": {EVENTS: {"schema": {"type": "string"}}}}, **more}


def api_router(
    responses: dict[int | str, dict[str, Any]] | None = None, **options: Any
) -> APIRouter:
    """Make a router whose routes read requests within bounds and name every mistake."""
    return APIRouter(
        route_class=BoundedRoute,
        responses=responses or problems(),
        generate_unique_id_function=_operation_id,
        **options,
    )


def _operation_id(route: APIRoute) -> str:
    return re.sub(r"\W+", "_", (route.summary or route.name).lower()).strip("_")


def role_of(route: APIRoute) -> Role | None:
    """Who may call a route."""
    return (route.openapi_extra or {}).get(ROLE, "read")


class BoundedRoute(APIRoute):
    """A route whose caller is checked, and whose request is read, before FastAPI takes it."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # pyright: ignore[reportIncompatibleMethodOverride] - any awaitable does
        """Return what answers a request."""
        answer, role = super().get_route_handler(), role_of(self)
        body, query = _kind(self.dependant.body_params), _kind(self.dependant.query_params)

        async def bounded(request: Request) -> Response:
            check_role(request.state.who, role)
            read_query(request, query)
            if request.method not in ("GET", "HEAD"):
                seconds = request.app.state.served.body_seconds
                value = await read_body(request, body, seconds)
                request = _ReadRequest(value, request.scope, request.receive)
            return await answer(request)

        return bounded


def _kind(fields: Sequence[Any]) -> type[BaseModel]:
    """The model of a route's only body, or of its query."""
    return cast("type[BaseModel]", fields[0].field_info.annotation) if fields else EmptyRequest


class _ReadRequest(Request):
    """A request whose body was read and checked: FastAPI takes the value as it is."""

    def __init__(self, value: BaseModel, scope: Scope, receive: Receive) -> None:
        named = [header for header in scope["headers"] if header[0] != b"content-type"]
        is_json = (b"content-type", b"application/json")
        super().__init__({**scope, "headers": [*named, is_json]}, receive)
        self._value = value

    async def body(self) -> bytes:
        """Say that there is one."""
        return b"{}"

    async def json(self) -> Any:
        """Return the value."""
        return self._value
