"""What the runs of a period took, added up: the numbers of `GET /stats`."""

from datetime import timedelta
from typing import Literal, get_args

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from replan.cli.page.read_runs import graph_for
from replan.cli.page.site import Site
from replan.log.period import By, added_up
from replan.runs.statuses import MOST_RUNS, runs_since
from replan.server.request_body import read_query
from replan.views.period_table import period_rows

_PERIODS = {"1": "a day", "7": "a week", "30": "a month", "365": "a year"}
"""The periods that are offered, by their days."""


class _Asked(BaseModel):
    by: By = "day"
    days: Literal["1", "7", "30", "365"] = "30"


async def stats(site: Site, request: Request) -> Response:
    """Add up the runs of a period."""
    asked, served, who = read_query(request, _Asked), site.served, request.state.who
    at = served.clock()
    reports, has_more = await runs_since(
        at - timedelta(days=int(asked.days)),
        served.storage,
        lambda record: graph_for(served, record),
        at,
        lambda record: served.may_look(record, who),
    )
    head, *rows = period_rows(added_up(reports, asked.by), asked.by)
    return site.page(
        request,
        "stats",
        head=head,
        rows=rows,
        by=asked.by,
        days=asked.days,
        axes=get_args(By),
        periods=_PERIODS,
        most=MOST_RUNS if has_more else 0,
    )
