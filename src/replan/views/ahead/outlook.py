"""What is ahead of a plan that has no mistakes: in lines for people, and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.outline import MARKS
from replan.plan.markdown.overlooked import overlooked
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.rerun import Rerun
from replan.state.limits import Limits
from replan.state.team import SpecialistCard, chosen_for, refusal_text
from replan.views.ahead.preview import (
    KnownTeam,
    Preview,
    preview,
    usual_calls,
    worst_case_calls,
    worst_case_cost,
    worst_case_seconds,
)
from replan.views.cells import amount, columns, counted, one_line
from replan.views.step_texts import waits_in_words


def outlook(plan: TaskPlan, team: KnownTeam, reruns: Sequence[Rerun] = ()) -> dict[str, JsonValue]:
    """Return what is ahead of a plan as JSON.

    The seconds of the worst case are those of the steps alone; `routed_to` is the specialist of a
    step that names none.
    """
    calls, limits = _calls(plan, team), team.limits
    return {
        **preview(plan, limits).model_dump(mode="json"),
        "reruns": [rerun.model_dump(mode="json") for rerun in reruns],
        "model_calls": {name: dict(numbers) for name, numbers in calls.items()},
        "approvals": _approvals(plan, team),
        "worst_case": {
            "model_calls": max(numbers["worst"] for numbers in calls.values()),
            "tokens": limits.max_tokens,
            "cost": _worst_cost(team),
            "seconds": worst_case_seconds(plan, limits, limits.max_seconds),
        },
        "parsed_steps": [
            {
                "step": step.id,
                "status": step.status.value,
                "specialists": list(step.specialists),
                "routed_to": chosen_for(step, team.cards or ()) or None,
                "after": list(step.dependencies),
                "condition": step.condition and step.condition.model_dump(mode="json"),
                "text": step.description,
            }
            for step in plan.steps
        ],
        "parse_warnings": [warning.model_dump(mode="json") for warning in overlooked(plan.content)],
        "refusals": [
            {"step": refusal.step_id, "code": refusal.code, "reason": refusal.reason}
            for refusal in team.refusals(plan)
        ],
    }


def outlook_lines(plan: TaskPlan, team: KnownTeam, reruns: Sequence[Rerun] = ()) -> list[str]:
    """Return what is ahead of a plan in lines; see `outlook`."""
    ahead, document = preview(plan, team.limits), PlanDocument.recover(plan.content)
    done = f", {ahead.open_steps} open" if ahead.open_steps < ahead.steps else ""
    rows = [_step_cells(step, team.cards or ()) for step in plan.steps]
    never = {
        f"beyond max_steps={team.limits.max_steps}": ahead.beyond,
        "blocked by a failed step": ahead.blocked,
    }
    names = ", ".join(_names_in(plan)) if team.cards is None else ""
    return [
        *([one_line(plan.title)] if plan.title else ()),
        f"steps: {ahead.steps}{done}",
        *(f"  {line}" for line in columns(rows) if rows),
        *(f"warning: {one_line(str(warning))}" for warning in overlooked(plan.content)),
        *([f"runs again: {', '.join(map(str, reruns))}"] if reruns else ()),
        f"width: {ahead.width} at once",
        _path_line(plan, ahead),
        *_call_lines(plan, team),
        *_spending_lines(plan, team),
        *_approval_lines(plan, team),
        *(f"refused: {one_line(refusal_text(r, document))}" for r in team.refusals(plan)),
        *(f"{why}, never started: {_ids(steps)}" for why, steps in never.items() if steps),
        *(f"conflict: {one_line(str(conflict))}" for conflict in ahead.conflicts),
        *([f"not checked without --team: whether a team has {names}"] if names else ()),
    ]


def _step_cells(step: PlanStep, team: Sequence[SpecialistCard]) -> tuple[str, ...]:
    chosen = chosen_for(step, team)
    by_card = f"@{chosen} (by its card)" if chosen else "no specialist named"
    who = " ".join(f"@{name}" for name in step.specialists) or by_card
    mark = f"[{MARKS[step.status]}] {step.id}"
    return mark, one_line(who), "; ".join(waits_in_words(step)), one_line(step.description)


def _approvals(plan: TaskPlan, team: KnownTeam) -> dict[str, Any]:
    """The approvals that a person will be asked for in a run of a handed-in plan.

    The steps of a tool are the open ones that name its specialist; others get no such work.
    """
    ask_first = {card.name for card in team.cards or () if card.asks_first}
    steps = {
        name: [step.id for step in plan.open_steps() if _names(step, name)] for name in team.asking
    }
    return {
        "plan": team.approval == "always",
        "revisions": team.revisable and team.approval in ("revisions", "always"),
        "tools": [
            {"specialist": name, "tools": list(tools), "steps": steps[name]}
            for name, tools in team.asking.items()
            if tools and steps[name]
        ],
        "steps": [
            step.id
            for step in plan.open_steps()
            if step.ask_first or not ask_first.isdisjoint(step.specialists)
        ],
    }


def _names(step: PlanStep, name: str) -> bool:
    return name.casefold() in map(str.casefold, step.specialists)


def _approval_lines(plan: TaskPlan, team: KnownTeam) -> Iterator[str]:
    approvals = _approvals(plan, team)
    if approvals["plan"]:
        yield "approval: asked before this plan runs"
    if approvals["revisions"]:
        yield "approval: asked before each revision runs"
    if steps := approvals["steps"]:
        yield f"approval: asked before {_ids(steps)} {'begins' if len(steps) == 1 else 'begin'}"
    for tool in approvals["tools"]:
        calls = f"each call of {', '.join(tool['tools'])} ({_ids(tool['steps'])})"
        yield f"approval: @{tool['specialist']} asks before {calls}"


def _calls(plan: TaskPlan, team: KnownTeam) -> dict[str, dict[str, int]]:
    unrevised = replace(team, revisable=False)
    return {
        name: {
            "usual": usual_calls(plan, team, merged=merged),
            "unrevised": worst_case_calls(plan, unrevised, merged=merged),
            "worst": worst_case_calls(plan, team, merged=merged),
        }
        for name, merged in {"merged": True, "separate": False}.items()
    }


def _path_line(plan: TaskPlan, ahead: Preview) -> str:
    if not ahead.critical_path:
        return "critical path: no step is open"
    length = counted(len(ahead.critical_path), "step")
    if any(step.estimated_duration is not None for step in plan.open_steps()):
        length += f", {ahead.critical_length:g} s as estimated"
    return f"critical path: {' > '.join(map(str, ahead.critical_path))} ({length})"


def _call_lines(plan: TaskPlan, team: KnownTeam) -> Iterator[str]:
    limit = team.limits.max_model_calls
    for name, calls in _calls(plan, team).items():
        if team.merged in (None, name == "merged"):
            worst = f"at most {calls['unrevised']}"
            if calls["worst"] != calls["unrevised"]:
                worst += f", with revisions at most {calls['worst']}"
            worst += f" (max_model_calls={limit})" if calls["worst"] == limit else ""
            kind = f", {name}" if team.merged is None else ""
            yield f"model calls{kind}: {calls['usual']} if all goes well, {worst}"


def _worst_cost(team: KnownTeam) -> float | None:
    limits = team.limits
    return worst_case_cost(
        limits.max_tokens, dearest_token=team.dearest_token, max_cost=limits.max_cost
    )


def _spending_lines(plan: TaskPlan, team: KnownTeam) -> Iterator[str]:
    limits, cost = team.limits, _worst_cost(team)
    tokens = limits.max_tokens
    is_priced = tokens is None or team.cards is None
    no_price = "not known (a model has no price, and max_cost is not set)"
    no_cost = "no bound (max_cost is not set)" if is_priced else no_price
    yield f"tokens: {'no bound (max_tokens is not set)' if tokens is None else f'at most {tokens}'}"
    yield f"cost: {no_cost if cost is None else f'at most {amount(cost, team.currency)}'}"
    if any(plan.open_steps()):
        seconds = worst_case_seconds(plan, limits)
        yield f"time of the steps: {seconds:g} s if every attempt takes all of its time"
    if limits.max_seconds is not None:
        yield f"time of the run: at most {limits.max_seconds:g} s"


def _names_in(plan: TaskPlan) -> list[str]:
    names = dict[str, str]()
    for step in (step for step in plan.steps if step.status is StepStatus.PENDING):
        for name in step.specialists:
            names.setdefault(name.casefold(), f"@{name}")
    return [*names.values()]


def _ids(steps: Sequence[int]) -> str:
    return f"{'step' if len(steps) == 1 else 'steps'} {', '.join(map(str, steps))}"


def bounds(team: KnownTeam) -> dict[str, JsonValue]:
    """The bounds of a run of a team whose plan is not known yet."""
    limits = team.limits.model_dump(mode="json")
    calls: JsonValue = {"worst": team.limits.max_model_calls}
    return {"model_calls": calls, "limits": limits, "approval": team.approval}


def bound_lines(team: KnownTeam) -> list[str]:
    """The bounds of a run of a team whose plan is not known yet, in lines; see `bounds`."""
    limits = team.limits
    return [
        f"model calls: at most {limits.max_model_calls}",
        f"rounds: at most {limits.max_rounds}, of at most {limits.max_steps} steps in all",
        f"steps at once: at most {limits.max_parallel_steps}",
        *(f"{name}: {bound or 'no limit'}" for name, bound in most(limits, team.currency).items()),
        *([f"approval: {team.approval}"] if team.approval != "never" else ()),
    ]


def most(limits: Limits, currency: str = "") -> dict[str, str]:
    """What a run can use of tokens, money and time; empty where it has no limit."""
    bounds = {"tokens": limits.max_tokens, "cost": limits.max_cost, "seconds": limits.max_seconds}
    units = {"cost": f" {currency}".rstrip()}
    return {
        name: "" if bound is None else f"at most {bound:g}{units.get(name, '')}"
        for name, bound in bounds.items()
    }
