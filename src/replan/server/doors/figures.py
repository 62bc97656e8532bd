"""Figures of the process over HTTP, as Prometheus reads them."""

from starlette.responses import Response

from replan.server.endpoints import Call
from replan.server.problems import RefusedError
from replan.server.response_schemas import TEAM


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
    standing = await served.storage.runs.standing(TEAM)
    served.watch.stands(
        {key: number for key, number in standing.items() if key[0] in served.runtimes}
    )
    if served.queue is not None:
        served.watch.queues(await served.queue.waiting())
    content, media_type = served.watch.written(call.request.headers.get("accept", ""))
    return Response(content, headers={"Content-Type": media_type})
