"""Names after small words by which slots are called, as in 'from Milan to Bergen'."""

import re
from collections.abc import Mapping
from datetime import date

from replan.jobs.extraction.dates import dates_in
from replan.jobs.extraction.names import places
from replan.jobs.extraction.numbers import Span
from replan.jobs.extraction.vocabulary import WORDS

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


def marks_in(said: str, words: Mapping[str, str]) -> Marks:
    """Where the small words are that name slots, in their order."""
    return sorted((span, name) for word, name in words.items() for span in places(word, said))


def led(said: str, marks: Marks, today: date) -> tuple[dict[str, str], str]:
    """The names after small words, and the rest of the text; all of it if one may not be a name.

    Each of two slots or more is named once, and only names are behind the words.
    """
    if len(marks) < _SEVERAL:
        return {}, said
    found: dict[str, str] = {}
    rest, at = "", 0
    days = [start for _, (start, _) in dates_in(said, today)]
    edges = [*(start for (start, _), _ in marks[1:]), len(said)]
    for ((start, end), name), edge in zip(marks, edges, strict=True):
        until = min((day for day in days if end <= day < edge), default=edge)
        value = _NAME.match(said, end, until)
        if value is None or name in found or _is_day(value["name"]):
            return {}, said
        if until == edge and not _END.match(said, value.end(), edge):
            return {}, said
        found[name] = value["name"]
        rest, at = rest + said[at:start], value.end()
    return found, rest + said[at:]


def _is_day(name: str) -> bool:
    return any(word.casefold() in _DAYS for word in name.split())
