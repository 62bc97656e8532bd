"""What all acts share: whose they are, on which run, and what is said where they come too late."""

from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from replan.ports.run_book import RunRecord
from replan.server.answers import TEAM
from replan.server.endpoints import Call
from replan.server.problems import RefusedError
from replan.ui.reading import Reading, record_of
from replan.ui.run_page import run_values
from replan.ui.site import Site


async def run_acted_on(site: Site, request: Request) -> tuple[RunRecord, Reading]:
    """The run that an address names, if somebody here can go on with it.

    Raises:
        RefusedError: There is none, or no team here works on it.
    """
    record = await record_of(site.house, request.path_params["run_id"], request.state.who)
    team = record.labels.get(TEAM, "")
    if team not in site.house.runtimes:
        whose = f"the team '{team}', which is not served here" if team else "a terminal"
        told = f"This run was begun by {whose}. Act on it there: replan resume {record.run_id[:8]}"
        raise RefusedError(409, "other_team", f"{told}, or replan stop, retry and skip.")
    return record, await site.readings.of(record)


def call_of(site: Site, request: Request, record: RunRecord | None, body: Any) -> Call:
    """A call as the server's own doors take it: they check the same for everybody."""
    return Call(
        house=site.house,
        who=request.state.who,
        path={} if record is None else {"run_id": record.run_id},
        body=body,
        query=None,
        request=request,
    )


def to_run(site: Site, run_id: str) -> Response:
    """Go to the page of a run."""
    return RedirectResponse(f"{site.prefix}/runs/{quote(run_id, safe='')}", 303)


def stale(site: Site, request: Request, reading: Reading, told: str) -> Response:
    """Refuse an act on what is there no more, and show what is."""
    return site.page(request, "stale", 409, told=told, **run_values(reading, "plan"))


def confirm(site: Site, request: Request, **values: Any) -> Response:
    """Ask whether an act is meant, before it is done.

    Args:
        site: The pages.
        request: What is answered.
        values: `title`, `does` (sentences), `action` (the path), `fields` (what the form carries),
            `button` and `back`; others of `confirm.html` are optional.
    """
    known: dict[str, Any] = {"shown": "", "ticks": {}, "limits": None, "lines": (), "problem": ""}
    values = {**known, **values}
    return site.page(request, "confirm", 422 if values["problem"] else 200, **values)
