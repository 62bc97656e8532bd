"""The route of front ends by AG-UI."""

from functools import partial

from ag_ui.core import RunAgentInput
from starlette.responses import Response

from replan.server.doors import ag_ui_door
from replan.server.exchange import Exchange
from replan.server.web import Called, api_router, needs, streams

router = api_router(tags=["experimental"])


@router.post(
    "/ag-ui/{team}",
    summary="Run a team for a front end",
    response_model=None,
    responses=streams(),
    **needs("run"),
)
async def run(call: Called, team: str, body: RunAgentInput) -> Response:
    """Run the last message of a thread, and stream the course as AG-UI events."""
    exchange = Exchange(
        served=call.served,
        who=call.who,
        team=call.served.team_at(team),
        door="ag-ui",
        next_key=lambda _, __: ag_ui_door.key_of(body),
        replays_events=True,
    )
    return await exchange.stream(
        partial(ag_ui_door.begin, exchange, body), partial(ag_ui_door.lines, exchange, body)
    )
