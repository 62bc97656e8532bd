"""Numbers as people write them, in English and Chinese; approximate ones are not numbers."""

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise
from typing import Any

Number = int | float
Span = tuple[int, int]

WORDS: dict[str, Any] = tomllib.loads(
    files("replan.jobs.extraction").joinpath("words.toml").read_text("utf-8")
)
"""The words of numbers and days."""

_SPOKEN = WORDS["numbers"]
_SMALL: dict[str, int] = {word: number for number, word in enumerate(_SPOKEN["units"])} | {
    word: 10 * number for number, word in enumerate(_SPOKEN["tens"], start=2)
}
_LARGE: dict[str, int] = _SPOKEN["large"]
_SIGNS: dict[str, int] = {
    **{sign: number for number, sign in enumerate(_SPOKEN["signs"])},
    **_SPOKEN["other_signs"],
}
_SIGN_UNITS: dict[str, int] = _SPOKEN["sign_units"]
_LARGE_SIGNS: dict[str, int] = _SPOKEN["large_signs"]
_HALF = 0.5

_ANY_UNIT = "".join(_SIGN_UNITS | _LARGE_SIGNS)
_ANY_SIGN = "".join(_SIGNS) + _ANY_UNIT
_TIMES = rf"\s?(?P<times>{'|'.join(_LARGE)}|k)\b|(?P<signs>[{_ANY_UNIT}]{{1,3}})"
_DIGITS = re.compile(
    r"(?<![\w-])(?<!\w\.)(?<!\d,)(?P<digits>[+-]?\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,9})?(?![\d.]*\d)"
    r"|[+-]?\d{1,15}(?:\.\d{1,9})?(?!\d|[.,]\d))"
    rf"(?:{_TIMES}|(?![A-Za-z_-]))",
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
_WORD = "|".join((*_SMALL, *_LARGE))
# 'The red one' is not a number, and neither is 'one moment'.
_NO_ONE = r"(?<!\bthe )(?<!\bthis )(?<!\bthat )(?<!\bwhich )(?<!\bno )(?<!\bany )(?<!\beach )"
_WORDS = re.compile(
    rf"{_NO_ONE}\b(?P<minus>minus )?"
    rf"(?P<words>(?:{_WORD})(?:(?:[ -]| and )(?:{_WORD})){{0,8}})\b"
    rf"(?: point(?P<part>(?: (?:{'|'.join(_SPOKEN['units'][:10])})\b){{1,9}}))?"
    r"(?P<half> and a half\b)?",
    re.IGNORECASE,
)
_ONE_WORD = re.compile(r"\bthe \w+ one$|^one (?:moment|second|sec|minute|more|of|by)\b")
_RUN = re.compile(rf"[{''.join(_SIGNS)}]+")
_LONGEST_RANGE = 3
_CHINESE = re.compile(
    rf"(?<![{_SPOKEN['ordinal']}{_ANY_SIGN}.\d])"
    rf"(?P<minus>{_SPOKEN['minus']})?(?:{_SPOKEN['percent']})?"
    rf"(?P<signs>[{''.join(_SIGNS)}十拾][{_ANY_SIGN}]{{0,15}})"
    rf"(?:{_SPOKEN['point']}(?P<part>[{''.join(_SIGNS)}]{{1,9}}))?"
    rf"(?P<half>{_SPOKEN['half']})?(?P<next>[\u4e00-\u9fff]?)"
)


def folded(text: str) -> str:
    """A text of the same length with plain letters, digits and marks, not full-width ones."""
    return text.translate(_FOLDED)


def numbers_in(text: str) -> Iterator[tuple[Number, Span]]:
    """Find the exact numbers of a text, each with where it is; 'about 5' is none."""
    yield from ((number, span) for number, span in all_numbers_in(text) if number is not None)


def all_numbers_in(text: str) -> list[tuple[Number | None, Span]]:
    """Find the numbers of a text, each with where it is; None in place of an approximate one."""
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


def _any_numbers_in(text: str) -> Iterator[tuple[Number | None, Span]]:
    """All numbers of a text; a range such as 三四 has a place, and no number."""
    taken: list[Span] = []
    for found in _DIGITS.finditer(text):
        taken.append(found.span())
        yield _written(found), found.span()
    for found in _WORDS.finditer(text):
        is_free = not any(start < found.end() and found.start() < end for start, end in taken)
        if is_free and not _is_pronoun(found, text):
            yield _in_words(found), found.span()
    for found in _CHINESE.finditer(text):
        if _is_number(found):
            yield _in_signs(found), (found.start(), found.start("next"))


def is_approximate(text: str, span: Span) -> bool:
    """Whether the words around a number or a day make it about so much, or a bound."""
    start, end = span
    before, after = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    is_bound = _APPROXIMATE["before"].search(before) is not None
    return is_bound or _APPROXIMATE["after"].match(after) is not None


def _written(found: re.Match[str]) -> Number | None:
    if _THOUSANDS.fullmatch(found["digits"]):
        return None
    digits = found["digits"].replace(",", "")
    number = float(digits) if "." in digits else int(digits)
    times = _LARGE.get((found["times"] or "").casefold(), 1_000 if found["times"] else 1)
    for sign in found["signs"] or "":
        times *= {**_SIGN_UNITS, **_LARGE_SIGNS}[sign]
    # Without what the multiplication of fractions adds.
    number = round(number * times, 9)
    return int(number) if number == int(number) else number


def _is_pronoun(found: re.Match[str], text: str) -> bool:
    """Whether 'one' stands for a thing and is not a number, as in 'the red one'."""
    if found[0].casefold() != "one":
        return False
    before = text[: found.end()].casefold()
    after = text[found.start() :].casefold()
    return _ONE_WORD.search(before) is not None or _ONE_WORD.match(after) is not None


def _in_words(found: re.Match[str]) -> Number:
    number: Number = _english(found["words"].casefold())
    if found["part"]:
        digits = "".join(str(_SMALL[word]) for word in found["part"].casefold().split())
        number = float(f"{number}.{digits}")
    number += _HALF if found["half"] else 0
    return -number if found["minus"] else number


def _english(words: str) -> int:
    total, part = 0, 0
    for word in re.split(r"[ -]+", words.replace(" and ", " ")):
        if word in _SMALL:
            part += _SMALL[word]
        elif word == "hundred":
            part = max(part, 1) * 100
        else:
            total, part = total + max(part, 1) * _LARGE[word], 0
    return total + part


def _is_number(found: re.Match[str]) -> bool:
    """Whether signs are no part of another word, as in 十分 or 一起."""
    signs, after = found["signs"], found["next"]
    if signs + after == _SPOKEN["very"]:
        return False
    is_lone = signs == _SPOKEN["signs"][1] and not (found["part"] or found["half"])
    return not (is_lone and after and after not in _SPOKEN["counted"])


def _in_signs(found: re.Match[str]) -> Number | None:
    signs, after = found["signs"], found["next"]
    if (after and after in _SPOKEN["vague"]) or any(map(_is_range, _RUN.findall(signs))):
        return None
    number: Number = chinese(signs)
    if found["part"]:
        number = float(f"{number}.{''.join(str(_SIGNS[sign]) for sign in found['part'])}")
    number += _HALF if found["half"] else 0
    return -number if found["minus"] else number


def _is_range(run: str) -> bool:
    """Whether digits that go up are about so much, as in 三四个; four are a year or a code."""
    digits = [_SIGNS[sign] for sign in run]
    is_short = 1 < len(digits) <= _LONGEST_RANGE and digits[0] > 0
    return is_short and all(one < next_ for one, next_ in pairwise(digits))


def chinese(signs: str) -> int:
    """Read a number such as 三百二十, 一万五 or 二〇二六."""
    if not any(sign in _SIGN_UNITS or sign in _LARGE_SIGNS for sign in signs):
        return int("".join(str(_SIGNS[sign]) for sign in signs))
    for sign, times in sorted(_LARGE_SIGNS.items(), key=lambda pair: -pair[1]):
        high, found, low = signs.partition(sign)
        if found:
            return (chinese(high) if high else 1) * times + _rest(low, times)
    total, digit, unit = 0, 0, 1
    for place, sign in enumerate(signs):
        if sign in _SIGN_UNITS:
            unit = _SIGN_UNITS[sign]
            total, digit = total + (digit or 1) * unit, 0
        elif place == len(signs) - 1:
            return total + _rest(sign, unit)
        else:
            digit = _SIGNS[sign]
            unit = 1 if digit == 0 else unit
    return total


def _rest(low: str, times: int) -> int:
    """What follows a unit: alone, a digit counts the tenths of it, as in 一百五."""
    is_tenth = len(low) == 1 and low in _SIGNS and times > _TEN
    return chinese(low) * times // _TEN if is_tenth else chinese(low) if low else 0


_TEN = 10
