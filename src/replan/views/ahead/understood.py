"""The steps of a plan as they were read: number, specialist, dependencies, text."""

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from replan.plan.markdown.rendering import MARKS
from replan.plan.model import PlanStep, TaskPlan
from replan.state.team import SpecialistCard, chosen_for
from replan.views.cells import one_line, padded

_WIDEST = 40


def understood(plan: TaskPlan, team: Sequence[SpecialistCard]) -> list[JsonValue]:
    """The steps as JSON; `chosen` is the specialist of a step that names none."""
    return [
        {
            "step": step.id,
            "status": step.status.value,
            "specialists": list(step.specialists),
            "chosen": chosen_for(step, team) or None,
            "after": list(step.dependencies),
            "condition": None if step.condition is None else step.condition.model_dump(mode="json"),
            "text": step.description,
        }
        for step in plan.steps
    ]


def understood_lines(plan: TaskPlan, team: Sequence[SpecialistCard]) -> list[str]:
    """The steps in columns."""
    rows = [_row(step, team) for step in plan.steps]
    widths = [min(_WIDEST, max(map(len, column))) for column in zip(*rows, strict=True)]
    return [f"  {_joined(row, widths)}" for row in rows]


def _row(step: PlanStep, team: Sequence[SpecialistCard]) -> tuple[str, ...]:
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
