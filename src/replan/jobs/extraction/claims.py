"""What each part of a message can be: every span is claimed once, by the most specific slot."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby, pairwise
from typing import cast

from pydantic import JsonValue

from replan.jobs.extraction.dates import dates_in
from replan.jobs.extraction.names import aliases, name_before, outermost, places
from replan.jobs.extraction.numbers import WORDS, Span, all_numbers_in, folded, is_approximate
from replan.jobs.extraction.port import Wanted
from replan.jobs.job import CONFIRMATION
from replan.jobs.spec.slot import Slot, form_of

_NOT = re.compile(WORDS["corrections"]["unwanted"], re.IGNORECASE)
_CORRECTED = re.compile(WORDS["corrections"]["corrected"], re.IGNORECASE)
_REACH = 30
_MOST = 50  # places where a value of one slot may be
_UNITS = WORDS["units"]
_OF_A_PLACE = re.compile(r"\s+[A-Z][a-z]|[号楼室层线路街]")
_SIGN = r"[\u4e00-\u9fff]"
_NEXT_WORDS = re.compile(
    rf"[{_UNITS['measures']}]*\s*(?:(?P<word>[A-Za-z]+)(?:\s+(?P<next>[A-Za-z]+))?"
    rf"|(?P<sign>{_SIGN})(?P<more>{_SIGN})?)"
)
_OF_QUESTIONS = frozenset((*_UNITS["question_words"], *_UNITS["question_signs"]))
_SHORTEST_WORD = 3


@dataclass(frozen=True)
class Claim:
    """A part of a message that is a value of a slot, or of none although it is a value."""

    span: Span
    slot: str = ""  # empty if nobody may have it
    value: JsonValue = None
    is_named: bool = False  # whether the slot is named in front of it


@dataclass
class Claims:
    """The claims to a message; each of its characters is claimed once."""

    wanted: Wanted
    text: str
    found: list[Claim] = field(default_factory=list[Claim])
    _taken: bytearray = field(init=False)

    def __post_init__(self) -> None:
        self._taken = bytearray(len(self.text))

    def add(self, claims: Iterable[Claim]) -> None:
        """Add claims to what is free."""
        for claim in claims:
            if self.is_free(claim.span):
                self.found.append(claim)
                self._mark(claim.span, 1)

    def drop(self, claims: Sequence[Claim]) -> None:
        """Take claims back; nobody else gets what they claimed."""
        self.found = [claim for claim in self.found if claim not in claims]
        self.found += [Claim(claim.span) for claim in claims]

    def free(self, claims: Sequence[Claim]) -> None:
        """Take claims back, so that others may claim the same."""
        self.found = [claim for claim in self.found if claim not in claims]
        for claim in claims:
            self._mark(claim.span, 0)

    def is_free(self, span: Span) -> bool:
        """Whether nothing of a part is claimed."""
        return not any(self._taken[slice(*span)])

    def within(self, span: Span) -> list[Claim]:
        """The claims that have something of a part."""
        return [
            claim for claim in self.found if claim.span[0] < span[1] and span[0] < claim.span[1]
        ]

    def rest(self, span: Span | None = None) -> str:
        """The text, or a part of it, with ends of lines in place of all that is claimed."""
        start, end = span or (0, len(self.text))
        end = min(end, len(self.text))
        return "".join(
            "\n" if self._taken[place] else self.text[place] for place in range(start, end)
        )

    def values(self) -> dict[str, JsonValue]:
        """The value of each slot for which one was found, or which a message itself corrects."""
        by_slot: dict[str, list[Claim]] = {}
        for claim in sorted(self.found, key=lambda claim: claim.span):
            if claim.slot:
                by_slot.setdefault(claim.slot, []).append(claim)
        found = {name: self._value(name, claims) for name, claims in by_slot.items()}
        return {name: value for name, value in found.items() if value is not None}

    def _value(self, name: str, claims: list[Claim]) -> JsonValue:
        slot = self.wanted.spec.slot(name)
        if slot.choices and slot.type == "list":
            chosen = [claim.value for claim in claims]
            return [choice for choice in slot.choices if choice in chosen]
        named = [claim for claim in claims if claim.is_named]
        claims = named or claims
        for one, other in pairwise(claims):
            if _CORRECTED.search(self.text[one.span[1] : other.span[0]]):
                claims = claims[claims.index(other) :]
        first, *others = [claim.value for claim in claims]
        return None if any(other_value != first for other_value in others) else first

    def _mark(self, span: Span, state: int) -> None:
        self._taken[slice(*span)] = bytes([state]) * (span[1] - span[0])


def is_open(slot: Slot, wanted: Wanted) -> bool:
    """Whether a slot may get a value that does not name it; on confirmation, each may."""
    if slot.name not in wanted.names:
        return False
    held = wanted.job.collected_info
    return (
        wanted.asked == CONFIRMATION or slot.name not in held or slot.name in wanted.job.asked.names
    )


def claim_forms(claims: Claims) -> None:
    """Claim what has the form of a slot: patterns, choices, and dates; the longest first."""
    wanted, text = claims.wanted, claims.text
    known = [wanted.spec.slot(name) for name in wanted.names]
    hidden = [slot for slot in wanted.spec.slots if slot.secret and slot not in known]
    found = [
        (span, value, slot)
        for slot in (*known, *hidden)
        for span, value in _values_of_form(slot, claims)
    ]
    # What is said to be unwanted is no value, and no part of one; nor is a day that is vague.
    claims.add(
        Claim(span)
        for span, value, slot in found
        if value is None
        or _is_rejected(text, span[0])
        or (slot.type == "date" and is_approximate(text, span))
    )
    found.sort(key=lambda match: (match[0][0] - match[0][1], match[0]))
    for span, group in groupby(found, key=lambda match: match[0]):
        values = {slot.name: value for _, value, slot in group}
        slots = [wanted.spec.slot(name) for name in values]
        claim = _claim_of_one(slots, span, claims, values.get)
        # A whole answer that is a value of a slot which has one is no free text, either.
        if claim is None and is_glue_around(text, span):
            claim = Claim(span)
        claims.add([] if claim is None else [claim])


def _claim_of_one(
    slots: Sequence[Slot], span: Span, claims: Claims, value: Callable[[str], JsonValue]
) -> Claim | None:
    """The claim of the slot that is named, else asked for, else the only one; of nobody if several.

    What has the form of a secret is claimed even if no slot may have it.
    """
    wanted = claims.wanted
    names = _names_before(slots, claims, span[0])
    takers = [slot for slot in slots if slot.name in names or is_open(slot, wanted)]
    for preferred in (names, (wanted.asked,)):
        takers = [slot for slot in takers if slot.name in preferred] or takers
    if len(takers) == 1:
        name = takers[0].name
        start, _ = names.get(name, span)
        return Claim((start, span[1]), name, value(name), is_named=name in names)
    is_secret = any(slot.secret for slot in slots)
    return Claim(span) if takers or is_secret else None


def _names_before(slots: Sequence[Slot], claims: Claims, place: int) -> dict[str, Span]:
    """The slots that are named directly before a place, with where, unless others claim that."""
    found = {slot.name: name_before(slot, claims.text, place) for slot in slots}
    return {
        name: span
        for name, span in found.items()
        if span is not None and name in claims.wanted.names and claims.is_free(span)
    }


def _values_of_form(slot: Slot, claims: Claims) -> list[tuple[Span, JsonValue]]:
    text = claims.text
    found: list[tuple[Span, JsonValue]] = []
    if slot.choices:
        choices = cast("dict[str, tuple[str, ...]]", slot.choices)
        words = ((choice, word) for choice in choices for word in (choice, *choices[choice]))
        spans = outermost(
            (choice, span) for choice, word in words for span in places(folded(word), text)
        )
        found = [(span, choice) for choice, span in spans]
    elif slot.type == "date":
        found = [(span, day and str(day)) for day, span in dates_in(text, claims.wanted.today)]
    elif (form := form_of(slot.pattern)) is not None:
        found = [(match.span(), match[0]) for match in form.finditer(text)]
    elif (
        slot.pattern
        and slot.name == claims.wanted.asked
        and re.fullmatch(slot.pattern, text.strip())
    ):
        found = [((0, len(text)), text.strip())]
    return [] if len(found) > _MOST else found


def claim_numbers(claims: Claims) -> None:
    """Claim the numbers that say what they count; another one is the slot's that is asked for."""
    wanted, text = claims.wanted, claims.text
    slots = [
        slot for slot in map(wanted.spec.slot, wanted.names) if slot.type in ("integer", "number")
    ]
    numbers = [(n, span) for n, span in all_numbers_in(text) if claims.is_free(span)]
    if not slots or len(numbers) > _MOST:
        return
    asked = wanted.spec.slot(wanted.asked) if wanted.spec.knows(wanted.asked) else None
    is_text = asked is not None and asked.is_free
    for number, span in numbers:
        if _is_rejected(text, span[0]):
            claims.add([Claim(span)])
            continue
        counted, end = _counted(slots, claims, span)
        is_piece = is_glue_around(text, (span[0], end))
        if not isinstance(number, int | float):
            claims.add([Claim((span[0], end))] if (counted or is_piece) and is_text else [])
            continue
        is_for_asked = asked in slots and not _is_of_another(claims, span)
        takers = counted or [slot for slot in (asked,) if slot is not None and is_for_asked]
        claim = _claim_of_one(takers, span, claims, lambda _, number=number: number)
        # A number of what nobody asks for is not one of something else, nor a part of a text.
        if claim is None and (is_piece if is_text else counted):
            claim = Claim(span)
        claims.add([] if claim is None else [replace(claim, span=(claim.span[0], end))])


