"""One ranking from several, by reciprocal rank fusion; and its passages as they are given."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeVar

from replan.state.knowledge import Chunk
from replan.texts.passages import Passage

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


def chunk_of(id_: str, passage: Passage, score: float) -> Chunk:
    return Chunk(
        id=id_,
        content=passage.text,
        score=score,
        source=passage.file,
        line=passage.line,
        heading=passage.heading,
    )
