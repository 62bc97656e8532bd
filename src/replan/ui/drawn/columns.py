"""Figures and moments as columns have them: short, and one below the other."""

import re
from collections.abc import Collection
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import NamedTuple

from replan.log.calls import Calls
from replan.views.run.overview import money

_SIGNS = {"at most": "≤ ", "at least": "≥ ", "about": "≈ ", "-": "–"}
_ROUND = {"≤": ROUND_CEILING, "≥": ROUND_FLOOR}  # a bound stays one
_SMALL, _LARGE = Decimal("0.0001"), 10  # between them five digits behind the point say all
_DIGITS = Decimal("0.00001")
_MOMENT = re.compile(r"((?:[\d-]{10} )?[\d:]{8}) (?:step (\d{1,9})\b)?(.*)", re.DOTALL)


class Moment(NamedTuple):
    """A line of a history."""

    at: str
    step: int | None  # what it begins with, if there is a page of that step
    text: str


def with_sign(text: str) -> str:
    """A figure with a sign for the words before it."""
    words, _, figure = text.rpartition(" ")
    return f"{_SIGNS[words]}{figure}" if words in _SIGNS else _SIGNS.get(text, text)


def price(calls: Calls) -> str:
    """What calls cost, with the point where it is in the rows above and below."""
    sign, blank, figure = with_sign(money(calls)).rpartition(" ")
    if figure[:1].isdigit() and _SMALL <= Decimal(figure) < _LARGE:
        figure = str(Decimal(figure).quantize(_DIGITS, _ROUND.get(sign, ROUND_HALF_EVEN)))
    return f"{sign}{blank}{figure}"


def moment_of(line: str, steps: Collection[int]) -> Moment:
    """A line of a history in its parts."""
    found = _MOMENT.fullmatch(line)
    if found is None:
        return Moment("", None, line)
    at, step, text = found.groups()
    if step and int(step) in steps:
        return Moment(at, int(step), text)
    return Moment(at, None, f"step {step}{text}" if step else text)
