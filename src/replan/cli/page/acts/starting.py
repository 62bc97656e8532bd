"""Start a run from a form: a task, a plan, files."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from replan.base.errors import ReplanError
from replan.cli.page.acts.acting import call_for, to_run
from replan.cli.page.acts.steering import read_limit_fields
from replan.cli.page.forms import read_upload
from replan.cli.page.site import Site
from replan.server.bodies import StartBody
from replan.server.doors import runs
from replan.server.problems import as_refusal
from replan.server.request_body import check_fields
from replan.server.served_teams import ServedTeams, team_services
from replan.views.ahead.outlook import most

_FIELDS = ("task", "plan", "title", "labels", "limits", "team")


async def start(site: Site, request: Request) -> Response:
    """Show the form of a new run, and start it; the same form starts one run only."""
    typed, problem = {"task": request.query_params.get("task", "")}, None
    if request.method == "POST":
        typed, files = await read_upload(site, request)
        try:
            call = call_for(site.served, request)
            run = await runs.start(call, _body(typed, files), Response())
            return to_run(site, run.run_id)
        except ReplanError as error:
            problem, typed = as_refusal(error).problem, {**typed, "run_id": ""}
    values = {name: typed.get(name, "") for name in _FIELDS}
    values["run_id"] = typed.get("run_id") or site.served.new_id()
    return site.page(
        request,
        "start",
        200 if problem is None else problem.status,
        teams={name: _bounds_text(site.served, name) for name in site.served.runtimes},
        typed=values,
        problem=problem,
        lacking=site.served.lacking,
    )


def _bounds_text(served: ServedTeams, team: str) -> str:
    """The limits of a run of a team, in words."""
    runtime = served.runtimes[team]
    limits = team_services(runtime).settings.limits
    bounds = most(limits, runtime.resources.team.currency)
    calls = f"model calls at most {limits.max_model_calls}"
    return ", ".join([calls, *(f"{name} {bound}" for name, bound in bounds.items() if bound)])


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
