"""Check a plan document before it runs, without any framework."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from replan.cli.cells import counted, harmless
from replan.cli.exits import GOOD, WRONG_USE
from replan.cli.outlook import KnownTeam, outlook, outlook_lines
from replan.cli.reading import read_plan_text
from replan.errors import Mistake
from replan.plan.document import PlanDocument
from replan.plan.preview import USUAL_RETRIES, calls_of_reply, calls_of_try
from replan.plan.rerun import reopened, rerun_reasons
from replan.state.limits import Limits, RunSettings

if TYPE_CHECKING:
    from replan.team.specialist import Specialist
    from replan.team.team import Team


def check_plan(
    path: Path,
    team_file: Path | None,
    environment: Mapping[str, str],
    *,
    as_json: bool,
    imports: bool = False,
) -> tuple[str, int]:
    """Give what is to be said of a plan document, and the exit code.

    Args:
        path: The plan document.
        team_file: The team, if there is one.
        environment: Where the keys of models stand.
        as_json: Whether to say it as JSON.
        imports: Whether to import what the team file names, which runs its code.

    Raises:
        UsageError: A file cannot be used.
    """
    document = PlanDocument.recover(read_plan_text(path))
    team = KnownTeam(limits=Limits())
    if team_file is not None:
        team = _team_of(team_file, environment, imports=imports)
    mistakes, reruns = document.mistakes, rerun_reasons(document.plan)
    plan = reopened(document.plan, reruns)
    code = WRONG_USE if mistakes or team.refusals(plan) else GOOD
    if as_json:
        record: dict[str, JsonValue] = {"mistakes": [_record(mistake) for mistake in mistakes]}
        record |= {} if mistakes else outlook(plan, team, reruns)
        return json.dumps(record, ensure_ascii=True) + "\n", code
    if mistakes:
        lines = [f"{path}:{m.line}:{m.column}: {m.reason} {m.mend}" for m in mistakes]
        lines.append(counted(len(mistakes), "mistake"))
    else:
        lines = outlook_lines(plan, team, reruns)
    return "".join(f"{harmless(line)}\n" for line in lines), code


def _record(mistake: Mistake) -> dict[str, JsonValue]:
    return {
        "line": mistake.line,
        "column": mistake.column,
        "code": mistake.code,
        "reason": mistake.reason,
        "mend": mistake.mend,
    }


def _team_of(path: Path, environment: Mapping[str, str], *, imports: bool) -> KnownTeam:
    """Read a team file.

    Raises:
        UsageError: The file cannot be used.
    """
    from replan.team.team_file import read_team_file  # noqa: PLC0415 - it loads LangChain

    team = read_team_file(path, environment, imports=imports)
    return team_of(team.config, retries=team.models.retries)


def team_of(
    config: "Team",
    asked: RunSettings | None = None,
    *,
    retries: Mapping[str, int] | None = None,
) -> KnownTeam:
    """Give what an outlook needs to know of a team.

    Args:
        config: The team.
        asked: What one run is to do otherwise.
        retries: Further calls of one reply by the name of the model, where they are configured.
    """
    settings = config.settings.overridden_by(asked)
    known = retries or {}
    return KnownTeam(
        limits=settings.limits,
        per_try={each.name: _calls_of_try(each, known) for each in config.specialists},
        per_reply=max(_calls_of_reply(model, known) for model in config.host.chat_models.values()),
        merged=_is_merged(config),
        cards=tuple(each.card for each in config.specialists),
        revisable=settings.allow_dynamic_update,
        approval=settings.approval,
        asking={each.name: tuple(each.approve) for each in config.specialists},
        dearest_token=dearest_token(config),
    )


def _is_merged(config: "Team") -> bool | None:
    """Whether one call of the host does the work of two; none where only some calls do."""
    host = config.host
    apart = (host.thinking_model, host.planning_model, host.feedback_model, host.planning_prompt)
    if config.calls == "separate":
        return False
    return None if any(apart) or host.tools else True


def dearest_token(config: "Team") -> float | None:
    """What a token costs at most; none where a model has no price, or where nobody knows it."""
    from replan.ports.prices import price_of  # noqa: PLC0415 - the check without a team is light

    models = config.chat_models.values()
    dearest = 0.0
    for model in models:
        name = model if isinstance(model, str) else ""
        price = price_of((name, name.partition(":")[2]), config.prices) if name else None
        if model is not None and price is None:
            return None
        dearest = max(dearest, price.input, price.output) if price is not None else dearest
    foreign = (_calls_of_try(each, {}) for each in config.specialists if each.chat_model is None)
    return None if None in foreign else dearest / 1_000_000


def _calls_of_reply(model: Any, retries: Mapping[str, int]) -> int:
    if model == "offline":
        return calls_of_reply(0)
    return calls_of_reply(
        retries.get(model, USUAL_RETRIES) if isinstance(model, str) else USUAL_RETRIES
    )


def _calls_of_try(specialist: "Specialist", retries: Mapping[str, int]) -> int | None:
    """Model calls of one try; none where nobody can know: of tools, graphs and functions."""
    if specialist.chat_model is not None and not specialist.tools:
        return calls_of_try(_calls_of_reply(specialist.chat_model, retries))
    return None if specialist.local is None else 0
