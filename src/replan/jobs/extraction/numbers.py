"""Numbers as people write them, in English and Chinese; one that may not be exact is none."""

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise
from typing import Any, Literal

Number = int | float
Unread = Literal["unread"]
"""Stands for an exact number that is not read here, such as 'two hundred'."""

Span = tuple[int, int]

WORDS: dict[str, Any] = tomllib.loads(
    files("replan.jobs.extraction").joinpath("words.toml").read_text("utf-8")
)
"""The words of numbers and days."""

_SPOKEN = WORDS["numbers"]
_SMALL: dict[str, int] = {word: number for number, word in enumerate(_SPOKEN["units"])}
_TENS: dict[str, int] = {word: 10 * n for n, word in enumerate(_SPOKEN["tens"], start=2)}
_SIGNS: dict[str, int] = {
    **{sign: number for number, sign in enumerate(_SPOKEN["signs"])},
    **_SPOKEN["other_signs"],
}
_TEN = "十"

_ANY_SIGN = "".join(_SIGNS) + _TEN + _SPOKEN["large_signs"]
_DIGITS = re.compile(
    r"(?<![\w-])(?<!\w\.)(?<!\d,)(?P<digits>[+-]?\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,9})?(?![\d.]*\d)"
    r"|[+-]?\d{1,15}(?:\.\d{1,9})?(?!\d|[.,]\d))"
    rf"(?:(?P<times>\s?(?:{'|'.join(_SPOKEN['large'])}|k)\b|[{_TEN}{_SPOKEN['large_signs']}])"
    r"|(?![A-Za-z_-]))",
    re.ASCII | re.IGNORECASE,
)
# A full-width comma is no part of a number: it ends what is before it.
_FOLDED = {0x3000: " ", 0x2019: "'"} | {
    ord(sign): sign.translate({each: each - 0xFEE0 for each in range(0xFF01, 0xFF5F)})
    for sign in map(chr, range(0xFF01, 0xFF5F))
    if sign not in "\uff0c\uff1b\uff01\uff1f"
}
_APPROXIMATE = {
    name: re.compile(form, re.IGNORECASE) for name, form in WORDS["approximate"].items()
}
_AROUND = 40  # characters around a number that can make it approximate
# It is a thousand to some, and one to others.
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
_WORD = "|".join((*_SMALL, *_TENS, *_SPOKEN["large"]))
# 'The red one' is not a number, and neither is 'one moment'.
_NO_ONE = r"(?<!\bthe )(?<!\bthis )(?<!\bthat )(?<!\bwhich )(?<!\bno )(?<!\bany )(?<!\beach )"
_WORDS = re.compile(
    rf"{_NO_ONE}\b(?P<words>(?:minus )?(?:{_WORD})(?:(?:[ -]| and )(?:{_WORD})){{0,8}})\b"
    r"(?P<more> point \w+| and a half\b)?",
    re.IGNORECASE,
)
_ONE_WORD = re.compile(r"\bthe \w+ one$|^one (?:moment|second|sec|minute|more|of|by)\b")
_RUN = re.compile(rf"[{''.join(_SIGNS)}]+")
_LONGEST_RANGE = 3
_CHINESE = re.compile(
    rf"(?<![{_SPOKEN['ordinal']}{_ANY_SIGN}.\d])(?P<before>{_SPOKEN['before']})?"
    rf"(?P<signs>[{''.join(_SIGNS)}{_TEN}][{_ANY_SIGN}]{{0,15}})"
    rf"(?P<more>{_SPOKEN['more']})?(?P<next>[\u4e00-\u9fff]?)"
)


def folded(text: str) -> str:
    """A text of the same length with plain letters, digits and marks, not full-width ones."""
    return text.translate(_FOLDED)


def numbers_in(text: str) -> Iterator[tuple[Number, Span]]:
    """Find the exact numbers of a text, each with where it is; 'about 5' is none."""
    for number, span in all_numbers_in(text):
        if isinstance(number, int | float):
            yield number, span


