"""Dates as people write them, in English and in Chinese; what can be read in two ways is none."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import islice

from replan.jobs.extraction.vocabulary import WORDS

_SPOKEN = WORDS["dates"]
_MONTHS: list[str] = _SPOKEN["months"]
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS)
_DAYS: list[str] = _SPOKEN["days"]
_DAY_SIGNS: str = _SPOKEN["day_signs"]
_ORDINAL = r"(?:st|nd|rd|th)?"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)",
        r"(?:(?P<y>\d{4})\s*年\s*)?(?<!\d)(?P<m>\d{1,2})\s*月\s*(?P<d>\d{1,2})\s*[日号號]?",
        rf"\b(?P<d>\d{{1,2}}){_ORDINAL}(?: of)? (?P<n>{_MONTH})\b\.?(?:,? (?P<y>\d{{4}})\b)?",
        rf"\b(?P<n>{_MONTH})\b\.? (?P<d>\d{{1,2}}){_ORDINAL}\b(?:,? (?P<y>\d{{4}})\b)?",
        r"(?<![\d/.-])(?P<a>\d{1,2})[/.](?P<b>\d{1,2})[/.](?P<y>\d{4})(?!\d)",
    )
)
_NEAR: dict[str, int] = _SPOKEN["near"]
_NEAR_WORDS = re.compile(r"the day after tomorrow|" + "|".join(_NEAR), re.IGNORECASE)
_WEEKDAY = re.compile(
    rf"\b(?P<next>next |this |on )?(?P<day>{'|'.join(_DAYS)})\b"
    rf"|(?P<week>下周|下星期|这周|本周|周|星期)(?P<sign>[{_DAY_SIGNS}天])",
    re.IGNORECASE,
)
_WEEK = 7
_MOST = 50  # dates of one form that are looked at
_MONTHS_OF_YEAR = 12


def dates_in(text: str, today: date) -> Iterator[tuple[date, tuple[int, int]]]:
    """Find the dates of a text, each with where it stands; without a year the next one counts."""
    taken: list[tuple[int, int]] = []

    def is_free(span: tuple[int, int]) -> bool:
        return not any(start < span[1] and span[0] < end for start, end in taken)

    for form in _FORMS:
        for found in islice(form.finditer(text), _MOST):
            day = _day(found, today) if is_free(found.span()) else None
            if day is not None:
                taken.append(found.span())
                yield day, found.span()
    for found in _NEAR_WORDS.finditer(text):
        word = found[0].casefold().removeprefix("the ")
        yield today + timedelta(days=_NEAR[word]), found.span()
    for found in _WEEKDAY.finditer(text):
        yield _weekday(found, today), found.span()


def _day(found: re.Match[str], today: date) -> date | None:
    parts = found.groupdict()
    if parts.get("n"):
        month = next(
            i for i, name in enumerate(_MONTHS, 1) if name[:3] == parts["n"][:3].casefold()
        )
    elif parts.get("a"):
        first, second = int(parts["a"]), int(parts["b"])
        # 03/04/2026 is in March or in April; 31/12/2026 can be read in one way only.
        if first != second and max(first, second) <= _MONTHS_OF_YEAR:
            return None
        parts["d"], month = str(max(first, second)), min(first, second)
    else:
        month = int(parts["m"])
    year = int(parts["y"]) if parts.get("y") else None
    return _made(year, month, int(parts["d"]), today)


def _made(year: int | None, month: int, day: int, today: date) -> date | None:
    try:
        if year is not None:
            return date(year, month, day)
        this_year = date(today.year, month, day)
    except ValueError:
        return None
    try:
        return this_year if this_year >= today else date(today.year + 1, month, day)
    except ValueError:
        return None


def _weekday(found: re.Match[str], today: date) -> date:
    """The next such day; with 'next' that of the week after this one."""
    if found["day"]:
        wanted = _DAYS.index(found["day"].casefold())
        is_next = (found["next"] or "").strip().casefold() == "next"
    else:
        wanted = _DAY_SIGNS.index("日" if found["sign"] == "天" else found["sign"])
        is_next = found["week"].startswith("下")
    if is_next:
        monday = today - timedelta(days=today.weekday()) + timedelta(days=_WEEK)
        return monday + timedelta(days=wanted)
    return today + timedelta(days=(wanted - today.weekday()) % _WEEK)