def _counted(slots: Sequence[Slot], claims: Claims, span: Span) -> tuple[list[Slot], int]:
    """The slots whose words are around a number, and where these words end."""
    names = _names_before(slots, claims, span[0])
    named = [slot for slot in slots if slot.name in names]
    after = _NEXT_WORDS.match(claims.rest((span[1], span[1] + _REACH)))
    if named or after is None:
        return named, span[1]
    for group in _NEXT_WORDS.groupindex:
        word = cast("str | None", after[group])
        counted = [slot for slot in slots if word and _singular(word) in _vocabulary(slot)]
        if counted:
            return counted, span[1] + after.end(group)
    return [], span[1]


def _vocabulary(slot: Slot) -> frozenset[str]:
    questions = tuple(cast("dict[str, str]", slot.question).values())
    return _words_in((*aliases(slot), *questions))


@cache
def _words_in(texts: tuple[str, ...]) -> frozenset[str]:
    words = (
        word for text in texts for word in re.findall(r"[a-z]+|[\u4e00-\u9fff]", text.casefold())
    )
    return frozenset(
        _singular(word)
        for word in words
        if word not in _OF_QUESTIONS and not (word.isascii() and len(word) < _SHORTEST_WORD)
    )


def _singular(word: str) -> str:
    return word.casefold().removesuffix("s")


