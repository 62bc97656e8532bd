"""What the runs of a period took, added up."""

from typing import Annotated

from fastapi import Query

from replan.assembly.graphs import viewer
from replan.log.period import added_up
from replan.runs.statuses import runs_since
from replan.server.bodies import StatsQuery
from replan.server.response_schemas import Stats
from replan.server.web import Called, api_router

router = api_router()


@router.get("/stats", summary="Add up what runs took")
async def stats(call: Called, query: Annotated[StatsQuery, Query()]) -> Stats:
    """Add up the runs that the caller may see: runs, failures, time, tokens and cost."""
    served, who = call.served, call.who
    graph = viewer(served.storage)
    reports, has_more = await runs_since(
        query.since,
        served.storage,
        lambda _: graph,
        served.clock(),
        lambda record: served.may_look(record, who),
    )
    return Stats(by=query.by, sums=added_up(reports, query.by), has_more=has_more)
