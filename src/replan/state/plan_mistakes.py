"""Everything that is wrong with a person's plan, so that all of it is reported together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from replan.base.errors import Mistake
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.overlooked import overlooked
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.rerun import reopened, rerun_reasons
from replan.state.step_options import option_mistakes
from replan.state.team import SpecialistCard, seat_mistakes


def plan_mistakes(
    document: PlanDocument,
    team: Sequence[SpecialistCard] | None = None,
    before: TaskPlan | None = None,
) -> tuple[Mistake, ...]:
    """Return the mistakes of a document's text, of its steps' options, and of who does them.

    Args:
        document: What a person wrote; what can be read of it is checked, whatever else is wrong.
        team: Who can do the steps; without it, nobody is missed.
        before: The plan that the document changes; what it has already is not checked again.
    """
    mistakes = [*document.mistakes, *option_mistakes(document, before)]
    if team is not None:
        mistakes += _unassigned(document, team, before)
    return tuple(sorted(mistakes, key=lambda mistake: (mistake.line, mistake.column)))


def _unassigned(
    document: PlanDocument, team: Sequence[SpecialistCard], before: TaskPlan | None
) -> Iterator[Mistake]:
    """Name the open steps that nobody does; a name in the wrong place is often the reason."""
    plan = document.plan
    old_steps = (before or TaskPlan()).by_id
    steps = [step for step in reopened(plan, rerun_reasons(plan)).steps if _is_new(step, old_steps)]
    misplaced = {
        warning.line: warning for warning in overlooked(document.text) if warning.kind == "name"
    }
    for mistake in seat_mistakes(steps, team, document):
        name = misplaced.get(mistake.line)
        yield mistake if name is None else replace(mistake, fix=f"{mistake.fix} In {name}.")


def _is_new(step: PlanStep, old_steps: Mapping[int, PlanStep]) -> bool:
    old = old_steps.get(step.id)
    return old is None or (step.specialists, step.model) != (old.specialists, old.model)