def _is_of_another(claims: Claims, span: Span) -> bool:
    """Whether a number is part of an address, or counts a choice, as in '2 double rooms'."""
    if _OF_A_PLACE.match(claims.text, span[1]):
        return True
    behind = claims.text[span[1] :].lstrip(_UNITS["measures"])
    start = len(claims.text) - len(behind) + behind.startswith(" ")
    spec = claims.wanted.spec
    return any(
        claim.span[0] == start and claim.slot and spec.slot(claim.slot).choices
        for claim in claims.within((start, start + 1))
    )


def _is_rejected(text: str, place: int) -> bool:
    """Whether the user rejects the value at a place."""
    return _NOT.search(text[max(0, place - _REACH) : place]) is not None


_SEPARATOR = re.compile(
    r"[;!?\n()\uff0c\u3002\uff1b\uff01\uff1f\u3001]|,(?!\d)|(?<!\d),|\.(?=\s|$)"
)


def pieces_of(text: str, start: int = 0) -> Iterator[Span]:
    """The parts of a text between commas and the like, without the blanks around them."""
    edges = [(found.start(), found.end()) for found in _SEPARATOR.finditer(text)]
    for (_, begin), (end, _) in pairwise([(0, 0), *edges, (len(text), len(text))]):
        piece = text[begin:end]
        if piece.strip():
            left = begin + len(piece) - len(piece.lstrip())
            yield start + left, start + left + len(piece.strip())


def is_glue_around(text: str, span: Span) -> bool:
    """Whether the piece around a part says nothing else."""
    start, end = next(
        (
            other_span
            for other_span in pieces_of(text)
            if other_span[0] <= span[0] and span[1] <= other_span[1]
        ),
        span,
    )
    return is_glue(text[start : span[0]]) and is_glue(text[span[1] : end])


_GLUE = re.compile(
    "|".join(
        (
            *(
                rf"\b{re.escape(each)}\b"
                for each in sorted(WORDS["glue"]["words"], key=len, reverse=True)
            ),
            *sorted(WORDS["glue"]["signs"], key=len, reverse=True),
        )
    ),
    re.IGNORECASE,
)


def is_glue(text: str, names: Iterable[str] = ()) -> bool:
    """Whether a text says nothing by itself: small words, politeness, and these names."""
    for name in sorted(names, key=len, reverse=True):
        for start, end in reversed([*places(name, text)]):
            text = f"{text[:start]} {text[end:]}"
    return re.search(r"\w", _GLUE.sub(" ", text)) is None
