"""The team as the host sees it: a card for each specialist, and the best card for a task."""

import re
from collections.abc import Sequence

from replan.declared.effects import Effects
from replan.plan.model import Value

_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SHORTEST_STEM = 3
_NAME_WEIGHT, _CAPABILITY_WEIGHT, _USE_WEIGHT = 3, 2, 1


class SpecialistCard(Value):
    name: str  # unique in the team; the node is called `specialist_<name>`
    intended_use: str  # when to choose it
    capabilities: tuple[str, ...] = ()
    effects: Effects = "pure"  # what a second run of one of its steps would do
    is_declared: bool = False  # whether it was declared, or follows from the kind of specialist
    # Whether it does only steps that name it: work that is declared unsafe, or that a person must
    # approve.
    only_by_name: bool = False


def best_cards(task_description: str, team: Sequence[SpecialistCard]) -> tuple[SpecialistCard, ...]:
    """The cards that share most words with a task; those of the name weigh most. Empty if none."""
    task = _words(task_description)
    scores = [_score(task, card) for card in team]
    best = max(scores, default=0)
    return tuple(card for card, score in zip(team, scores, strict=True) if score == best > 0)


def find_specialist(name: str, team: Sequence[SpecialistCard]) -> str | None:
    """Match a written name without regard to case and surrounding blanks; None if nobody has it."""
    wanted = name.strip().casefold()
    return next((card.name for card in team if card.name.casefold() == wanted), None)


def _score(task: frozenset[str], card: SpecialistCard) -> int:
    return (
        _NAME_WEIGHT * len(task & _words(card.name))
        + _CAPABILITY_WEIGHT * len(task & _words(" ".join(card.capabilities)))
        + _USE_WEIGHT * len(task & _words(card.intended_use))
    )


def _words(text: str) -> frozenset[str]:
    """Words without endings; scripts that do not divide words give pairs of characters."""
    found: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if _CJK.search(word):
            found.update(word[i : i + 2] for i in range(max(1, len(word) - 1)))
        elif len(word) > 1:
            # A single letter is an article or a label, and has no meaning.
            found.add(_stem(word))
    return frozenset(found)


def _stem(word: str) -> str:
    """Cut common English endings, so that "tables" meets "table" and "writing" meets "write"."""
    for ending in ("ing", "ers", "er", "es", "ed", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)]
    return word
