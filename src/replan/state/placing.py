"""Who does a step: the named specialist, else the one whose card clearly fits, else none."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from replan.errors import Refusal
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import PlanStep, StepStatus
from replan.state.team import SpecialistCard, best_cards, find_specialist

NOBODY = "nobody"
"""The name under which the result of a step without a specialist is kept."""


class Place(NamedTuple):
    """One specialist of a step, and why nobody can do it; empty if somebody can."""

    specialist: str
    refused: str = ""


def places_of(step: PlanStep, team: Sequence[SpecialistCard]) -> tuple[Place, ...]:
    if not step.specialists:
        return (_by_card(step, team),)
    named = dict.fromkeys(find_specialist(name, team) or name for name in step.specialists)
    return tuple(
        Place(
            specialist=name,
            refused="" if find_specialist(name, team) else _stranger(name, team),
        )
        for name in named
    )


def chosen_for(step: PlanStep, team: Sequence[SpecialistCard]) -> str:
    """The specialist that a step gets without naming it, or an empty text."""
    given = () if step.specialists else places_of(step, team)
    return "".join(each.specialist for each in given if not each.refused)


def refusals_of(steps: Iterable[PlanStep], team: Sequence[SpecialistCard]) -> Iterator[Refusal]:
    """Why nobody can do pending steps, or a part of them."""
    for step in steps:
        if step.status is StepStatus.PENDING:
            for each in places_of(step, team):
                if each.refused:
                    code = "unknown_specialist" if step.specialists else "nobody_named"
                    yield Refusal(code=code, step_id=step.id, reason=each.refused)


def unknown_names(steps: Iterable[PlanStep], team: Sequence[SpecialistCard]) -> Iterator[Refusal]:
    for step in steps:
        for name in () if step.is_finished else step.specialists:
            if not find_specialist(name, team):
                reason = _stranger(name, team)
                yield Refusal(code="unknown_specialist", step_id=step.id, reason=reason)


def told_with_place(refusal: Refusal, document: PlanDocument) -> str:
    """A refusal as its reader finds it: with the step, and its line if the document has it."""
    line = None if refusal.step_id is None else document.line_of(refusal.step_id)
    place = "" if line is None else f" (line {line})"
    return f"Step {refusal.step_id}{place} {refusal.reason}"


def _by_card(step: PlanStep, team: Sequence[SpecialistCard]) -> Place:
    best = best_cards(f"{step.description}\n{step.brief}", team)
    if len(best) == 1 and not best[0].only_by_name:
        return Place(specialist=best[0].name)
    problem = "no card fits it"
    if len(best) == 1:
        problem = f"@{best[0].name} does only work that names it"
    elif best:
        problem = f"the cards of {_known(best)} fit it alike"
    reason = f"names no specialist, and {problem}. Use one of: {_known(team)}."
    return Place(specialist=NOBODY, refused=reason)


def _stranger(name: str, team: Sequence[SpecialistCard]) -> str:
    return f"names @{name}, whom the team does not have. Use one of: {_known(team)}."


def _known(team: Sequence[SpecialistCard]) -> str:
    return ", ".join(f"@{card.name}" for card in team)
