"""The corpus of replies: families, ten wordings each, in ten languages, drawn from a seed.

A third of the families is put away as holdout. Nobody looks at it while readers are worked on; only
`replies.py --holdout` reads it, and sums it up.
"""

from collections.abc import Iterator
from random import Random

from reply_families import (
    answers,
    feedback,
    later,
    lists,
    orders,
    specialists,
    structures,
    wrappings,
)
from reply_families.drawing import FAMILIES, WORDINGS, Item, drawn
from reply_families.words import LANGUAGES

SEED = 9
KINDS = (answers, feedback, later, lists, orders, specialists, structures, wrappings)
"""The modules whose import registers their families."""


def holdout(seed: int = SEED) -> frozenset[str]:
    """The families that are put away."""
    names = sorted(name for name in FAMILIES if not name.startswith("later"))
    return frozenset(Random(seed).sample(names, len(names) // 3))  # noqa: S311 - no secret


def replies(
    *, seed: int = SEED, put_away: bool = False, wordings: int = WORDINGS, only: str = ""
) -> Iterator[Item]:
    """The replies of the open families, or of those that are put away."""
    away = holdout(SEED)
    for name, make in FAMILIES.items():
        if (name in away) is put_away and only in ("", name):
            for language in LANGUAGES:
                for index in range(wordings):
                    yield make(drawn(name, language, index, seed))
