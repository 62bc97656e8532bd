"""Where the names of slots, commands and choices stand in a text."""

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
    """Where a word stands in a text; a script without blanks has no boundaries of words."""
    pattern = re.escape(word)
    if word.isascii():
        pattern = rf"(?<!\w){pattern}(?!\w)"
    yield from (found.span() for found in re.finditer(pattern, said, re.IGNORECASE))


def outermost(found: Iterable[tuple[str, Span]]) -> list[tuple[str, Span]]:
    """What was found, without what is only a part of a longer word."""
    kept = [*found]
    return [
        (name, (start, end))
        for name, (start, end) in kept
        if not any(a <= start and end <= b and b - a > end - start for _, (a, b) in kept)
    ]
