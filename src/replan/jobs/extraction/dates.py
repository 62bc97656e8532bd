"""Dates as people write them, in English and Chinese; what could be another day is not a date."""

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from itertools import islice

from replan.jobs.extraction.numbers import WORDS, Span

_SPOKEN = WORDS["dates"]
_MONTHS: dict[str, int] = {
    **{name: number for number, name in enumerate(_SPOKEN["months"], start=1)},
    **{name[:3]: number for number, name in enumerate(_SPOKEN["months"], start=1)},
    **_SPOKEN["other_months"],
}
_DAYS: dict[str, int] = {name: number for number, name in enumerate(_SPOKEN["days"])}
_DAY_SIGNS: str = _SPOKEN["day_signs"]
_NEAR: dict[str, int] = _SPOKEN["near"]
_WEEK, _MONTHS_OF_YEAR, _CENTURY = 7, 12, 100
_MOST = 50  # dates of one form that are looked at

Reader = Callable[[re.Match[str], date], date | None]
"""Makes a date of what was found; None if it is not one, or could be two."""


def _longest_first(words: dict[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_MONTH, _DAY = _longest_first(_MONTHS), _longest_first(_DAYS)
_NUMERAL: str = _SPOKEN["numeral"]
_COUNT = rf"(?:an?|\d{{1,3}}|few|some|{'|'.join(WORDS['numbers']['units'])})"
_VAGUE = "|".join(_SPOKEN["vague"]).replace("DAY", _DAY).replace("COUNT", _COUNT)
_OF_MONTH = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"


def dates_in(text: str, today: date) -> Iterator[tuple[date | None, Span]]:
    """Find the dates of a text, each with where it is; without a year the next one counts.

    What may be a date and is not read has a place, and no date.
    """
    found: list[tuple[date | None, Span]] = []
    taken: list[Span] = []
    for form, read in _FORMS:
        for match in islice(form.finditer(text), _MOST):
            span = match.span()
            if any(start < span[1] and span[0] < end for start, end in taken):
                continue
            # What is not a date is not part of another one, either.
            taken.append(span)
            day = _date_of(read, match, today)
            if not _is_repeated(day, match, found, text):
                found.append((day, span))
    yield from found


def _date_of(read: Reader, found: re.Match[str], today: date) -> date | None:
    """What a reader makes of a match; None for a day that no month has."""
    try:
        return read(found, today)
    except (ValueError, OverflowError):
        return None


def _is_repeated(
    day: date | None, found: re.Match[str], dates: list[tuple[date | None, Span]], text: str
) -> bool:
    """Whether a day of the week only repeats the day of an adjacent date."""
    if day is None or "day" not in found.groupdict():
        return False
    return any(
        other is not None
        and other.weekday() == day.weekday()
        and not (text[end : found.start()] + text[found.end() : start]).strip(
            " ,\uff0c()\uff08\uff09"
        )
        for other, (start, end) in dates
    )


def _in_full(found: re.Match[str], today: date) -> date | None:
    """A month and a day, with a year, or the next such day."""
    month, day = found["m"].casefold(), int(found["d"])
    number = _MONTHS[month] if month in _MONTHS else int(month)
    if found["y"]:
        return date(int(found["y"]), number, day)
    this_year = date(today.year, number, day)
    return this_year if this_year >= today else date(today.year + 1, number, day)


def _either(found: re.Match[str], today: date) -> date | None:
    first, second, year = int(found["a"]), int(found["b"]), int(found["y"])
    # 03/04/2026 is in March or in April; 31/12/2026 can be read in one way only.
    if first != second and max(first, second) <= _MONTHS_OF_YEAR:
        return None
    year += today.year // _CENTURY * _CENTURY if year < _CENTURY else 0
    return date(year, min(first, second), max(first, second))


def _near(found: re.Match[str], today: date) -> date:
    return today + timedelta(days=_NEAR[found[0].casefold()])


def _weekday(found: re.Match[str], today: date) -> date:
    """The next such day; with 'next' that of the week after this one."""
    name = found["day"].casefold()
    wanted = _DAYS[name] if name in _DAYS else _DAY_SIGNS.index("日" if name == "天" else name)
    if (found["how"] or "").strip().casefold() in ("next", "下"):
        return today + timedelta(days=_WEEK + wanted - today.weekday())
    return today + timedelta(days=(wanted - today.weekday()) % _WEEK)


def _vague(found: re.Match[str], today: date) -> None:
    """A day that is counted from another one, or from a part of it: it is not read."""


_FORMS: tuple[tuple[re.Pattern[str], Reader], ...] = tuple(
    (re.compile(form, re.IGNORECASE), read)
    for form, read in (
        (r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)", _in_full),
        (
            (
                rf"(?:(?<!\d)(?P<y>\d{{4}})\s*年\s*|(?<!年)(?<!{_NUMERAL}))"
                r"(?P<m>\d{1,2})\s*月\s*(?P<d>\d{1,2})\s*[日号號]?"
            ),
            _in_full,
        ),
        (rf"\b{_OF_MONTH}(?: of)? (?P<m>{_MONTH})\b\.?(?:,? (?P<y>\d{{4}})\b)?", _in_full),
        (rf"\b(?P<m>{_MONTH})\b\.? (?:the )?{_OF_MONTH}\b(?:,? (?P<y>\d{{4}})\b)?", _in_full),
        (r"(?<![\d/.-])(?P<a>\d{1,2})[/.](?P<b>\d{1,2})[/.](?P<y>\d{4}|\d\d)(?![\d/.-])", _either),
        (_VAGUE.replace("NUMERAL", _NUMERAL), _vague),
        (_longest_first(_NEAR), _near),
        (rf"(?:\b(?P<how>next |this |on |by ))?\b(?P<day>{_DAY})\b", _weekday),
        (rf"(?P<how>下|这|本)?个?(?:周|星期|礼拜)(?P<day>[{_DAY_SIGNS}天])", _weekday),
    )
)
