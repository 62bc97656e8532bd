"""Plan what a request says exactly: a plan document, or commands and steps for somebody by name."""

import re
from collections.abc import Sequence

from replan.base.errors import PlanDocumentError
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.rendering import render
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.statuses import excerpt
from replan_local.commands import Report
from replan_local.grammar import parse
from replan_local.refusals import CannotAnswerError

_LONGEST_TITLE, _LONGEST_LINE, _MOST_STEPS = 72, 240, 200
# A semicolon in quotes or brackets ends nothing.
_PARTS = re.compile(r"(?:\"[^\"\n]*\"|\([^()\n]*\)|[^;\n])+")
_BOX = re.compile(r"^[ \t]*[-*+][ \t]+\[.\][ \t]", re.MULTILINE)
_BULLET = re.compile(r"^\s*(?:[-*+]\s+|\d{1,3}[.)]\s+)")


def planned(request: str, team: Sequence[str]) -> str:
    if _BOX.search(request):
        try:
            return str(PlanDocument.parse(request))
        except PlanDocumentError as error:
            raise CannotAnswerError(str(error)) from None
    try:
        steps = _steps(request, team)
    except CannotAnswerError:
        if len(team) != 1:
            raise
        # Where there is one who can do it, nobody has to be chosen.
        steps = [_whole_step(request, team[0])]
    title = excerpt("; ".join(step.description for step in steps), _LONGEST_TITLE)
    return render(TaskPlan(title=title, steps=tuple(steps)))


def _steps(request: str, team: Sequence[str]) -> list[PlanStep]:
    parts = [part for piece in _PARTS.findall(request) if (part := _BULLET.sub("", piece).strip())]
    if not 0 < len(parts) <= _MOST_STEPS:
        raise CannotAnswerError(f"The request has {len(parts)} parts, not 1 to {_MOST_STEPS}.")
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
        told = " ".join(f"{mistake.reason} {mistake.fix}" for mistake in document.mistakes)
        raise CannotAnswerError(f"'{part}' is not a step of a plan. {told}".strip())
    (step,) = document.plan.steps
    if step.specialists:
        return step
    command = parse(step.description)
    if command.doer not in team:
        message = f"'{part}' is a command for '{command.doer}', who is not on the team."
        raise CannotAnswerError(message)
    is_of_all = isinstance(command, Report) and not step.dependencies
    after = {*command.steps, *step.dependencies, *(range(1, number) if is_of_all else ())}
    if lacking := [step_id for step_id in after if step_id >= number]:
        message = f"'{part}' builds on step {lacking[0]}, which does not come before it."
        raise CannotAnswerError(message)
    return step.replace(assigned_to=command.doer, dependencies=tuple(sorted(after)))


def _whole_step(request: str, name: str) -> PlanStep:
    # What the line of a step would read as something else is in its brief.
    is_plain = not set("@()[]") & set(request)
    line = excerpt(" ".join(request.split()), _LONGEST_LINE) if is_plain else "Do what is asked"
    brief = "" if line == request.strip() else request.strip()
    return PlanStep(id=1, description=line, brief=brief, assigned_to=name)
