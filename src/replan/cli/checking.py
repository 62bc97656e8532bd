"""Check a plan document before it runs, without any framework."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue

from replan.cli.cells import counted, harmless, one_line
from replan.cli.exits import GOOD, WRONG_USE
from replan.cli.reading import read_plan_text
from replan.errors import Mistake
from replan.plan.document import PlanDocument
from replan.plan.model import StepStatus, TaskPlan
from replan.plan.preview import CALLS_PER_TRY, Preview, preview, usual_calls, worst_case_calls
from replan.state.limits import Limits

if TYPE_CHECKING:
    from replan.graph.config import Specialist


@dataclass(frozen=True, kw_only=True)
class Team:
    """What a check needs to know of a team.

    Attributes:
        limits: The bounds of its runs.
        per_try: Model calls of one try by the specialist's name; none where nobody knows.
        names: Its specialists; none if no team was given.
        revisable: Whether its runs may revise a plan.
    """

    limits: Limits
    per_try: Mapping[str, int | None] | None = None
    names: tuple[str, ...] | None = None
    revisable: bool = True


def check_plan(
    path: Path, team_file: Path | None, environment: Mapping[str, str], *, as_json: bool
) -> tuple[str, int]:
    """Give what is to be said of a plan document, and the exit code.

    Raises:
        UsageError: A file cannot be used.
    """
    document = PlanDocument.recover(read_plan_text(path))
    team = Team(limits=Limits()) if team_file is None else _team_of(team_file, environment)
    plan, mistakes = document.plan, document.mistakes
    strangers = _strangers(plan, team)
    code = WRONG_USE if mistakes or strangers else GOOD
    if as_json:
        record: dict[str, JsonValue] = {"mistakes": [_record(mistake) for mistake in mistakes]}
        record |= {} if mistakes else _facts(plan, team, strangers)
        return json.dumps(record, ensure_ascii=True) + "\n", code
    if mistakes:
        lines = [f"{path}:{m.line}:{m.column}: {m.reason} {m.mend}" for m in mistakes]
        lines.append(counted(len(mistakes), "mistake"))
    else:
        lines = _told(plan, team, strangers)
    return "".join(f"{harmless(line)}\n" for line in lines), code


def _record(mistake: Mistake) -> dict[str, JsonValue]:
    return {
        "line": mistake.line,
        "column": mistake.column,
        "code": mistake.code,
        "reason": mistake.reason,
        "mend": mistake.mend,
    }


def _calls(plan: TaskPlan, team: Team) -> dict[str, dict[str, int]]:
    def of(*, merged: bool) -> dict[str, int]:
        count_worst = partial(
            worst_case_calls, plan, team.limits, merged=merged, per_try=team.per_try
        )
        return {
            "usual": usual_calls(plan, team.limits, merged=merged, per_try=team.per_try),
            "unrevised": count_worst(revisable=False),
            "worst": count_worst(revisable=team.revisable),
        }

    return {"merged": of(merged=True), "separate": of(merged=False)}


def _facts(
    plan: TaskPlan, team: Team, strangers: Sequence[tuple[int, str]]
) -> dict[str, JsonValue]:
    ahead = preview(plan, team.limits)
    return {
        **ahead.model_dump(mode="json"),
        "model_calls": {name: dict(calls) for name, calls in _calls(plan, team).items()},
        "unknown_specialists": [{"step": step, "name": name} for step, name in strangers],
    }


def _told(plan: TaskPlan, team: Team, strangers: Sequence[tuple[int, str]]) -> list[str]:
    ahead = preview(plan, team.limits)
    lines = [one_line(plan.title)] if plan.title else []
    done = f", {ahead.open_steps} open" if ahead.open_steps < ahead.steps else ""
    lines.append(f"steps: {ahead.steps}{done}")
    lines.append(f"width: {ahead.width} at once")
    lines.append(_path_line(plan, ahead))
    lines += _call_lines(plan, team)
    lines += [
        f"unknown specialist: step {step} names @{name}; "
        f"the team has {', '.join(f'@{each}' for each in team.names or ())}"
        for step, name in strangers
    ]
    if ahead.beyond:
        lines.append(
            f"beyond max_steps={team.limits.max_steps}, never started: {_ids(ahead.beyond)}"
        )
    if ahead.blocked:
        lines.append(f"blocked by a failed step, never started: {_ids(ahead.blocked)}")
    return lines


def _path_line(plan: TaskPlan, ahead: Preview) -> str:
    if not ahead.critical_path:
        return "critical path: no step is open"
    length = counted(len(ahead.critical_path), "step")
    if any(step.estimated_duration is not None for step in plan.open_steps()):
        length += f", {ahead.critical_length:g} s as estimated"
    return f"critical path: {' > '.join(map(str, ahead.critical_path))} ({length})"


def _call_lines(plan: TaskPlan, team: Team) -> list[str]:
    limit = team.limits.max_model_calls
    lines: list[str] = []
    for name, calls in _calls(plan, team).items():
        worst = f"at most {calls['unrevised']}"
        if calls["worst"] != calls["unrevised"]:
            worst += f", with revisions at most {calls['worst']}"
        if calls["worst"] == limit:
            worst += f" (max_model_calls={limit})"
        lines.append(f"model calls, {name}: {calls['usual']} if all goes well, {worst}")
    return lines


def _strangers(plan: TaskPlan, team: Team) -> list[tuple[int, str]]:
    """The names of pending steps that the team does not have; a run would refuse them."""
    if team.names is None:
        return []
    known = {name.casefold() for name in team.names}
    return [
        (step.id, name)
        for step in plan.steps
        if step.status is StepStatus.PENDING
        for name in step.specialists
        if name.casefold() not in known
    ]


def _team_of(path: Path, environment: Mapping[str, str]) -> Team:
    """Read a team file.

    Raises:
        UsageError: The file cannot be used.
    """
    from replan.settings.team_file import read_team_file  # noqa: PLC0415 - it loads LangChain

    config = read_team_file(path, environment).config
    return Team(
        limits=config.limits,
        per_try={each.name: _calls_of_try(each) for each in config.specialists},
        names=tuple(each.name for each in config.specialists),
        revisable=config.allow_dynamic_update,
    )


def _calls_of_try(specialist: "Specialist") -> int | None:
    """Model calls of one try; none where nobody can know: of tools, graphs and functions."""
    if specialist.chat_model is not None and not getattr(specialist, "tools", ()):
        return CALLS_PER_TRY
    # The members of the local team are objects whose `run` is taken.
    home = getattr(getattr(specialist.run, "__self__", None), "__module__", "")
    return 0 if home.startswith("replan.specialists.local.") else None


def _ids(steps: Sequence[int]) -> str:
    return f"{'step' if len(steps) == 1 else 'steps'} {', '.join(map(str, steps))}"
