"""Say what a run takes at worst, before it runs and instead of running it."""

import json
from collections.abc import Mapping

from replan.cli.bounds import bound_lines, bounds, team_of
from replan.cli.cells import harmless
from replan.cli.exits import GOOD, WRONG_USE
from replan.cli.orders import Order
from replan.cli.outlook import KnownTeam, outlook, outlook_lines
from replan.plan.markdown.document import PlanDocument
from replan.plan.rerun import reopened, rerun_reasons
from replan.team.file_team import DEFAULT_TEAM
from replan.team.team_file import read_team_file

_UNKNOWN = "The plan of a request is made when it runs; whatever it is, the run takes"


def previewed(order: Order, environment: Mapping[str, str], *, as_json: bool) -> tuple[str, int]:
    """Give what is ahead of an order, and the exit code.

    Raises:
        UsageError: Something cannot be used.
    """
    team = _team_of(order, environment)
    if order.plan is None:
        text = json.dumps(bounds(team)) if as_json else "\n".join([_UNKNOWN, *bound_lines(team)])
        return f"{text}\n", GOOD
    whole = PlanDocument.parse(order.plan).plan
    reruns = rerun_reasons(whole)
    plan = reopened(whole, reruns)
    if as_json:
        text = json.dumps(outlook(plan, team, reruns))
    else:
        text = "\n".join(outlook_lines(plan, team, reruns))
    return f"{harmless(text)}\n", WRONG_USE if team.refusals(plan) else GOOD


def _team_of(order: Order, environment: Mapping[str, str]) -> KnownTeam:
    path = order.team or DEFAULT_TEAM
    team = read_team_file(path, environment, directory=order.folder)
    return team_of(team.config, order.settings, retries=team.models.retries)
