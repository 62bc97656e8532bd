"""How large a text of each kind may be; what people and models really write is far below."""

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
    depth: int  # how deep lists and mappings may stand in each other
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

REPLY_YAML = YamlBounds(characters=60_000, depth=20, values=50_000, digits=100, aliases=False)
"""Steps that a model gives as YAML."""

TABLE_COLUMNS, COLUMN_NAME = 2_000, 500
"""Columns of a table, and characters of the name of each."""

ANSWER = 200_000
"""Bytes of a person's answer to a question, as JSON."""
