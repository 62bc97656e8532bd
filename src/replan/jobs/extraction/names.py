"""Where the names of slots, commands and choices are in a text."""

import re
from collections.abc import Iterable, Iterator
from typing import cast

from replan.jobs.extraction.numbers import Span
from replan.jobs.sayings import bare
from replan.jobs.spec.slot import Slot


def aliases(slot: Slot) -> Iterator[str]:
    """The names under which a user may give a slot."""
    labels = [*cast("dict[str, str]", slot.label).values()]
    yield from dict.fromkeys(
        bare(each) for each in (slot.name, slot.name.replace("_", " "), *labels, *slot.words)
    )


def places(word: str, said: str) -> Iterator[Span]:
    """Where a word is in a text; a script without blanks has no boundaries of words."""
    pattern = re.escape(word)
    if word.isascii():
        pattern = rf"(?<!\w){pattern}(?!\w)"
    yield from (found.span() for found in re.finditer(pattern, said, re.IGNORECASE))


def outermost(found: Iterable[tuple[str, Span]]) -> list[tuple[str, Span]]:
    """What was found, without what is only a part of a longer word."""
    kept: list[tuple[str, Span]] = []
    widest = (-1, -1)
    # Of those that begin together the longest comes first, so what is inside comes after it.
    for name, span in sorted(found, key=lambda each: (each[1][0], -each[1][1])):
        if span == widest or span[1] > widest[1]:
            kept.append((name, span))
            widest = span
    return kept
