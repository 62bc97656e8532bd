"""Where the names of slots, commands and choices are in a text; and names after small words."""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import cast

from replan.jobs.extraction.dates import dates_in
from replan.jobs.extraction.numbers import WORDS, Span
from replan.jobs.sayings import bare
from replan.jobs.spec.job_spec import Command
from replan.jobs.spec.slot import Slot

SMALL = frozenset(WORDS["small_words"]["before_names"])
_DAYS = frozenset((*WORDS["dates"]["months"], *WORDS["dates"]["days"]))
# A name has no small letter at the beginning of its words.
_WORD = r"[^\W\d_a-z][\w'\u2019-]*"
_NAME = re.compile(rf"\s+(?P<name>{_WORD}(?: {_WORD}){{0,2}})(?![\w'\u2019-])")
_NEXT = "|".join(("and", *sorted(SMALL)))
_END = re.compile(rf"\s*(?:$|[,.;!?\n\uff0c\u3002]|(?:{_NEXT})\b)", re.IGNORECASE)
_SEVERAL = 2

Marks = list[tuple[Span, str]]
"""Where the small words are, with the slots that are called so."""


def aliases(part: Slot | Command) -> Iterator[str]:
    """The names under which a user may speak of a slot or a command, in small letters."""
    labels = [*cast("dict[str, str]", part.label).values()]
    yield from dict.fromkeys(
        bare(each) for each in (part.name, part.name.replace("_", " "), *labels, *part.words)
    )


def places(word: str, text: str) -> Iterator[Span]:
    """Where a word is in a text; a script without blanks has no boundaries of words."""
    pattern = re.escape(word)
    if word.isascii():
        pattern = rf"(?<!\w){pattern}(?!\w)"
    yield from (found.span() for found in re.finditer(pattern, text, re.IGNORECASE))


def outermost(found: Iterable[tuple[str, Span]]) -> list[tuple[str, Span]]:
    """The matches that are not part of a longer word."""
    kept: list[tuple[str, Span]] = []
    widest = (-1, -1)
    # Of those that begin together the longest comes first, so what is inside comes after it.
    for name, span in sorted(found, key=lambda each: (each[1][0], -each[1][1])):
        if span == widest or span[1] > widest[1]:
            kept.append((name, span))
            widest = span
    return kept


def names_after(text: str, marks: Marks, today: date) -> tuple[dict[str, str], str]:
    """The names after small words, and the rest of the text; all of it if one may not be a name.

    Each of two slots or more is named once, and only names are behind the words.
    """
    if len(marks) < _SEVERAL:
        return {}, text
    found: dict[str, str] = {}
    rest, at = "", 0
    days = [start for _, (start, _) in dates_in(text, today)]
    edges = [*(start for (start, _), _ in marks[1:]), len(text)]
    for ((start, end), name), edge in zip(marks, edges, strict=True):
        until = min((day for day in days if end <= day < edge), default=edge)
        value = _NAME.match(text, end, until)
        if value is None or name in found or _has_day(value["name"]):
            return {}, text
        if until == edge and not _END.match(text, value.end(), edge):
            return {}, text
        found[name] = value["name"]
        rest, at = rest + text[at:start], value.end()
    return found, rest + text[at:]


def _has_day(name: str) -> bool:
    return any(word.casefold() in _DAYS for word in name.split())
