"""An endpoint: its address, its callers, its input and output, and its function."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_type_hints

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from replan.errors import ReplanError
from replan.server.bodies import EmptyRequest
from replan.server.callers.identity import Identity, Role
from replan.server.problems import RefusedError, as_refusal
from replan.server.request_body import read_body, read_query
from replan.values import Value

if TYPE_CHECKING:
    from replan.server.served_teams import ServedTeams

V = TypeVar("V", bound=Value)

JSON = "application/json"
PROBLEM = "application/problem+json"
EVENTS = "text/event-stream"


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request, read and allowed."""

    served: "ServedTeams"
    who: Identity
    path: Mapping[str, str]
    body: Any  # of the kind that the endpoint takes
    query: Any
    request: Request

    @property
    def idempotency_key(self) -> str:
        """The name that the client gave the request, to send it twice; empty without one."""
        return self.request.headers.get("idempotency-key", "").strip()[:_LONGEST_KEY]


@dataclass(frozen=True)
class Reply(Generic[V]):
    """An answer with its own status."""

    value: V
    status: int = 200


_LONGEST_KEY = 1_000

Handler = Callable[[Call], Awaitable[Value | Reply[Any] | Response]]


@dataclass(frozen=True)
class Endpoint:
    """One address of the server."""

    method: str
    path: str
    handler: Handler
    summary: str  # what it does, in a line
    _: KW_ONLY
    role: Role | None = "read"  # who may call it; None: anybody, without a token
    body: type[BaseModel] = EmptyRequest
    query: type[Value] = EmptyRequest  # what is after the question mark
    status: int = 200  # of what the handler returns
    further: tuple[int, ...] = ()  # other statuses of it; 204 is one without a body
    media_type: str = ""  # of an answer that is a text, and not JSON
    streams: bool = False  # whether it can tell events as they come
    error_response: Callable[[RefusedError], Response] | None = None  # else a problem

    @cached_property
    def returns(self) -> dict[int, type[Value] | None]:
        """What it answers by the status: the value that its handler returns, if it returns one."""
        returned = get_type_hints(getattr(self.handler, "func", self.handler))["return"]
        kinds = [each for each in get_args(returned) or [returned] if issubclass(each, Value)]
        kind = kinds[0] if kinds else None
        returns = dict.fromkeys((self.status, *self.further), kind)
        return returns | {each: None for each in returns if each == HTTPStatus.NO_CONTENT}

    def route(self, served: "ServedTeams") -> Route:
        """The endpoint for Starlette."""

        async def answer(request: Request) -> Response:
            return await respond(self, served, request)

        return Route(self.path, answer, methods=[self.method], name=self.summary)


async def respond(endpoint: Endpoint, served: "ServedTeams", request: Request) -> Response:
    """Answer a request; an error is a problem."""
    try:
        who: Identity = request.state.who
        check_role(who, endpoint.role)
        takes_body = endpoint.method != "GET"
        call = Call(
            served=served,
            who=who,
            path=request.path_params,
            query=read_query(request, endpoint.query),
            body=await read_body(request, endpoint.body, served.body_seconds)
            if takes_body
            else None,
            request=request,
        )
        given = await endpoint.handler(call)
    except ReplanError as error:
        return (endpoint.error_response or problem_response)(as_refusal(error))
    if isinstance(given, Response):
        return given
    reply: Reply[Any] = given if isinstance(given, Reply) else Reply(given, endpoint.status)
    return Response(reply.value.model_dump_json(), reply.status, media_type=JSON)


def problem_response(refusal: RefusedError) -> Response:
    """A refusal as a problem."""
    problem = refusal.problem
    headers = {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}
    if problem.status == 401:  # noqa: PLR2004 - the status that asks for a token
        headers["WWW-Authenticate"] = 'Bearer realm="replan"'
    return Response(problem.model_dump_json(), problem.status, headers, media_type=PROBLEM)


def check_role(who: Identity, role: Role | None) -> None:
    """Refuse what a token does not have the role for; without a role it is open to anybody.

    Raises:
        RefusedError: It does not have it.
    """
    if role is None or who.may(role):
        return
    has = ", ".join(sorted(who.roles))
    raise RefusedError(
        403,
        "not_allowed",
        f"The token '{who.name}' may not do this: it needs the role '{role}', and has {has}. "
        "Use another token, or let the operator of the server add the role.",
    )
