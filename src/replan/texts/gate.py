"""Whether a text is within the bounds of its kind; told without reading it."""

import re
from dataclasses import dataclass

from replan.texts.bounds import Bounds

_ITEM = re.compile(r"^[ \t>]*+(?:[-*+#]|\d{1,9}[.)])", re.MULTILINE)
_DIVIDE = "Divide it, and keep long data in files of their own."


@dataclass(frozen=True, slots=True)
class Excess:
    """Where a text is beyond a bound."""

    line: int  # the line, counted from 1
    reason: str  # the value and the bound, as a sentence
    fix: str


def excess_of(text: str, bounds: Bounds) -> Excess | None:
    """Tell what of a text is beyond its bounds; none if all of it is within them."""
    if len(text) > bounds.characters:
        reason = f"This has {len(text):,} characters; at most {bounds.characters:,} are read."
        return Excess(1, reason, _DIVIDE)
    lines = text.count("\n") + text.count("\r")
    if lines >= bounds.lines:
        reason = f"This has {lines + 1:,} lines; at most {bounds.lines:,} are read."
        return Excess(bounds.lines, reason, _DIVIDE)
    items = sum(1 for _ in _ITEM.finditer(text))
    if items > bounds.items:
        reason = f"This has {items:,} items and headings; at most {bounds.items:,} are read."
        return Excess(1, reason, "Divide it into several plans.")
    return _long_line(text, bounds.line) if len(text) > bounds.line else None


def _long_line(text: str, longest: int) -> Excess | None:
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > longest:
            reason = f"This line has {len(line):,} characters; at most {longest:,} are read."
            return Excess(number, reason, "Break it into several lines.")
    return None
