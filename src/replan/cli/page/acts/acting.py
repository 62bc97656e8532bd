"""The common parts of acts: their person and run, and the message if they come too late."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from replan.base.errors import ReplanError
from replan.cli.page.forms import read_form
from replan.cli.page.read_runs import Reading, find_record
from replan.cli.page.run_page import run_values
from replan.cli.page.site import Site
from replan.cli.user_files.order_signature import is_signed
from replan.ports.run_book import RunRecord
from replan.runs.service import Runtime
from replan.runs.team_on_record import team_name, who_continues
from replan.server.problems import RefusedError
from replan.server.served_teams import ServedTeams
from replan.server.web import Call


@dataclass(frozen=True, kw_only=True)
class Acted:
    """A run with a pending act, and the served teams of which one works on it."""

    served: ServedTeams
    record: RunRecord
    reading: Reading
    is_of_terminal: bool = False

    @property
    def runtime(self) -> Runtime:
        """The runtime that works on the run."""
        return self.served.runtime_of(self.record)

    def check_can_work(self) -> None:
        """Refuse what needs work at once, where none can be done here.

        Raises:
            RefusedError: What the team lacks.
        """
        self.served.check_can_work(team_name(self.record))

    def only_served(self, how: str) -> None:
        """Refuse a run that a terminal began: a new run from it needs an order of the terminal.

        Raises:
            RefusedError: A terminal began the run.
        """
        if self.is_of_terminal:
            detail = f"A terminal began this run, and a new run from it must begin there: {how}"
            raise RefusedError(409, "of_terminal", detail)


async def form_of_act(site: Site, request: Request) -> tuple[dict[str, str], Acted]:
    """What a form of a page says, nothing before one was sent; and the run that it is about.

    Raises:
        RefusedError: It is no such form, there is no such run, or no team here works on it.
    """
    fields = await read_form(site, request) if request.method == "POST" else {}
    return fields, await _run_to_act_on(site, request)


async def _run_to_act_on(site: Site, request: Request) -> Acted:
    """The run that an address names, if a team here can continue it.

    Raises:
        RefusedError: There is none, or no team here works on it.
    """
    who = request.state.who
    record = await find_record(site.served, request.path_params["run_id"], who)
    reading = await site.readings.of(record)
    found = who_continues(
        record,
        site.served.runtimes,
        is_operator=who.is_operator,
        is_signed=is_signed(record.order, record.run_id),
    )
    served = site.served
    if found.missing and not (who.is_operator and team_name(record)):
        raise RefusedError(409 if who.is_operator else 403, found.code, found.missing)
    if found.missing:
        served = await site.terminals.recording_for(served, record, reading.lacks)
    elif found.by_options:
        served = await site.terminals.teams_for(served, record)
    return Acted(
        served=served, record=record, reading=reading, is_of_terminal=bool(found.by_options)
    )


def call_for(served: ServedTeams, request: Request) -> Call:
    """The call of a route of the server, which checks what a form has as it checks any other."""
    return Call(served=served, who=request.state.who, request=request)


def to_run(site: Site, run_id: str) -> Response:
    """Go to the page of a run."""
    return RedirectResponse(f"{site.prefix}/runs/{quote(run_id, safe='')}", 303)


def refuse_stale(site: Site, request: Request, reading: Reading, refusal: str) -> Response:
    """Refuse an act on an old state, and show the current one."""
    return site.page(request, "stale", 409, refusal=refusal, **run_values(reading, "plan"))


def error_text(error: ReplanError) -> str:
    """Each mistake of a request with its field and fix, or else the error."""
    mistakes = error.problem.mistakes if isinstance(error, RefusedError) else ()
    listed = [mistake.text for mistake in mistakes]
    return "\n".join(listed) or str(error)


def confirm(site: Site, request: Request, **values: Any) -> Response:
    """Ask whether an act is meant, before it is done.

    Args:
        site: The pages.
        request: What is answered.
        values: `title`, `does` (sentences), `action` (the path), `fields` (what the form carries),
            `button` and `back`; others of `confirm.html` are optional.
    """
    defaults: dict[str, Any] = {"shown": "", "ticks": {}, "limits": None, "lines": ()}
    values = {**defaults, "problem": "", "ask": None, "run_path": "", **values}
    return site.page(request, "confirm", 422 if values["problem"] else 200, **values)
