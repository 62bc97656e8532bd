"""Figures and moments as columns have them: short, and one below the other."""

import re
from collections.abc import Collection
from typing import NamedTuple

_SIGNS = {"at most": "≤ ", "at least": "≥ ", "about": "≈ ", "-": "–"}
_MOMENT = re.compile(r"((?:[\d-]{10} )?[\d:]{8}) (?:step (\d{1,9})\b)?(.*)", re.DOTALL)


class Moment(NamedTuple):
    """A line of a history."""

    at: str
    step: int | None  # what it begins with, if there is a page of that step
    text: str


def with_sign(text: str) -> str:
    """A figure with a sign for the words before it."""
    words = next((sign for sign in _SIGNS if f"{text} ".startswith(f"{sign} ")), "")
    return f"{_SIGNS[words]}{text[len(words) :].lstrip()}" if words else text


def moment_of(line: str, steps: Collection[int]) -> Moment:
    """A line of a history in its parts."""
    found = _MOMENT.fullmatch(line)
    if found is None:
        return Moment("", None, line)
    at, step, text = found.groups()
    if step and int(step) in steps:
        return Moment(at, int(step), text)
    return Moment(at, None, f"step {step}{text}" if step else text)
