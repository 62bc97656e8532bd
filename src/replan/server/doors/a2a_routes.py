"""Routes of agents by A2A: a team has a card, and takes calls."""

from collections.abc import AsyncGenerator, AsyncIterable
from importlib.metadata import version
from typing import Any, cast

from a2a.server.jsonrpc_models import JSONParseError
from a2a.server.request_handlers.response_helpers import build_error_response
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.types import a2a_pb2 as a2a
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH, PROTOCOL_VERSION_CURRENT
from fastapi import APIRouter
from google.protobuf.json_format import MessageToDict
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from replan.server.doors.a2a_door import CallerTasks
from replan.server.doors.a2a_wire import OUTPUT_MODES, as_a2a_error
from replan.server.problems import RefusedError
from replan.server.request_body import read_call, replay
from replan.server.served_teams import ServedTeams, team_services
from replan.server.stream import Stream
from replan.server.web import Called

router = APIRouter(include_in_schema=False)


@router.get("/a2a/{team}" + AGENT_CARD_WELL_KNOWN_PATH)
async def card(call: Called, team: str) -> Response:
    """Describe a team as an agent."""
    name = call.served.team_at(team)
    address = str(call.request.url).removesuffix(AGENT_CARD_WELL_KNOWN_PATH)
    return JSONResponse(MessageToDict(_card(call.served, name, address)))


@router.post("/a2a/{team}")
async def called(call: Called, team: str) -> Response:
    """Take a call by JSON-RPC."""
    served, request, name = call.served, call.request, call.served.team_at(team)
    try:
        content = await read_call(request, served.body_seconds)
    except RefusedError as refusal:
        refused = JSONParseError(message=as_a2a_error(refusal).message)
        return JSONResponse(build_error_response(None, refused))
    handler = CallerTasks(served, call.who, name)
    again = Request(request.scope, replay(content, request.receive))
    answer = await JsonRpcDispatcher(handler).handle_requests(again)
    if not isinstance(answer, EventSourceResponse):
        return answer
    # The protocol's own stream waits for a reader who takes nothing, however long.
    told_of: Any = cast("Any", answer).body_iterator
    return Stream(_lines(told_of), served.beat, served.stream_seat(handler.who))


async def _lines(events: AsyncIterable[Any]) -> AsyncGenerator[str]:
    async for event in events:
        kind = f"event: {event['event']}\n" if "event" in event else ""
        yield f"{kind}data: {event['data']}\n\n"


def _card(served: ServedTeams, team: str, address: str) -> a2a.AgentCard:
    members = team_services(served.runtimes[team]).team
    modes = [*OUTPUT_MODES]
    bearer = a2a.HTTPAuthSecurityScheme(scheme="Bearer", description="A token of the server.")
    return a2a.AgentCard(
        name=team,
        description="A team that does a task by a plan, and gives its answer.",
        version=version("replan"),
        supported_interfaces=[
            a2a.AgentInterface(
                url=address, protocol_binding="JSONRPC", protocol_version=PROTOCOL_VERSION_CURRENT
            )
        ],
        capabilities=a2a.AgentCapabilities(streaming=True),
        security_schemes={"token": a2a.SecurityScheme(http_auth_security_scheme=bearer)},
        security_requirements=[a2a.SecurityRequirement(schemes={"token": a2a.StringList()})],
        default_input_modes=[*modes, "image/png", "image/jpeg", "application/pdf"],
        default_output_modes=modes,
        skills=[
            a2a.AgentSkill(
                id=specialist.name,
                name=specialist.name,
                description=specialist.intended_use,
                tags=["step"],
            )
            for specialist in members
        ],
    )
