"""What is ahead of a plan that has no mistakes: in lines for people, and as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pydantic import JsonValue

from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.outline import MARKS
from replan.plan.markdown.overlooked import overlooked
from replan.plan.model import PlanStep, StepStatus, TaskPlan, Value
from replan.plan.rerun import Rerun
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
from replan.views.cells import amount, counted, one_line, padded


class _ToolApproval(Value):
    specialist: str
    tools: tuple[str, ...]
    steps: tuple[int, ...]


class _Approvals(Value):
    """The approvals that a person will be asked for."""

    plan: bool  # whether this plan, before it runs
    revisions: bool
    tools: tuple[_ToolApproval, ...]  # before each call of them
    steps: tuple[int, ...]  # before which steps

    @classmethod
    def of(cls, plan: TaskPlan, team: KnownTeam) -> "_Approvals":
        """Find the questions that a run of a handed-in plan will ask."""
        ask_first = {card.name for card in team.cards or () if card.asks_first}
        tools = [
            _ToolApproval(specialist=name, tools=tools, steps=_steps_of(name, plan))
            for name, tools in team.asking.items()
            if tools
        ]
        return cls(
            plan=team.approval == "always",
            revisions=team.revisable and team.approval in ("revisions", "always"),
            tools=tuple(approval for approval in tools if approval.steps),
            steps=tuple(
                step.id
                for step in plan.open_steps()
                if step.ask_first or not ask_first.isdisjoint(step.specialists)
            ),
        )


def outlook(plan: TaskPlan, team: KnownTeam, reruns: Sequence[Rerun] = ()) -> dict[str, JsonValue]:
    """Return what is ahead of a plan as JSON."""
    return {
        **preview(plan, team.limits).model_dump(mode="json"),
        "reruns": [rerun.model_dump(mode="json") for rerun in reruns],
        "model_calls": {name: dict(calls) for name, calls in _calls(plan, team).items()},
        "approvals": _Approvals.of(plan, team).model_dump(mode="json"),
        "worst_case": _worst_case(plan, team),
        "parsed_steps": understood(plan, team.cards or ()),
        "parse_warnings": [warning.model_dump(mode="json") for warning in overlooked(plan.content)],
        "refusals": [
            {"step": refusal.step_id, "code": refusal.code, "reason": refusal.reason}
            for refusal in team.refusals(plan)
        ],
    }


def outlook_lines(plan: TaskPlan, team: KnownTeam, reruns: Sequence[Rerun] = ()) -> list[str]:
    """Return what is ahead of a plan in lines; see `outlook`."""
    ahead = preview(plan, team.limits)
    lines = [one_line(plan.title)] if plan.title else []
    done = f", {ahead.open_steps} open" if ahead.open_steps < ahead.steps else ""
    lines.append(f"steps: {ahead.steps}{done}")
    lines += understood_lines(plan, team.cards or ())
    lines += [f"warning: {one_line(str(warning))}" for warning in overlooked(plan.content)]
    lines += [f"runs again: {', '.join(map(str, reruns))}"] if reruns else []
    lines.append(f"width: {ahead.width} at once")
    lines.append(_path_line(plan, ahead))
    lines += _call_lines(plan, team)
    lines += _spending_lines(plan, team)
    lines += _approval_lines(plan, team)
    document = PlanDocument.recover(plan.content)
    refused = team.refusals(plan)
    lines += [f"refused: {one_line(refusal_text(refusal, document))}" for refusal in refused]
    if ahead.beyond:
        lines.append(
            f"beyond max_steps={team.limits.max_steps}, never started: {_ids(ahead.beyond)}"
        )
    if ahead.blocked:
        lines.append(f"blocked by a failed step, never started: {_ids(ahead.blocked)}")
    lines += [f"conflict: {one_line(str(conflict))}" for conflict in ahead.conflicts]
    if team.cards is None and (names := _names_in(plan)):
        lines.append(f"not checked without --team: whether a team has {', '.join(names)}")
    return lines


def _approval_lines(plan: TaskPlan, team: KnownTeam) -> list[str]:
    asked = _Approvals.of(plan, team)
    lines = ["approval: asked before this plan runs"] if asked.plan else []
    lines += ["approval: asked before each revision runs"] if asked.revisions else []
    begins = "begins" if len(asked.steps) == 1 else "begin"
    lines += [f"approval: asked before {_ids(asked.steps)} {begins}"] if asked.steps else []
    return lines + [
        f"approval: @{approval.specialist} asks before each call of {', '.join(approval.tools)} "
        f"({_ids(approval.steps)})"
        for approval in asked.tools
    ]


def _steps_of(name: str, plan: TaskPlan) -> tuple[int, ...]:
    """The open steps that name a specialist; others get no work that must be approved."""
    return tuple(
        step.id
        for step in plan.open_steps()
        if name.casefold() in map(str.casefold, step.specialists)
    )


def _calls(plan: TaskPlan, team: KnownTeam) -> dict[str, dict[str, int]]:
    def of(*, merged: bool) -> dict[str, int]:
        unrevised = replace(team, revisable=False)
        return {
            "usual": usual_calls(plan, team, merged=merged),
            "unrevised": worst_case_calls(plan, unrevised, merged=merged),
            "worst": worst_case_calls(plan, team, merged=merged),
        }

    return {"merged": of(merged=True), "separate": of(merged=False)}


def _path_line(plan: TaskPlan, ahead: Preview) -> str:
    if not ahead.critical_path:
        return "critical path: no step is open"
    length = counted(len(ahead.critical_path), "step")
    if any(step.estimated_duration is not None for step in plan.open_steps()):
        length += f", {ahead.critical_length:g} s as estimated"
    return f"critical path: {' > '.join(map(str, ahead.critical_path))} ({length})"


def _call_lines(plan: TaskPlan, team: KnownTeam) -> list[str]:
    limit = team.limits.max_model_calls
    lines: list[str] = []
    for name, calls in _calls(plan, team).items():
        if team.merged is not None and (name == "merged") is not team.merged:
            continue
        worst = f"at most {calls['unrevised']}"
        if calls["worst"] != calls["unrevised"]:
            worst += f", with revisions at most {calls['worst']}"
        if calls["worst"] == limit:
            worst += f" (max_model_calls={limit})"
        kind = f", {name}" if team.merged is None else ""
        lines.append(f"model calls{kind}: {calls['usual']} if all goes well, {worst}")
    return lines


def _worst_case(plan: TaskPlan, team: KnownTeam) -> dict[str, JsonValue]:
    """The bounds of a run; None if there is no bound; the seconds are those of the steps alone."""
    limits = team.limits
    return {
        "model_calls": max(calls["worst"] for calls in _calls(plan, team).values()),
        "tokens": limits.max_tokens,
        "cost": _worst_cost(team),
        "seconds": worst_case_seconds(plan, limits, limits.max_seconds),
    }


def _worst_cost(team: KnownTeam) -> float | None:
    limits = team.limits
    return worst_case_cost(
        limits.max_tokens, dearest_token=team.dearest_token, max_cost=limits.max_cost
    )


def _spending_lines(plan: TaskPlan, team: KnownTeam) -> list[str]:
    limits = team.limits
    tokens, cost = limits.max_tokens, _worst_cost(team)
    lines = [
        f"tokens: {'no bound (max_tokens is not set)' if tokens is None else f'at most {tokens}'}",
        f"cost: {_no_cost(team) if cost is None else f'at most {amount(cost, team.currency)}'}",
    ]
    if any(plan.open_steps()):
        seconds = worst_case_seconds(plan, limits)
        lines.append(f"time of the steps: {seconds:g} s if every attempt takes all of its time")
    if limits.max_seconds is not None:
        lines.append(f"time of the run: at most {limits.max_seconds:g} s")
    return lines


def _no_cost(team: KnownTeam) -> str:
    if team.limits.max_tokens is not None and team.cards is not None:
        return "not known (a model has no price, and max_cost is not set)"
    return "no bound (max_cost is not set)"


def _names_in(plan: TaskPlan) -> list[str]:
    names: dict[str, str] = {}
    for step in plan.steps:
        for name in step.specialists if step.status is StepStatus.PENDING else ():
            names.setdefault(name.casefold(), f"@{name}")
    return list(names.values())


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
    lines = [
        f"model calls: at most {limits.max_model_calls}",
        f"rounds: at most {limits.max_rounds}, of at most {limits.max_steps} steps in all",
        f"steps at once: at most {limits.max_parallel_steps}",
    ]
    bounds = {
        "tokens": limits.max_tokens,
        "cost": limits.max_cost,
        "seconds": limits.max_seconds,
    }
    units = {"cost": f" {team.currency}".rstrip()}
    lines += [
        f"{name}: no limit" if bound is None else f"{name}: at most {bound:g}{units.get(name, '')}"
        for name, bound in bounds.items()
    ]
    if team.approval != "never":
        lines.append(f"approval: {team.approval}")
    return lines


_WIDEST = 40


def understood(plan: TaskPlan, team: Sequence[SpecialistCard]) -> list[JsonValue]:
    """The steps as JSON; `routed_to` is the specialist of a step that names none."""
    return [
        {
            "step": step.id,
            "status": step.status.value,
            "specialists": list(step.specialists),
            "routed_to": chosen_for(step, team) or None,
            "after": list(step.dependencies),
            "condition": None if step.condition is None else step.condition.model_dump(mode="json"),
            "text": step.description,
        }
        for step in plan.steps
    ]


def understood_lines(plan: TaskPlan, team: Sequence[SpecialistCard]) -> list[str]:
    """The steps in columns."""
    rows = [_step_cells(step, team) for step in plan.steps]
    widths = [min(_WIDEST, max(map(len, column))) for column in zip(*rows, strict=True)]
    return [f"  {_joined(row, widths)}" for row in rows]


def _step_cells(step: PlanStep, team: Sequence[SpecialistCard]) -> tuple[str, ...]:
    names = " ".join(f"@{name}" for name in step.specialists)
    chosen = chosen_for(step, team)
    who = names or (f"@{chosen} (by its card)" if chosen else "no specialist named")
    mark = f"[{MARKS[step.status]}] {step.id}"
    return mark, one_line(who), "; ".join(_waits(step)), one_line(step.description)


def _waits(step: PlanStep) -> Iterable[str]:
    if step.dependencies:
        yield f"after {', '.join(map(str, step.dependencies))}"
    if step.condition is not None:
        yield f"if {step.condition.step} {step.condition.outcome}"


def _joined(row: Sequence[str], widths: Sequence[int]) -> str:
    *columns, text = row
    cells = [padded(cell, width) for cell, width in zip(columns, widths, strict=False) if width]
    return "  ".join([*cells, text])
