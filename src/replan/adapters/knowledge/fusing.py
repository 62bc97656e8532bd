"""One ranking from several: reciprocal rank fusion."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

DEEPEST = 50
"""Places of a ranking that count, unless more are asked for."""

_SMOOTH = 60
"""From Cormack, Clarke and Büttcher (2009): it keeps first places from deciding alone."""


def fused(rankings: Sequence[Sequence[T]]) -> list[tuple[T, float]]:
    """Join rankings, the best first, each with its score: 1 is the first place in all of them.

    Only places count, since the scores of two kinds of search say nothing of each other.
    """
    scores: dict[T, float] = defaultdict(float)
    for ranking in rankings:
        for place, each in enumerate(ranking, start=1):
            scores[each] += (_SMOOTH + 1) / (_SMOOTH + place) / len(rankings)
    return sorted(scores.items(), key=lambda each: -each[1])
