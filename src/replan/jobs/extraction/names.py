"""Where the names of slots, commands and choices are in a text; and names of places after words."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import cast

from replan.jobs.extraction.numbers import WORDS, Span
from replan.jobs.sayings import bare
from replan.jobs.spec.job_spec import JobCommand
from replan.jobs.spec.slot import Slot

_NAMES = WORDS["names"]
_SMALL = frozenset(_NAMES["before_names"])
_DAYS = frozenset((*WORDS["dates"]["months"], *WORDS["dates"]["days"]))
# A name has no small letter at the beginning of its words; the number of a house may be before it.
_WORD = r"[^\W\d_a-z][\w'\u2019-]*"
NAME = re.compile(rf"(?:\d{{1,5}}[A-Za-z]? )?{_WORD}(?: {_WORD}){{0,3}}(?![\w'\u2019-])")
_NEXT = "|".join(("and", "please", *sorted(_SMALL)))
_END = re.compile(rf"\s*(?:$|[,.;!?\n\uff0c\u3002\uff01]|(?:{_NEXT})\b)", re.IGNORECASE)
_BREAK = re.compile(r"[\s,.;!?\uff0c\u3002\uff1b\uff01\uff1f\u3001()]")
_ENDS = re.compile(_NAMES["ends"])
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_LINK = r"\s*(?:[:=]|(?:is|are|should be|shall be|to)\b|改成|改为|换成|应该是|是|为)?\s*$"
_LONGEST_LINK = 80
_SHORTEST_NAME = 2

Mark = tuple[int, int, str]
"""Where a word is behind which a name is given: its span, and the slot."""


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
    return re.compile(rf"(?:{words}){_LINK}", re.IGNORECASE)


def marks_in(text: str, slots: Sequence[Slot]) -> list[Mark]:
    """Where words such as 'from' are by which slots of free text are called, in their order."""
    found = [
        (name, span)
        for slot in slots
        for name, word in ((slot.name, word) for word in _words_before_names(slot))
        for span in places(word, text)
        if word.isascii() or not _BREAK.match(text[span[1] :] or " ")
    ]
    return [(start, end, name) for name, (start, end) in outermost(found)]


def _words_before_names(slot: Slot) -> Iterator[str]:
    """The words behind which a user gives a slot, such as from and its like in Chinese."""
    own_words = {*aliases(slot)}
    yield from sorted(own_words & _SMALL)
    asks = cast("dict[str, str]", slot.question).get("zh", "")
    for way in ("from", "to"):
        if own_words & {*_NAMES[way], *_NAMES[f"signs_{way}"]} or re.search(
            _NAMES[f"asks_{way}"], asks
        ):
            yield from _NAMES[f"signs_{way}"]


def names_after(text: str, marks: Sequence[Mark]) -> dict[str, Span]:
    """Where the names behind words are, by slot; none if one of them may be no name."""
    found: dict[str, Span] = {}
    edges = [*(start for start, _, _ in marks[1:]), len(text)]
    for (_, end, name), edge in zip(marks, edges, strict=True):
        value = _name_at(text, end, edge)
        if value is not None and name in found:
            return {}
        if value is not None:
            found[name] = value
    return found if len(found) == len({name for _, _, name in marks}) else {}


def _name_at(text: str, start: int, edge: int) -> Span | None:
    start += len(text[start:edge]) - len(text[start:edge].lstrip(" "))
    if _CHINESE.match(text[max(0, start - 1) : start]) or _CHINESE.match(text, start):
        stop = _BREAK.search(text, start, edge)
        end = stop.start() if stop else edge
        while (tail := _ENDS.search(text, start, end)) is not None:
            end = tail.start()
        return (start, end) if end - start >= _SHORTEST_NAME else None
    value = NAME.match(text, start, edge)
    if value is None or any(word.casefold() in _DAYS for word in value[0].split()):
        return None
    is_all = not text[value.end() : edge].strip()
    return value.span() if is_all or _END.match(text, value.end()) else None
