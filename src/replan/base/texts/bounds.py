"""How large a text of each kind may be; what people and models really write is far below."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    characters: int  # of the whole text
    lines: int  # of the whole text
    line: int  # characters of a line
    items: int  # lines that begin like an item of a list or a heading


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlBounds:
    characters: int  # of the whole text
    depth: int  # how deep lists and mappings may be in each other
    values: int  # keys and values in all, those that an alias repeats counted again
    digits: int  # of a number
    aliases: bool  # whether it may have any
    merges: bool = False  # whether it may merge mappings with `<<`


PLAN = Bounds(characters=4_000_000, lines=100_000, line=200_000, items=20_000)
"""A plan document: a thousand steps with all that a plan keeps of their results are half of it."""

MODEL_PLAN = Bounds(characters=500_000, lines=20_000, line=50_000, items=5_000)
"""A plan in the reply of a model."""

STEP_LINE = 10_000
"""Characters of the line of a step; a thousand numbers to wait for are half of it."""

STEP_ATTRIBUTES = 100
"""Mentions, brackets and phrases at the end of the line of a step that are read as attributes."""

MOST_DEPENDENCIES = 50_000
"""Of all steps of a document together: a range such as `after 1-900` is short."""

PARAMETERS = YamlBounds(characters=200_000, depth=100, values=20_000, digits=100, aliases=True)
"""The `yaml` block of a step."""

TEAM = YamlBounds(
    characters=200_000, depth=20, values=10_000, digits=200_000, aliases=True, merges=True
)
"""A team file; its own fields say which numbers they take."""

TABLE_COLUMNS, COLUMN_NAME = 2_000, 500
"""Columns of a table, and characters of the name of each."""

ANSWER = 200_000
"""Bytes of a person's answer to a question, as JSON."""


_ITEM = re.compile(r"^[ \t>]*+(?:[-*+#]|\d{1,9}[.)])", re.MULTILINE)
_DIVIDE = "Divide it, and keep long data in separate files."


@dataclass(frozen=True, slots=True)
class Excess:
    """Where a text is beyond a bound."""

    line: int  # the line, counted from 1
    reason: str  # the value and the bound, as a sentence
    fix: str


def excess_of(text: str, bounds: Bounds) -> Excess | None:
    """Report what of a text is beyond its bounds; None if all of it is within them."""
    if len(text) > bounds.characters:
        reason = f"This has {len(text):,} characters; at most {bounds.characters:,} are read."
        return Excess(1, reason, _DIVIDE)
    lines = text.count("\n") + text.count("\r")
    if lines >= bounds.lines:
        reason = f"This has {lines + 1:,} lines; at most {bounds.lines:,} are read."
        return Excess(bounds.lines, reason, _DIVIDE)
    # No line has two of them, and nearly no text has so many lines.
    items = sum(1 for _ in _ITEM.finditer(text)) if lines >= bounds.items else 0
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
