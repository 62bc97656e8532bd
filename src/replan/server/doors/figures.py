"""Figures of the process over HTTP, as Prometheus reads them."""

from starlette.responses import Response

from replan.server.answers import TEAM
from replan.server.endpoints import Call
from replan.server.problems import RefusedError


async def metrics(call: Call) -> Response:
    """Return the metrics of the process, and which runs are not over, or wait in the queue.

    Raises:
        RefusedError: The token is a tenant's; the figures are those of all tenants together.
    """
    house, who = call.house, call.who
    if who.tenant:
        told = f"The token '{who.name}' belongs to a tenant, and these are figures of all tenants."
        raise RefusedError(403, "not_allowed", f"{told} Use a token without a tenant.")
    standing = await house.storage.runs.standing(TEAM)
    house.watch.stands(
        {key: number for key, number in standing.items() if key[0] in house.runtimes}
    )
    if house.queue is not None:
        house.watch.queues(await house.queue.waiting())
    content, media_type = house.watch.written(call.request.headers.get("accept", ""))
    return Response(content, headers={"Content-Type": media_type})
