"""Routes of teams, and of the process that serves them: whether it works, and its metrics."""

from pydantic import JsonValue
from starlette.responses import PlainTextResponse, Response

from replan.log.labels import TEAM
from replan.prompts.replies.shape import Shape
from replan.server.problems import RefusedError
from replan.server.response_schemas import Health, Specialist, Team, TeamList
from replan.server.served_teams import team_services
from replan.server.web import Called, api_router, needs
from replan.specialists.services import Services
from replan.state.limits import RunSettings

router = api_router()


@router.get("/teams", summary="List the teams")
async def teams(call: Called) -> TeamList:
    """List the teams."""
    runtimes = call.served.runtimes
    return TeamList(
        teams=tuple(_described(name, team_services(runtimes[name])) for name in runtimes)
    )


@router.get("/teams/{team}", summary="Describe a team")
async def team(call: Called, team: str) -> Team:
    """Describe a team."""
    name = call.served.team_at(team)
    return _described(name, team_services(call.served.runtimes[name]))


@router.get("/health", summary="Whether the process answers", **needs(None))
async def health() -> Health:
    """Say that the process answers."""
    return Health()


@router.get(
    "/ready", summary="Whether the storage answers, and the queue if there is one", **needs(None)
)
async def ready(call: Called) -> Health:
    """Say that the storage answers, too, and the queue if runs wait in one."""
    await call.served.storage.runs.recent(1)
    if call.served.queue is not None:
        await call.served.queue.answers()
    return Health()


def _described(name: str, services: Services) -> Team:
    members = tuple(
        Specialist(
            name=card.name,
            intended_use=card.intended_use,
            effects=services.specialists[card.name].card.effects,
            result_schema=_schema(services.shapes.get(card.name)),
        )
        for card in services.team
    )
    return Team(
        name=name,
        specialists=members,
        # Including unset fields.
        settings=RunSettings(**services.settings.model_dump()),
        answer_schema=_schema(services.output),
        client_overrides=tuple(sorted(services.client_overrides)),
    )


def _schema(shape: Shape | None) -> JsonValue:
    return None if shape is None else shape.schema


@router.get(
    "/metrics",
    summary="Return the metrics of the process",
    response_class=PlainTextResponse,
    **needs("watch"),
)
async def metrics(call: Called) -> Response:
    """Return the metrics of the process, and which runs are not over, or wait in the queue.

    Raises:
        RefusedError: The token is a tenant's; the figures are those of all tenants together.
    """
    served, who = call.served, call.who
    if who.tenant:
        detail = (
            f"The token '{who.name}' belongs to a tenant, and these are figures of all tenants."
        )
        raise RefusedError(403, "not_allowed", f"{detail} Use a token without a tenant.")
    standing = await served.storage.runs.count_unfinished(TEAM)
    served.watch.stands(
        {key: number for key, number in standing.items() if key[0] in served.runtimes}
    )
    if served.queue is not None:
        served.watch.queues(await served.queue.waiting())
    content, media_type = served.watch.written(call.request.headers.get("accept", ""))
    return Response(content, headers={"Content-Type": media_type})