def all_numbers_in(text: str) -> list[tuple[Number | Unread | None, Span]]:
    """Find the numbers of a text, each with where it is; None in place of one that is not exact.

    In words and signs, numbers are read up to 99.
    """
    text = folded(text)
    found = sorted(_any_numbers_in(text), key=lambda number_and_span: number_and_span[1])
    vague = {span for _, span in found if is_approximate(text, span)}
    for (_, first), (_, second) in pairwise(found):
        link = text[first[1] : second[0]]
        is_near = len(link) <= _AROUND
        is_range = is_near and _APPROXIMATE["between"].match(link) is not None
        if is_range or (first in vague and link.strip() in _LINKS):
            vague |= {first, second}
    return [(None if span in vague else number, span) for number, span in found]


_LINKS = ("and", "\u548c")


def _any_numbers_in(text: str) -> Iterator[tuple[Number | Unread | None, Span]]:
    """All numbers of a text; a range such as 三四 has a place, and no number."""
    taken: list[Span] = []
    for found in _DIGITS.finditer(text):
        taken.append(found.span())
        yield _written(found), found.span()
    for found in _WORDS.finditer(text):
        is_free = not any(start < found.end() and found.start() < end for start, end in taken)
        if is_free and not _is_pronoun(found, text):
            yield "unread" if found["more"] else _in_words(found["words"]), found.span()
    for found in _CHINESE.finditer(text):
        if _is_number(found):
            # What follows the signs was matched only to tell whether they are a number.
            yield _in_signs(found), (found.start(), found.start("next"))


def is_approximate(text: str, span: Span) -> bool:
    """Whether the words around a number or a day make it about so much, or a bound."""
    start, end = span
    before, after = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    is_bound = _APPROXIMATE["before"].search(before) is not None
    return is_bound or _APPROXIMATE["after"].match(after) is not None


def _written(found: re.Match[str]) -> Number | Unread | None:
    if found["times"]:
        return "unread"
    if _THOUSANDS.fullmatch(found["digits"]):
        return None
    number = float(found["digits"].replace(",", ""))
    return int(number) if number == int(number) else number


def _is_pronoun(found: re.Match[str], text: str) -> bool:
    """Whether 'one' stands for a thing and is not a number, as in 'the red one'."""
    if found[0].casefold() != "one":
        return False
    before = text[: found.end()].casefold()
    after = text[found.start() :].casefold()
    return _ONE_WORD.search(before) is not None or _ONE_WORD.match(after) is not None


def _in_words(words: str) -> int | Unread:
    """Such as 'seven' or 'twenty-one'."""
    tens, _, units = words.casefold().replace("-", " ").rpartition(" ")
    if not tens:
        return {**_SMALL, **_TENS}.get(units, "unread")
    is_whole = tens in _TENS and 0 < _SMALL.get(units, 0) < 10  # noqa: PLR2004 - a digit
    return _TENS[tens] + _SMALL[units] if is_whole else "unread"


def _is_number(found: re.Match[str]) -> bool:
    """Whether signs are no part of another word, as in 十分 or 一起."""
    signs, after = found["signs"], found["next"]
    if signs + after == _SPOKEN["very"]:
        return False
    is_lone = signs == _SPOKEN["signs"][1] and not found["more"]
    return not (is_lone and after and after not in _SPOKEN["counted"])


def _in_signs(found: re.Match[str]) -> int | Unread | None:
    """Such as 两, 三十二, or in digits 二〇二六."""
    signs, after = found["signs"], found["next"]
    if (after and after in _SPOKEN["vague"]) or any(map(_is_range, _RUN.findall(signs))):
        return None
    is_small = all(sign in _SIGNS or sign == _TEN for sign in signs)
    if found["before"] or found["more"] or not is_small:
        return "unread"
    tens, ten, units = signs.partition(_TEN)
    if not ten:
        return int("".join(str(_SIGNS[sign]) for sign in signs))
    digits = [_SIGNS.get(part) for part in (tens or _SPOKEN["signs"][1], units or "零")]
    return "unread" if None in digits else 10 * (digits[0] or 0) + (digits[1] or 0)


def _is_range(run: str) -> bool:
    """Whether digits that go up are about so much, as in 三四个; four are a year or a code."""
    digits = [_SIGNS[sign] for sign in run]
    is_short = 1 < len(digits) <= _LONGEST_RANGE and digits[0] > 0
    return is_short and all(one < next_ for one, next_ in pairwise(digits))
