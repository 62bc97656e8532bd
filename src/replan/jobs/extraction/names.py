"""Where the names of slots, commands and choices are in a text."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import cast

from replan.jobs.extraction.numbers import WORDS, Span
from replan.jobs.sayings import bare
from replan.jobs.spec.job_spec import JobCommand
from replan.jobs.spec.slot import Slot

_SMALL = frozenset(WORDS["answers"]["small"])
# A name has no small letter at the beginning of its words; the number of a house may be before it.
_WORD = r"[^\W\d_a-z][\w'\u2019-]*"
NAME = re.compile(rf"(?:\d{{1,5}}[A-Za-z]? )?{_WORD}(?: {_WORD}){{0,3}}(?![\w'\u2019-])")
LINK = r"(?:[:=]|(?:is|are|should be|shall be)\b|改成|改为|换成|应该是|是|为)"
"""What stands between the name of a slot and its value."""

_LONGEST_LINK = 80


def aliases(part: Slot | JobCommand) -> Iterator[str]:
    """The names under which a user may speak of a slot or a command, in small letters."""
    labels = [*cast("dict[str, str]", part.label).values()]
    yield from dict.fromkeys(
        bare(slot_name)
        for slot_name in (part.name, part.name.replace("_", " "), *labels, *part.words)
    )


def places(word: str, text: str) -> Iterator[Span]:
    """Where a word is in a text; a script without blanks has no boundaries of words."""
    pattern = re.escape(word)
    if word.isascii():
        pattern = rf"(?<![A-Za-z0-9_]){pattern}(?![A-Za-z0-9_])"
    yield from (found.span() for found in re.finditer(pattern, text, re.IGNORECASE))


def outermost(found: Iterable[tuple[str, Span]]) -> list[tuple[str, Span]]:
    """The matches that are not part of a longer word."""
    kept: list[tuple[str, Span]] = []
    widest = (-1, -1)
    # Of those that begin together the longest comes first, so what is inside comes after it.
    for name, span in sorted(found, key=lambda match: (match[1][0], -match[1][1])):
        if span == widest or span[1] > widest[1]:
            kept.append((name, span))
            widest = span
    return kept


def name_before(slot: Slot, text: str, place: int) -> Span | None:
    """Where a slot is named directly before a place; None if it is not."""
    start = max(0, place - _LONGEST_LINK)
    found = _led_by(tuple(aliases(slot))).search(text[start:place])
    return None if found is None else (start + found.start(), place)


@cache
def _led_by(names: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(
        rf"\b{re.escape(name)}" if name.isascii() else re.escape(name) for name in names
    )
    return re.compile(rf"(?:{words})\s*(?:{LINK}|to\b)?\s*$", re.IGNORECASE)


def small_words(slot: Slot) -> frozenset[str]:
    """The small words by which a slot is called, such as 'from'."""
    return frozenset(aliases(slot)) & _SMALL
