"""The list of runs, those that wait for a person first, and the sums of a period."""

import asyncio
from datetime import timedelta
from typing import Annotated, Any, Literal, NamedTuple, get_args
from urllib.parse import urlencode

from pydantic import BaseModel, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from replan.cli.page.read_runs import find_record, graph_for
from replan.cli.page.site import Site
from replan.log.labels import TENANT
from replan.log.period import By, added_up
from replan.log.report import RunReport
from replan.ports.run_book import RunOrder, RunOutcome, RunRecord
from replan.runs.reports import read_summary
from replan.runs.statuses import MOST_RUNS, page_of, records_of, runs_since
from replan.server.problems import bad_field
from replan.server.request_body import read_query
from replan.server.served_teams import ServedTeams
from replan.views.cells import counted
from replan.views.period_table import period_rows
from replan.views.run.overview import remarks_of

ORDERS: dict[RunOrder, str] = {
    "outcome": "Outcome",
    "began": "Began",
    "took": "Took",
    "tokens": "Tokens",
    "cost": "Cost",
}
"""The orders of the list, by the headings that are links to them."""

_PAGE, _WAITING, _SCANNED = 50, 20, 20_000
_KEPT = 1_000  # rows of runs at rest that are not read again


Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]


class Filter(BaseModel):
    """Which runs are listed."""

    q: Text = ""
    outcome: RunOutcome | Literal[""] = ""
    label: Text = ""
    order: RunOrder = "began"
    cursor: Text = ""

    @property
    def is_any(self) -> bool:
        """Whether it leaves some runs out."""
        return bool(self.q or self.outcome or self.label)

    def query(self, **changed: str) -> str:
        """The filter as the query of an address, from the first page on."""
        fields = {**self.model_dump(), "cursor": "", **changed}
        return urlencode({name: value for name, value in fields.items() if value})


class Row(NamedTuple):
    """A run in the list."""

    record: RunRecord
    report: RunReport


async def runs(site: Site, request: Request) -> Response:
    """List runs."""
    wanted = read_query(request, Filter)
    is_first = not wanted.cursor and not wanted.is_any
    waiting = await _waiting(site, request) if is_first else []
    found, cursor = await _find_page(site.served, request, wanted)
    rows = await asyncio.gather(*(_row(site, record) for record in found))
    values: dict[str, Any] = {
        "rows": [row for row in rows if wanted.outcome in ("", row.report.outcome)],
        "wanted": wanted,
        "outcomes": get_args(RunOutcome),
        "orders": ORDERS,
        "remarks_in": _remarks_in,
        "more": wanted.query(cursor=cursor) if cursor else "",
    }
    if request.headers.get("hx-target") == "more":
        return site.page(request, "rows", **values)
    return site.page(request, "runs", waiting=waiting, **values)


async def _waiting(site: Site, request: Request) -> list[Row]:
    """The runs that wait for a person, with their questions."""
    served = site.served
    labels = _labels(request)
    # The process of a run that reads `running` may have been killed while it waited.
    standing: tuple[RunOutcome, ...] = ("waiting", "running")
    # One that went back to an older state is in both lists.
    records = {
        record.run_id: record
        for outcome in standing
        for record in await served.storage.runs.recent(_WAITING, labels, outcomes=(outcome,))
        if _may_see(served, request, record)
    }
    rows = [await _row(site, record) for record in records.values()]
    return [row for row in rows if row.report.pending_questions]


async def _find_page(
    served: ServedTeams, request: Request, wanted: Filter
) -> tuple[list[RunRecord], str]:
    """A page of records, and the one after which the next page begins."""
    records = records_of(
        served.storage.runs,
        labels=_labels(request, wanted.label),
        statuses=(wanted.outcome,) if wanted.outcome else (),
        page=1_000 if wanted.q else _PAGE + 1,
        behind=await _page_start(served, request, wanted.cursor),
        order=wanted.order,
    )

    async def found(record: RunRecord) -> RunRecord | None:
        is_seen = _may_see(served, request, record)
        return record if is_seen and _matches(record, wanted.q.casefold()) else None

    return await page_of(records, _PAGE, found, _SCANNED)


async def _page_start(served: ServedTeams, request: Request, name: str) -> RunRecord | None:
    return await find_record(served, name, request.state.who) if name else None


def _labels(request: Request, given: str = "") -> dict[str, str]:
    tenant = request.state.who.tenant
    name, sign, value = given.partition("=")
    if given and not sign:
        raise bad_field("label", given, "it is not a label", "Write NAME=VALUE, such as team=shop.")
    return ({name.strip(): value.strip()} if given else {}) | ({TENANT: tenant} if tenant else {})


def _may_see(served: ServedTeams, request: Request, record: RunRecord) -> bool:
    return served.may_look(record, request.state.who)


def _matches(record: RunRecord, text: str) -> bool:
    """Whether a text is in the title, in the id or in a label."""
    texts = (record.title, record.run_id, *record.labels.values())
    return not text or any(text in each.casefold() for each in texts)


async def _row(site: Site, record: RunRecord) -> Row:
    served, cache_key = site.served, (record.run_id, record.updated_at)
    # A process that was killed could not say the status of its run, and an answer may be on its
    # way to one that waits.
    is_at_rest = record.outcome != "running" and not await served.storage.log.requests(
        [cache_key[0]]
    )
    if is_at_rest and (cached_row := site.rows.get(cache_key)) is not None:
        return cached_row
    graph = graph_for(served, record)
    row = Row(record, await read_summary(graph, served.storage, record, served.clock()))
    if is_at_rest:
        site.rows[cache_key] = row
        while len(site.rows) > _KEPT:
            site.rows.popitem(last=False)
    return row


def _remarks_in(report: RunReport) -> list[str]:
    """The problems of a run in the list: its warnings, too."""
    warnings = [counted(len(report.warnings), "warning")] if report.warnings else []
    return [*warnings, *remarks_of(report)]


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
