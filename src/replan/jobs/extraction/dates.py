"""Dates as people write them, in English and Chinese; ambiguous text is not a date."""

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from itertools import islice

from replan.jobs.extraction.numbers import WORDS, Span, chinese, numbers_in

_SPOKEN = WORDS["dates"]
_MONTHS: dict[str, int] = {
    **{name: number for number, name in enumerate(_SPOKEN["months"], start=1)},
    **{name[:3]: number for number, name in enumerate(_SPOKEN["months"], start=1)},
    **_SPOKEN["other_months"],
}
_DAYS: dict[str, int] = {name: number for number, name in enumerate(_SPOKEN["days"])}
_SHORT_DAYS: dict[str, int] = _SPOKEN["short_days"]
_DAY_SIGNS: str = _SPOKEN["day_signs"]
_ORDINALS: dict[str, int] = {word: day for day, word in enumerate(_SPOKEN["ordinals"], start=1)}
_NEAR: dict[str, int] = _SPOKEN["near"]
_SPANS: dict[str, int] = _SPOKEN["spans"]
_WEEKS: dict[str, int] = _SPOKEN["weeks"]
_YEARS: dict[str, int] = _SPOKEN["years"]
_NUMBERED = {"a": 1, "an": 1, **_ORDINALS, **_MONTHS}
_ORDINAL_END = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
_WEEK, _MONTHS_OF_YEAR, _CENTURY = 7, 12, 100
_MOST = 50  # dates of one form that are looked at

Reader = Callable[[re.Match[str], date], date | None]
"""Makes a date of what was found; None if it is not one, or could be two."""


