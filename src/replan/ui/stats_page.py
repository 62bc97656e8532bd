"""What the runs of a period took, added up: the numbers of `GET /stats`."""

from datetime import timedelta
from typing import cast, get_args

from starlette.requests import Request
from starlette.responses import Response

from replan.log.period import By, added_up
from replan.runs.runs_since import MOST_RUNS, runs_since
from replan.server.problems import bad_field
from replan.ui.read_runs import graph_for
from replan.ui.site import Site
from replan.views.period_table import period_rows

_PERIODS = {"1": "a day", "7": "a week", "30": "a month", "365": "a year"}
"""The periods that are offered, by their days."""


async def stats(site: Site, request: Request) -> Response:
    """Add up the runs of a period."""
    asked, served, who = request.query_params, site.served, request.state.who
    by, days = asked.get("by", "day"), asked.get("days", "30")
    if by not in get_args(By):
        fix = f"Give one of: {', '.join(get_args(By))}."
        raise bad_field("by", by, "runs are not added up by this", fix)
    if days not in _PERIODS:
        raise bad_field("days", days, "no such period", f"Give one of: {', '.join(_PERIODS)}.")
    at = served.clock()
    reports, has_more = await runs_since(
        at - timedelta(days=int(days)),
        served.storage,
        lambda record: graph_for(served, record),
        at,
        lambda record: served.may_look(record, who),
    )
    chosen = cast("By", by)
    head, *rows = period_rows(added_up(reports, chosen), chosen)
    return site.page(
        request,
        "stats",
        head=head,
        rows=rows,
        by=by,
        days=days,
        axes=get_args(By),
        periods=_PERIODS,
        most=MOST_RUNS if has_more else 0,
    )
