"""Start a run from a form: a task, a plan, files."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from replan.errors import ReplanError
from replan.server.bodies import StartBody
from replan.server.doors import runs
from replan.server.problems import as_refusal
from replan.server.request_body import check_fields
from replan.server.served_teams import ServedTeams, team_services
from replan.ui.acts.acting import call_for, to_run
from replan.ui.acts.steering import read_limit_fields
from replan.ui.forms import read_upload
from replan.ui.site import Site

_FIELDS = ("task", "plan", "title", "labels", "limits", "team")


async def ask_start(site: Site, request: Request) -> Response:
    """Show the form of a new run, with the task of the address if it has one."""
    return _page(site, request, {"task": request.query_params.get("task", "")})


def _page(site: Site, request: Request, typed: dict[str, str], problem: Any = None) -> Response:
    values = {name: typed.get(name, "") for name in _FIELDS}
    values["run_id"] = typed.get("run_id") or site.served.new_id()
    status = 200 if problem is None else problem.status
    teams = {name: bounds_text(site.served, name) for name in site.served.runtimes}
    return site.page(
        request,
        "start",
        status,
        teams=teams,
        typed=values,
        problem=problem,
        lacking=site.served.lacking,
    )


def bounds_text(served: ServedTeams, team: str) -> str:
    """The limits of a run of a team, in words."""
    limits = team_services(served.runtimes[team]).settings.limits
    bounds = {
        "model calls": limits.max_model_calls,
        "tokens": limits.max_tokens,
        "cost": limits.max_cost,
        "seconds": limits.max_seconds,
    }
    return ", ".join(f"{value:g} {name}" for name, value in bounds.items() if value is not None)


async def start(site: Site, request: Request) -> Response:
    """Start a run; the same form starts one run only."""
    fields, files = await read_upload(site, request)
    try:
        body = _body(fields, files)
        run = await runs.start(call_for(site.served, request), body, Response())
    except ReplanError as error:
        refusal = as_refusal(error)
        return _page(site, request, {**fields, "run_id": ""}, refusal.problem)
    return to_run(site, run.run_id)


def _body(fields: dict[str, str], files: list[dict[str, str]]) -> StartBody:
    pairs = (line.partition("=") for line in fields.get("labels", "").splitlines() if line.strip())
    given: dict[str, Any] = {
        "task": fields.get("task", ""),
        "plan": (fields.get("plan", "").strip() and fields["plan"]) or None,
        "title": fields.get("title", ""),
        "team": fields.get("team", ""),
        "files": files,
        "run_id": fields.get("run_id") or None,
        "labels": {name.strip(): value.strip() for name, _, value in pairs},
        "settings": read_limit_fields(fields),
    }
    return check_fields(StartBody, lambda: StartBody.model_validate(given))