def _longest_first(words: dict[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_NUMERALS = "零〇一二三四五六七八九十"
_MONTH, _DAY = _longest_first(_MONTHS), _longest_first(_DAYS)
_OF_MONTH = rf"(?P<d>\d{{1,2}}(?:st|nd|rd|th)?|{_longest_first(_ORDINALS)})"
_SIGN_DAY = rf"(?P<d>\d{{1,2}}|[{_NUMERALS}]{{1,3}})"
_NUMBERS = "|".join((*WORDS["numbers"]["units"], *WORDS["numbers"]["tens"]))
_COUNTED = rf"(?P<count>an?|\d{{1,3}}|{_NUMBERS})[ -](?P<unit>day|week|fortnight|month)s?"
_OF_WEEK = r"next week|this week|last week"


def dates_in(text: str, today: date) -> Iterator[tuple[date, Span]]:
    """Find the dates of a text, each with where it is; without a year the next one counts."""
    found: list[tuple[date, Span]] = []
    taken: list[Span] = []
    for form, read in _FORMS:
        for match in islice(form.finditer(text), _MOST):
            span = match.span()
            if any(start < span[1] and span[0] < end for start, end in taken):
                continue
            # What is not a date is not part of another one, either.
            taken.append(span)
            day = _date_of(read, match, today)
            if day is not None and not _is_repeated(day, match, found, text):
                found.append((day, span))
    yield from found


def _date_of(read: Reader, found: re.Match[str], today: date) -> date | None:
    """What a reader makes of a match; None for a day that no month has."""
    try:
        return read(found, today)
    except (ValueError, OverflowError):
        return None


def _is_repeated(
    day: date, found: re.Match[str], dates: list[tuple[date, Span]], text: str
) -> bool:
    """Whether a day of the week only repeats the day of an adjacent date."""
    if "day" not in found.groupdict() and "sign" not in found.groupdict():
        return False
    return any(
        other.weekday() == day.weekday()
        and not (text[end : found.start()] + text[found.end() : start]).strip(
            " ,\uff0c()\uff08\uff09"
        )
        for other, (start, end) in dates
    )


def _in_full(found: re.Match[str], today: date) -> date | None:
    """A month and a day; with a year, with 'last year' and the like, or the next such day."""
    parts = found.groupdict()
    month, day = _number(parts["m"]), _number(parts["d"])
    if parts["y"]:
        return date(_number(parts["y"]), month, day)
    if parts.get("year"):
        return date(today.year + _YEARS[parts["year"]], month, day)
    this_year = date(today.year, month, day)
    return this_year if this_year >= today else date(today.year + 1, month, day)


def _either(found: re.Match[str], today: date) -> date | None:
    first, second, year = int(found["a"]), int(found["b"]), int(found["y"])
    # 03/04/2026 is in March or in April; 31/12/2026 can be read in one way only.
    if first != second and max(first, second) <= _MONTHS_OF_YEAR:
        return None
    year += today.year // _CENTURY * _CENTURY if year < _CENTURY else 0
    return date(year, min(first, second), max(first, second))


def _in_month(found: re.Match[str], today: date) -> date | None:
    month = _months_later(today.replace(day=1), 1 if found["month"] else 0)
    return month.replace(day=_number(found["d"]))


def _day_alone(found: re.Match[str], today: date) -> date:
    """The next day of this number."""
    day = _number(found["d"])
    month = today if day >= today.day else _months_later(today.replace(day=1), 1)
    return month.replace(day=day)


def _named_day(found: re.Match[str], today: date) -> date | None:
    """The next day of a number, only if it is the day of the week that is said with it."""
    day = _day_alone(found, today)
    return day if day.weekday() == _DAYS[found["w"].casefold()] else None


def _later(found: re.Match[str], today: date) -> date | None:
    parts = found.groupdict()
    count = _number(parts["count"])
    start = (parts.get("start") or "now").casefold()
    if start in _DAYS:
        today += timedelta(days=(_DAYS[start] - today.weekday()) % _WEEK)
    else:
        today += timedelta(days=_NEAR.get(start, 0))
    count = -count if parts.get("ago") else count
    unit = found["unit"].casefold()
    if unit not in _SPANS:
        return _months_later(today, count)
    return today + timedelta(days=count * _SPANS[unit])


def _near(found: re.Match[str], today: date) -> date | None:
    return today + timedelta(days=_NEAR[found[0].casefold()])


def _weekday(found: re.Match[str], today: date) -> date | None:
    """The next such day; with 'next' that of the week after this one, with 'last' one before."""
    name = found["day"].casefold()
    wanted = _DAYS[name] if name in _DAYS else _SHORT_DAYS[name]
    parts = {name: (each or "").strip().casefold() for name, each in found.groupdict().items()}
    week = parts.get("before_it") or parts.get("behind_it")
    if week == "last week":
        return _in_week(today, -1, wanted)
    if week == "next week" or parts["how"] == "next":
        return _in_week(today, 1, wanted)
    if parts["how"] == "last":
        return today - timedelta(days=(today.weekday() - wanted - 1) % _WEEK + 1)
    return today + timedelta(days=(wanted - today.weekday()) % _WEEK)


def _sign_of_week(found: re.Match[str], today: date) -> date | None:
    wanted = _DAY_SIGNS.index("日" if found["sign"] == "天" else found["sign"])
    if found["which"] in _WEEKS:
        return _in_week(today, _WEEKS[found["which"]], wanted)
    return today + timedelta(days=(wanted - today.weekday()) % _WEEK)


def _in_week(today: date, weeks: int, weekday: int) -> date:
    return today + timedelta(days=_WEEK * weeks + weekday - today.weekday())


def _months_later(day: date, months: int) -> date:
    year, month = divmod(day.year * _MONTHS_OF_YEAR + day.month - 1 + months, _MONTHS_OF_YEAR)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _number(text: str) -> int:
    """A small number, or a month, in digits or words; a ValueError if it is neither."""
    word = text.casefold()
    if word in _NUMBERED:
        return _NUMBERED[word]
    if all(sign in _NUMERALS for sign in text):
        return chinese(text)
    numbers = [number for number, _ in numbers_in(_ORDINAL_END.sub("", word))]
    if len(numbers) != 1 or not isinstance(numbers[0], int):
        raise ValueError(text)
    return numbers[0]


_FORMS: tuple[tuple[re.Pattern[str], Reader], ...] = tuple(
    (re.compile(form, re.IGNORECASE), read)
    for form, read in (
        (r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)", _in_full),
        (
            (
                rf"(?:(?P<y>\d{{4}}|[{_NUMERALS}]{{4}})\s*年\s*|(?P<year>{_longest_first(_YEARS)})\s*)?"
                rf"(?<![\d{_NUMERALS}])(?P<m>\d{{1,2}}|[{_NUMERALS}]{{1,2}})\s*月\s*"
                rf"{_SIGN_DAY}\s*[日号號]?"
            ),
            _in_full,
        ),
        (rf"(?:(?P<month>下个?月)|(?:本|这个?)月)的?\s*{_SIGN_DAY}\s*[日号號]", _in_month),
        (rf"\b{_OF_MONTH}(?: of)? (?P<m>{_MONTH})\b\.?(?:,? (?P<y>\d{{4}})\b)?", _in_full),
        (rf"\b(?P<m>{_MONTH})\b\.? (?:the )?{_OF_MONTH}\b(?:,? (?P<y>\d{{4}})\b)?", _in_full),
        (r"(?<![\d/.-])(?P<a>\d{1,2})[/.](?P<b>\d{1,2})[/.](?P<y>\d{4}|\d\d)(?![\d/.-])", _either),
        (rf"\bin {_COUNTED}(?:['\u2019]s?)?(?: time)?\b", _later),
        (
            (
                rf"\b{_COUNTED} (?:later|(?P<ago>ago)|(?:from|after) "
                rf"(?P<start>now|today|tomorrow|{_DAY}))\b"
            ),
            _later,
        ),
        (
            (
                rf"(?<![\d{_NUMERALS}两])(?P<count>\d{{1,3}}|[{_NUMERALS}两]{{1,3}})\s*个?(?P<unit>天|日|周|星期|礼拜|月)\s*"
                r"(?:以后|之后|后|(?P<ago>以前|之前|前))"
            ),
            _later,
        ),
        (rf"\b(?P<w>{_DAY}),? (?:the )(?P<d>\d{{1,2}}(?:st|nd|rd|th)?)\b", _named_day),
        (_longest_first(_NEAR), _near),
        (
            (
                rf"(?<!\bevery )(?:\b(?P<before_it>{_OF_WEEK})(?:['\u2019]s)? (?:on )?"
                r"|\b(?P<how>next |last |this |on |by ))?"
                rf"\b(?P<day>{_DAY})\b(?: (?:of )?(?P<behind_it>{_OF_WEEK})\b)?"
            ),
            _weekday,
        ),
        (
            rf"\b(?P<how>next |last |this |on |by )(?P<day>{_longest_first(_SHORT_DAYS)})\b",
            _weekday,
        ),
        (rf"^\s*(?P<how>)(?P<day>{_longest_first(_SHORT_DAYS)})\.?\s*$", _weekday),
        (
            (
                rf"(?<![\d{_NUMERALS}两每])(?P<which>{'|'.join(_WEEKS)}|这|本)?个?"
                rf"(?:周|星期|礼拜)(?P<sign>[{_DAY_SIGNS}天])"
            ),
            _sign_of_week,
        ),
        (r"\bthe (?P<d>\d{1,2}(?:st|nd|rd|th))(?=\s*(?:$|[.,;!?\n]|please\b))", _day_alone),
        (r"^\s*(?P<d>\d{1,2}(?:st|nd|rd|th))[.!]?\s*$", _day_alone),
        (
            # Behind one of these it is the number of a house.
            rf"(?<![\d月{_NUMERALS}路街道巷弄村里楼栋座区院门]){_SIGN_DAY}\s*[号號](?=$|\W|[去走出到吧的])",
            _day_alone,
        ),
    )
)
