"""Questions about numbers in words: parts of a whole, growth, sums, averages, plain expressions."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from statistics import median
from typing import Protocol

from replan_local.arithmetic.expressions import NotArithmeticError, evaluate, prepared
from replan_local.arithmetic.numbers import written

_LONGEST = 240
_ASKING = re.compile(
    r"^(?:(?:please|then|and|also|now)\s+)*"
    r"(?:(?:what(?:\s+is|'s|\s+are)|how\s+(?:much|many)\s+(?:is|are)|calculate|compute|evaluate"
    r"|work\s+out|determine|find|give|tell|me|us|the)\s+)*|\s*=?\s*[?.!:]*$"
)
_PERCENT = r"(?P<percent>[-+]?[\d.]+)\s*(?:%|percent|per\s+cent)"
_CHANGE = re.compile(
    r"^(?:(?:percentage|percent|relative|rate\s+of)\s+)?"
    r"(?:growth|increase|decrease|change|rise|drop|fall|decline)(?:\s+rate)?"
    r"(?:\s+(?:in|of)\s+(?:percent|%))?\s+from\s+(?P<one>.+?)\s+to\s+(?P<other>.+)$"
)
_DIFFERENCE = re.compile(r"^difference\s+(?:between|of)\s+(?P<one>.+?)\s+and\s+(?P<other>.+)$")
_RATIO = re.compile(r"^ratio\s+(?:between|of)\s+(?P<one>.+?)\s+(?:to|and)\s+(?P<other>.+)$")
_SHARE = re.compile(
    r"^(?:(?:what\s+)?percent(?:age)?\s+(?:is|are)\s+)(?P<one>.+?)\s+of\s+(?P<other>.+)$"
    r"|^(?:percentage|share)\s+of\s+(?P<share>.+?)\s+(?:in|of)\s+(?P<whole>.+)$"
    r"|^(?P<part>.+?)\s+(?:as\s+an?|in)\s+(?:percent(?:age)?|%|share)\s+of\s+(?P<all>.+)$"
)
_PERCENT_OF = re.compile(rf"{_PERCENT}\s+of\s+")
_PART = re.compile(rf"^{_PERCENT}\s+of\s+(?P<whole>(?:(?!\s[-+]\s).)+|\([^()]*\))$")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MORE = re.compile(
    rf"^(?:increase|raise|grow)\s+(?P<a>.+?)\s+by\s+{_PERCENT}$"
    rf"|^add\s+{_PERCENT.replace('percent>', 'p2>')}\s+to\s+(?P<b>.+)$"
    rf"|^(?P<c>.+?)\s+\+\s+{_PERCENT.replace('percent>', 'p3>')}$"
)
_LESS = re.compile(
    rf"^(?:decrease|reduce|lower|cut|discount)\s+(?P<a>.+?)\s+by\s+{_PERCENT}$"
    rf"|^(?:subtract|take)\s+{_PERCENT.replace('percent>', 'p2>')}\s+from\s+(?P<b>.+)$"
    rf"|^(?P<c>.+?)\s+(?:-|less)\s+{_PERCENT.replace('percent>', 'p3>')}$"
)
_OF_MANY = re.compile(
    r"^(?P<word>sum|total|average|mean|median|minimum|min|smallest|lowest|maximum|max|largest"
    r"|highest|product|range)(?:\s+(?:value|number))?(?:\s+of(?:\s+(?:all|the))*|(?=\s))\s+(?P<list>.+)$"
)
_SIGN = re.compile(r"\s[-+]\s|[*/]")
_BETWEEN = re.compile(r"\s*[,;]\s*(?:and\s+)?|\s+and\s+")


class Figures(Protocol):
    """What is known of numbers beside those that stand in a question."""

    def one(self, name: str) -> Fraction:
        """The number that a name means."""
        ...

    def many(self, name: str) -> Sequence[Fraction]:
        """The numbers that a name means."""
        ...


@dataclass(frozen=True, kw_only=True)
class Computation:
    """A computed question.

    Attributes:
        shown: What was computed, in numbers.
        result: The result as people read it; empty where it is not defined.
    """

    shown: str
    result: str

    def __str__(self) -> str:
        if self.result:
            return f"{self.shown} = {self.result}"
        return f"{self.shown} is not defined: it divides by zero."


class _NoFigures:
    """For questions that hold all of their numbers."""

    def one(self, name: str) -> Fraction:
        raise NotArithmeticError(name)

    def many(self, name: str) -> Sequence[Fraction]:
        raise NotArithmeticError(name)


class _AnyFigure(_NoFigures):
    """For questions whose names may stand for any number."""

    def one(self, name: str) -> Fraction:
        return Fraction(1)


def compute(question: str, figures: Figures | None = None) -> Computation | None:
    """Answer a question that is nothing but arithmetic; none for every other one.

    Args:
        question: In words or signs.
        figures: Knows the numbers that the question names; whatever it raises comes through.
    """
    if len(question) > _LONGEST or _DATE.search(question):
        return None
    text = _ASKING.sub("", prepared(question)).strip()
    known = figures or _NoFigures()
    for read in _READERS:
        try:
            found = read(text, known)
        except NotArithmeticError:
            return None
        if found is not None:
            return found
    return None


def relates(question: str) -> bool:
    """Whether a question is arithmetic on numbers or names, such as "sales less returns"."""
    return compute(question, _AnyFigure()) is not None


def _number(text: str, figures: Figures) -> Fraction:
    text = text.strip()
    # "the largest revenue" is one number of many.
    of_many = _OF_MANY.match(text.removeprefix("the "))
    if of_many and not re.search(r"\d", of_many["list"]) and of_many["word"] != "total":
        return _AGGREGATES[of_many["word"]](figures.many(of_many["list"]))
    return evaluate(text, figures.one)


def _between(found: re.Match[str]) -> tuple[str, str]:
    one, other = [text for text in found.groups() if text is not None]
    return one, other


def _change(text: str, figures: Figures) -> Computation | None:
    found = _CHANGE.match(text)
    if found is None:
        return None
    one, other = (_number(each, figures) for each in _between(found))
    shown = f"({written(other)} - {written(one)}) / {written(one)}"
    return _result(shown, lambda: (other - one) / one, percent=True)


def _share(text: str, figures: Figures) -> Computation | None:
    found = _SHARE.match(text)
    if found is None:
        return None
    # The whole first: a part that is only a row's name belongs to the same column.
    other, one = (_number(each, figures) for each in reversed(_between(found)))
    return _result(f"{written(one)} / {written(other)}", lambda: one / other, percent=True)


def _pair(
    text: str,
    figures: Figures,
    *,
    pattern: re.Pattern[str],
    sign: str,
) -> Computation | None:
    found = pattern.match(text)
    if found is None:
        return None
    one, other = (_number(each, figures) for each in _between(found))
    work = (lambda: one - other) if sign == "-" else (lambda: one / other)
    return _result(f"{written(one)} {sign} {written(other)}", work)


def _part(text: str, figures: Figures) -> Computation | None:
    found = _PART.match(text)
    if found is None:
        return None
    percent, whole = Fraction(found["percent"]), _number(found["whole"], figures)
    shown = f"{written(percent)} % of {written(whole)}"
    return _result(shown, lambda: percent / 100 * whole)


def _changed(
    text: str, figures: Figures, *, pattern: re.Pattern[str], sign: int
) -> Computation | None:
    found = pattern.match(text)
    if found is None:
        return None
    percent = Fraction(found["percent"] or found["p2"] or found["p3"])
    whole = _number(found["a"] or found["b"] or found["c"], figures)
    shown = f"{written(whole)} {'+' if sign > 0 else '-'} {written(percent)} %"
    return _result(shown, lambda: whole * (1 + sign * percent / 100))


def _of_many(text: str, figures: Figures) -> Computation | None:
    found = _OF_MANY.match(text)
    if found is None or _SIGN.search(found["list"]):
        return None
    parts = [part for part in _BETWEEN.split(found["list"]) if part]
    if len(parts) > 1:
        numbers = [_number(part, figures) for part in parts]
    else:
        numbers = list(figures.many(found["list"]))
    if not numbers:
        return None
    shown = f"{found['word']} of {', '.join(written(each) for each in numbers)}"
    return _result(shown, lambda: _AGGREGATES[found["word"]](numbers))


def _expression(text: str, figures: Figures) -> Computation | None:
    # A lone number asks nothing, a lone name is somebody else's question.
    if not re.search(rf"\d|{_SIGN.pattern}", text) or re.fullmatch(r"[\d.\s]*", text):
        return None
    text = _PERCENT_OF.sub(r"\g<percent> / 100 * ", text)
    used: dict[str, Fraction] = {}

    def lookup(name: str) -> Fraction:
        used[name] = figures.one(name)
        return used[name]

    def work() -> Fraction:
        return evaluate(text, lookup)

    computed = _result(text, work)
    shown = text
    for name, value in used.items():
        shown = shown.replace(name, written(value))
    shown = " ".join(shown.split()).replace("**", "^").replace("*", "\u00d7")
    return Computation(shown=shown, result=computed.result)


def _result(shown: str, work: Callable[[], Fraction], *, percent: bool = False) -> Computation:
    try:
        value = work()
    except ZeroDivisionError:
        return Computation(shown=shown, result="")
    result = written(100 * value, " %") if percent else written(value)
    return Computation(shown=shown, result=result)


def _mean(numbers: Sequence[Fraction]) -> Fraction:
    return sum(numbers, Fraction(0)) / len(numbers)


def _product(numbers: Sequence[Fraction]) -> Fraction:
    whole = Fraction(1)
    for each in numbers:
        whole *= each
    return whole


def _sum(numbers: Sequence[Fraction]) -> Fraction:
    return sum(numbers, Fraction(0))


_AGGREGATES: Mapping[str, Callable[[Sequence[Fraction]], Fraction]] = {
    **dict.fromkeys(("sum", "total"), _sum),
    **dict.fromkeys(("average", "mean"), _mean),
    **dict.fromkeys(("minimum", "min", "smallest", "lowest"), min),
    **dict.fromkeys(("maximum", "max", "largest", "highest"), max),
    "median": median,
    "product": _product,
    "range": lambda numbers: max(numbers) - min(numbers),
}
_READERS: tuple[Callable[[str, Figures], Computation | None], ...] = (
    _change,
    partial(_pair, pattern=_DIFFERENCE, sign="-"),
    partial(_pair, pattern=_RATIO, sign="/"),
    _share,
    _part,
    partial(_changed, pattern=_MORE, sign=1),
    partial(_changed, pattern=_LESS, sign=-1),
    _of_many,
    _expression,
)
