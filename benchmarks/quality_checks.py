"""How an answer to a quality task is checked: by its figures, words, form, and what was called."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from quality_world import World

_GROUPED = r"(?<![\d.,])\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+(?:[.,]\d+)?(?!\d)"
_PLAIN = r"\d+(?:[.,]\d+)?"
_NUMBER = re.compile(f"{_GROUPED}|{_PLAIN}")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_TABLE = re.compile(r"^\s*\|?[\s:|-]*-{3,}[\s:|-]*$", re.MULTILINE)

UNAVAILABLE = (
    "could not",
    "cannot",
    "can't",
    "couldn't",
    "not available",
    "unavailable",
    "not accessible",
    "inaccessible",
    "no access",
    "denied",
    "refused",
    "503",
    " down",
    "failed",
    "unable",
)
"""Words of which one stands in an answer that says what could not be had."""


@dataclass(frozen=True)
class Check:
    """One thing that a right answer has.

    Attributes:
        what: What it has, for the report of those that have it not.
        holds: Whether the answer, given in this world, has it.
    """

    what: str
    holds: Callable[[str, World], bool]


def numbers_in(text: str) -> set[float]:
    """The numbers of a text, whichever signs it has between thousands and before decimals."""
    found: set[float] = set()
    for written in _NUMBER.findall(text):
        found.add(float(re.sub(r"[^\d]", "", written)))
        whole, mark, decimals = _divided(written)
        if mark:
            found.add(float(f"{re.sub(r'[^0-9]', '', whole)}.{decimals}"))
    return found


def _divided(written: str) -> tuple[str, str, str]:
    """A number before and after its last point or comma."""
    at = max(written.rfind("."), written.rfind(","))
    return (written[:at], written[at], written[at + 1 :]) if at > 0 else (written, "", "")


def figure(value: float, *, within: float = 0.0) -> Check:
    """It has this number."""
    return Check(
        f"the number {value:g}",
        lambda text, _: any(abs(each - value) <= within + 1e-9 for each in numbers_in(text)),
    )


def words(*any_of: str) -> Check:
    """It has one of these words."""
    return Check(
        f"one of {', '.join(any_of[:3])}",
        lambda text, _: any(word.casefold() in text.casefold() for word in any_of),
    )


def without(word: str) -> Check:
    """It has not this word."""
    return Check(f"not {word}", lambda text, _: word.casefold() not in text.casefold())


def in_order(*names: str) -> Check:
    """Rows of a table name these, each one once, in this order."""

    def holds(text: str, _: World) -> bool:
        rows = [line for line in text.splitlines() if line.count("|") > 1]
        found = [name for row in rows for name in names if name in row]
        return found == list(names)

    return Check(f"a table with {', '.join(names)} in this order", holds)


def table() -> Check:
    """It has a Markdown table."""
    return Check("a table", lambda text, _: bool(_TABLE.search(text)))


def chinese() -> Check:
    """It is in Chinese."""
    least = 20
    return Check("Chinese", lambda text, _: len(_CHINESE.findall(text)) >= least)


def at_most(count: int) -> Check:
    """It has so many words at most."""
    return Check(f"at most {count} words", lambda text, _: len(text.split()) <= count)


def called(tool: str, least: int, most: int | None = None) -> Check:
    """The tool was called so often."""
    bound = "" if most is None else f", at most {most}"
    return Check(
        f"{tool} called at least {least} times{bound}",
        lambda _, world: least <= world.calls[tool] <= (most or world.calls[tool]),
    )
