"""Plan what a request says exactly: a plan document, or commands and steps for somebody by name."""

import re
from collections.abc import Sequence

from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.rendering import render
from replan.plan.model import PlanStep, TaskPlan
from replan_local.commands import Calculate, Command, Compare, Report
from replan_local.expressions import steps_in
from replan_local.grammar import parse
from replan_local.refusals import CannotAnswerError
from replan_local.specialists import doer_of

_LONGEST_TITLE, _LONGEST_LINE, _MOST_STEPS = 72, 240, 200
# A semicolon in quotes or brackets ends nothing.
_PARTS = re.compile(r"(?:\"[^\"\n]*\"|\([^()\n]*\)|[^;\n])+")
_BOX = re.compile(r"^[ \t]*[-*+][ \t]+\[.\][ \t]", re.MULTILINE)
_BULLET = re.compile(r"^\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)")


def planned(request: str, team: Sequence[str]) -> str:
    if _BOX.search(request):
        document = PlanDocument.recover(request)
        for mistake in document.mistakes:
            message = f"Line {mistake.line} of the plan: {mistake.reason} {mistake.fix}"
            raise CannotAnswerError(message)
        return str(document)
    try:
        steps = _steps(request, team)
    except CannotAnswerError:
        if len(team) != 1:
            raise
        # Where there is one who can do it, nobody has to be chosen.
        steps = [_whole(request, team[0])]
    title = _cut("; ".join(step.description for step in steps), _LONGEST_TITLE)
    return render(TaskPlan(title=title, steps=tuple(steps)))


def _steps(request: str, team: Sequence[str]) -> list[PlanStep]:
    parts = [part for each in _PARTS.findall(request) if (part := _BULLET.sub("", each).strip())]
    if not 0 < len(parts) <= _MOST_STEPS:
        message = f"The request has {len(parts)} parts; 1 to {_MOST_STEPS} are planned."
        raise CannotAnswerError(message)
    steps: list[PlanStep] = []
    for number, part in enumerate(parts, start=1):
        try:
            steps.append(_step(number, part, team))
        except CannotAnswerError as refusal:
            where = f"Part {number} of {len(parts)}: " if len(parts) > 1 else ""
            raise CannotAnswerError(f"{where}{refusal}") from None
    return steps


def _step(number: int, part: str, team: Sequence[str]) -> PlanStep:
    document = PlanDocument.recover(f"- [ ] {number}. {part}\n", known=range(1, number))
    if document.mistakes or len(document.plan.steps) != 1:
        told = " ".join(f"{each.reason} {each.fix}" for each in document.mistakes)
        raise CannotAnswerError(f"'{part}' is not a step of a plan. {told}".strip())
    (step,) = document.plan.steps
    if step.specialists:
        return step
    command = parse(step.description)
    name = doer_of(command)
    if name not in team:
        raise CannotAnswerError(f"'{part}' is a command for '{name}', who is not on the team.")
    after = _builds_on(command, number, step.dependencies)
    if lacking := [each for each in after if not 0 < each < number]:
        message = f"'{part}' builds on step {lacking[0]}, which does not come before it."
        raise CannotAnswerError(message)
    return step.replace(assigned_to=name, dependencies=after)


def _builds_on(command: Command, number: int, written: Sequence[int]) -> tuple[int, ...]:
    match command:
        case Compare():
            named: Sequence[int] = (command.one, command.other)
        case Calculate():
            named = steps_in(command.expression)
        case Report() if not written:
            named = range(1, number)
        case _:
            named = ()
    return tuple(sorted({*named, *written}))


def _whole(request: str, name: str) -> PlanStep:
    # What the line of a step would read as something else is in its brief.
    line = "Do what is asked" if set("@()[]") & set(request) else _cut(request, _LONGEST_LINE)
    brief = "" if line == request.strip() else request.strip()
    return PlanStep(id=1, description=line, brief=brief, assigned_to=name)


def _cut(text: str, longest: int) -> str:
    line = " ".join(text.split())
    if len(line) <= longest:
        return line
    return line[: longest - 1].rsplit(" ", 1)[0].rstrip(" ,;:-") + "\u2026"
