"""Numbers as people write them, in English and in Chinese."""

import re
from collections.abc import Iterator

from replan.jobs.extraction.vocabulary import WORDS

_DIGITS = re.compile(
    r"(?<![\w.,-])[+-]?\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,9})?(?![\d.]*\d|[A-Za-z_-])"
    r"|(?<![\w.,-])[+-]?\d{1,15}(?:\.\d{1,9})?(?![\d]|[.,]\d|[A-Za-z_-])",
    re.ASCII,
)
_FULL_WIDTH = {0xFF10 + digit: str(digit) for digit in range(10)} | {0xFF0E: ".", 0xFF0C: ","}
_SPOKEN = WORDS["numbers"]
_SMALL = {word: number for number, word in enumerate(_SPOKEN["units"])} | {
    word: 10 * number for number, word in enumerate(_SPOKEN["tens"], start=2)
}
_LARGE = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
_WORD = "|".join((*_SMALL, *_LARGE))
_WORDS = re.compile(rf"\b(?:{_WORD})(?:(?:[ -]| and )(?:{_WORD})){{0,8}}\b", re.IGNORECASE)
_SIGNS: dict[str, int] = {
    **{sign: number for number, sign in enumerate(_SPOKEN["signs"])},
    **_SPOKEN["other_signs"],
}
_SIGN_UNITS: dict[str, int] = _SPOKEN["sign_units"]
_MYRIAD_SIGN: str = _SPOKEN["myriad"]
_CHINESE = re.compile(f"[{''.join((*_SIGNS, *_SIGN_UNITS, _MYRIAD_SIGN))}]{{1,12}}")
_MYRIAD = 10_000


def numbers_in(text: str) -> Iterator[tuple[int | float, tuple[int, int]]]:
    """Find the numbers of a text, each with where it stands."""
    text = text.translate(_FULL_WIDTH)
    for found in _DIGITS.finditer(text):
        yield _number(found[0].replace(",", "")), found.span()
    for found in _WORDS.finditer(text):
        if (said := _english(found[0].casefold())) is not None:
            yield said, found.span()
    for found in _CHINESE.finditer(text):
        if (said := _chinese(found[0])) is not None:
            yield said, found.span()


def _number(digits: str) -> int | float:
    return float(digits) if "." in digits else int(digits)


def _english(words: str) -> int | None:
    total, part = 0, 0
    for word in re.split(r"[ -]+", words.replace(" and ", " ")):
        if word in _SMALL:
            part += _SMALL[word]
        elif word == "hundred":
            part = max(part, 1) * 100
        else:
            total, part = total + max(part, 1) * _LARGE[word], 0
    return total + part


def _chinese(signs: str) -> int | None:
    """Read a number such as 三百二十, 一万五千 or 二〇二六; None for what is none."""
    if not any(sign in _SIGN_UNITS or sign == _MYRIAD_SIGN for sign in signs):
        return int("".join(str(_SIGNS[sign]) for sign in signs))
    high, _, low = signs.partition(_MYRIAD_SIGN)
    if _MYRIAD_SIGN in low:
        return None
    if low or high != signs:
        return _below_myriad(high or _SPOKEN["signs"][1]) * _MYRIAD + _below_myriad(low)
    return _below_myriad(high)


def _below_myriad(signs: str) -> int:
    total, digit = 0, 0
    for sign in signs:
        if sign in _SIGN_UNITS:
            total += (digit or 1) * _SIGN_UNITS[sign]
            digit = 0
        else:
            digit = _SIGNS[sign]
    return total + digit
