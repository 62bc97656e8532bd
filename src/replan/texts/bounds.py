"""How large a text of each kind may be; what people and models really write is far below."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How large one kind of text may be.

    Attributes:
        characters: Of the whole text.
        lines: Of the whole text.
        line: Characters of a line.
        items: Lines that begin like an item of a list or a heading.
    """

    characters: int
    lines: int
    line: int
    items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlBounds:
    """How large a YAML text may be.

    Attributes:
        characters: Of the whole text.
        depth: How deep lists and mappings may stand in each other.
        values: Keys and values in all, those that an alias repeats counted again.
        digits: Of a number.
        aliases: Whether it may have any.
        merges: Whether it may merge mappings with `<<`.
    """

    characters: int
    depth: int
    values: int
    digits: int
    aliases: bool
    merges: bool = False


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

REPLY_YAML = YamlBounds(characters=60_000, depth=20, values=50_000, digits=100, aliases=False)
"""Steps that a model gives as YAML."""

TABLE_COLUMNS, COLUMN_NAME = 2_000, 500
"""Columns of a table, and characters of the name of each."""

ANSWER = 200_000
"""Bytes of a person's answer to a question, as JSON."""
