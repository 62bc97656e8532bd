"""Teams over HTTP, and the process that serves them: whether it works, and its metrics."""

from pydantic import JsonValue
from starlette.responses import Response

from replan.replies.shape import Shape
from replan.server.endpoints import Call
from replan.server.problems import RefusedError
from replan.server.response_schemas import TEAM, Health, Specialist, Team, TeamList
from replan.server.served_teams import team_services
from replan.services import Services
from replan.state.limits import RunSettings


async def teams(call: Call) -> TeamList:
    """List the teams."""
    runtimes = call.served.runtimes
    return TeamList(
        teams=tuple(_described(name, team_services(runtimes[name])) for name in runtimes)
    )


async def team(call: Call) -> Team:
    """Describe a team."""
    name = call.served.team_at(call.path["team"])
    return _described(name, team_services(call.served.runtimes[name]))


async def health(_: Call) -> Health:
    """Say that the process answers."""
    return Health()


async def ready(call: Call) -> Health:
    """Say that the storage answers, too, and the queue if runs wait in one."""
    await call.served.storage.runs.recent(1)
    if call.served.queue is not None:
        await call.served.queue.answers()
    return Health()


def _described(name: str, services: Services) -> Team:
    members = tuple(
        Specialist(
            name=each.name,
            intended_use=each.intended_use,
            effects=services.specialists[each.name].card.effects,
            result_schema=_schema(services.shapes.get(each.name)),
        )
        for each in services.team
    )
    return Team(
        name=name,
        specialists=members,
        # Including unset fields.
        settings=RunSettings(**services.settings.model_dump()),
        answer_schema=_schema(services.output),
        open_to_clients=tuple(sorted(services.open_to_clients)),
    )


def _schema(shape: Shape | None) -> JsonValue:
    return None if shape is None else shape.schema


async def metrics(call: Call) -> Response:
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
