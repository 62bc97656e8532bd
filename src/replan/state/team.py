"""The team as the host sees it: a card for each specialist, and who does which step."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from replan.base.declared.part import Effects
from replan.base.errors import Mistake, Refusal
from replan.base.values import Value
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.title import UnplacedMistake
from replan.plan.model import PlanStep, StepStatus

_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SHORTEST_STEM = 3
_NAME_WEIGHT, _CAPABILITY_WEIGHT, _USE_WEIGHT = 3, 2, 1

NOBODY = "nobody"
"""The name under which the result of a step without a specialist is kept."""


class Seat(NamedTuple):
    """Who does a step; `refused` says why nobody can, or is empty."""

    specialist: str
    refused: str = ""
    code: str = ""  # of the refusal
    about: str = ""  # the part of the step's line that it is about


def specialist_node(name: str) -> str:
    """The name of the graph's node that does the steps of a specialist."""
    return f"specialist_{name}"


class SpecialistCard(Value):
    name: str  # unique in the team
    intended_use: str  # when to choose it
    capabilities: tuple[str, ...] = ()
    effects: Effects = "pure"  # what a second run of one of its steps would do
    is_declared: bool = False  # whether it was declared, or follows from the kind of specialist
    # Whether it does only steps that name it: work that is declared unsafe, or that a person must
    # approve.
    only_by_name: bool = False
    asks_first: bool = False  # whether a person must approve each of its steps before it begins
    models: tuple[str, ...] = ()  # the chat models that a step may name


def best_cards(task_description: str, team: Sequence[SpecialistCard]) -> tuple[SpecialistCard, ...]:
    """The cards that share most words with a task; those of the name weigh most. Empty if none."""
    task = _words(task_description)
    scores = [_score(task, card) for card in team]
    best = max(scores, default=0)
    return tuple(card for card, score in zip(team, scores, strict=True) if score == best > 0)


def find_specialist(name: str, team: Sequence[SpecialistCard]) -> str | None:
    """Match a written name without regard to case and surrounding blanks; None if nobody has it."""
    card = _card_of(name, team)
    return None if card is None else card.name


def _card_of(name: str, team: Sequence[SpecialistCard]) -> SpecialistCard | None:
    wanted = name.strip().casefold()
    for card in team:
        if card.name.casefold() == wanted:
            return card
    return None


def seats_of(step: PlanStep, team: Sequence[SpecialistCard]) -> tuple[Seat, ...]:
    """Who does a step: the specialists that it names, else the one whose card fits it best."""
    if not step.specialists:
        return (_seat_by_card(step, team),)
    seats: dict[str, Seat] = {}
    for name in step.specialists:
        card = _card_of(name, team)
        seat = _seat_of_nobody(name, team) if card is None else _seat_with_model(card, step)
        seats[seat.specialist] = seat
    return tuple(seats.values())


def _seat_of_nobody(name: str, team: Sequence[SpecialistCard]) -> Seat:
    return Seat(name, _reason_against(name, team), "unknown_specialist", f"@{name}")


def _seat_with_model(card: SpecialistCard, step: PlanStep) -> Seat:
    if not step.model or step.model in card.models:
        return Seat(card.name)
    reason = f"names the model {step.model}, which @{card.name} does not have."
    model_names = ", ".join(card.models) or "its own, which needs no name"
    return Seat(card.name, f"{reason} Use one of: {model_names}.", "unknown_model", step.model)


def chosen_for(step: PlanStep, team: Sequence[SpecialistCard]) -> str:
    """The specialist that a step gets without naming it, or an empty text."""
    seats = () if step.specialists else seats_of(step, team)
    return "".join(seat.specialist for seat in seats if not seat.refused)


def refusals_of(steps: Iterable[PlanStep], team: Sequence[SpecialistCard]) -> Iterator[Refusal]:
    """Why nobody can do pending steps, or a part of them."""
    for step in steps:
        if step.status is StepStatus.PENDING:
            for seat in seats_of(step, team):
                if seat.refused:
                    yield Refusal(code=seat.code, step_id=step.id, reason=seat.refused)


def unknown_names(steps: Iterable[PlanStep], team: Sequence[SpecialistCard]) -> Iterator[Refusal]:
    """Which specialists and models unfinished steps name that the team does not have."""
    for step in steps:
        for seat in () if step.is_finished else seats_of(step, team):
            if seat.code in ("unknown_specialist", "unknown_model"):
                yield Refusal(code=seat.code, step_id=step.id, reason=seat.refused)


def seat_mistakes(
    steps: Iterable[PlanStep], team: Sequence[SpecialistCard], document: PlanDocument
) -> Iterator[Mistake]:
    """Why nobody can do pending steps of a document, as mistakes in their lines."""
    for step in steps:
        for seat in seats_of(step, team) if step.status is StepStatus.PENDING else ():
            if seat.refused:
                reason, use, fix = f"Step {step.id} {seat.refused}".rpartition("Use one of: ")
                mistake = UnplacedMistake(seat.code, seat.about, reason.rstrip(), use + fix)
                yield document.mistake_in(step.id, mistake)


def refusal_text(refusal: Refusal, document: PlanDocument) -> str:
    """A refusal as its reader finds it: with the step, and its line if the document has it."""
    line = None if refusal.step_id is None else document.line_of(refusal.step_id)
    place = "" if line is None else f" (line {line})"
    return f"Step {refusal.step_id}{place} {refusal.reason}"


def _seat_by_card(step: PlanStep, team: Sequence[SpecialistCard]) -> Seat:
    best = best_cards(f"{step.description}\n{step.brief}", team)
    if len(best) == 1 and not best[0].only_by_name:
        return _seat_with_model(best[0], step)
    problem = "no card fits it"
    if len(best) == 1:
        problem = f"@{best[0].name} does only work that names it"
    elif best:
        problem = f"the cards of {_team_names(best)} fit it alike"
    reason = f"names no specialist, and {problem}. Use one of: {_team_names(team)}."
    return Seat(NOBODY, reason, "nobody_named")


def _reason_against(name: str, team: Sequence[SpecialistCard]) -> str:
    return f"names @{name}, whom the team does not have. Use one of: {_team_names(team)}."


def _team_names(team: Sequence[SpecialistCard]) -> str:
    return ", ".join(f"@{card.name}" for card in team)


def _score(task: frozenset[str], card: SpecialistCard) -> int:
    return (
        _NAME_WEIGHT * len(task & _words(card.name))
        + _CAPABILITY_WEIGHT * len(task & _words(" ".join(card.capabilities)))
        + _USE_WEIGHT * len(task & _words(card.intended_use))
    )


def _words(text: str) -> frozenset[str]:
    """Words without endings; scripts that do not divide words give pairs of characters."""
    words: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if _CJK.search(word):
            words.update(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        elif len(word) > 1:
            # A single letter is an article or a label, and has no meaning.
            words.add(_stem(word))
    return frozenset(words)


def _stem(word: str) -> str:
    """Cut common English endings, so that "tables" meets "table" and "writing" meets "write"."""
    for ending in ("ing", "ers", "er", "es", "ed", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word
