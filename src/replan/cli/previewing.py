"""Say what a run takes at worst, before it runs and instead of running it."""

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from replan.assembly import local_config
from replan.cli.cells import harmless
from replan.cli.checking import team_of
from replan.cli.exits import GOOD, WRONG_USE
from replan.cli.orders import Order
from replan.cli.outlook import KnownTeam, outlook, outlook_lines
from replan.plan.document import PlanDocument
from replan.plan.rerun import reopened, rerun_reasons
from replan.team.team_file import read_team_file


def previewed(order: Order, environment: Mapping[str, str], *, as_json: bool) -> tuple[str, int]:
    """Give what is ahead of an order, and the exit code.

    Raises:
        UsageError: Something cannot be used.
    """
    team = _team_of(order, environment)
    if order.plan is None:
        text = json.dumps(_bounds(team)) if as_json else "\n".join(_request_lines(team))
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
    if order.team is None:
        config = local_config(directory=order.directory or Path(), out=order.out)
        return team_of(config, order.settings)
    team = read_team_file(order.team, environment, directory=order.directory)
    return team_of(team.config, order.settings, retries=team.models.retries)


def _bounds(team: KnownTeam) -> dict[str, JsonValue]:
    """What bounds a run whose plan nobody knows yet."""
    limits = team.limits.model_dump(mode="json")
    calls: JsonValue = {"worst": team.limits.max_model_calls}
    return {"model_calls": calls, "limits": limits, "approval": team.approval}


def _request_lines(team: KnownTeam) -> list[str]:
    limits = team.limits
    lines = [
        "The plan of a request is made when it runs; whatever it is, the run takes",
        f"model calls: at most {limits.max_model_calls}",
        f"rounds: at most {limits.max_rounds}, of at most {limits.max_steps} steps in all",
        f"steps at once: at most {limits.max_parallel_steps}",
    ]
    bounds = {
        "tokens": limits.max_tokens,
        "cost": limits.max_cost,
        "seconds": limits.max_seconds,
    }
    lines += [
        f"{name}: no limit" if bound is None else f"{name}: at most {bound:g}"
        for name, bound in bounds.items()
    ]
    if team.approval != "never":
        lines.append(f"approval: {team.approval}")
    return lines
