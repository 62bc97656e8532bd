"""A small table of an answer: written as Markdown, and read back from it."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from markdown_it import MarkdownIt

from replan.plan.model import Value
from replan_local.refusals import CannotAnswerError

MOST_ROWS = 30
"""How many rows an answer shows."""

_CUT = "(More rows are not shown.)"
_EMPTY = "(empty)"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class AnswerTable(Value):
    """Rows under named columns."""

    title: str  # what the table shows
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]  # numbers are numbers, everything else is text
    key_count: int = (
        0  # how many of the first columns tell the rows apart, even if they are numbers
    )
    is_cut: bool = False  # whether there are more rows than these

    def markdown(self) -> str:
        """The table in Markdown; columns of figures are set to the right, and a cut is marked."""
        keys = self.key_columns()
        marks = ("---" if name in keys else "---:" for name in self.columns)
        lines = [_line(self.columns), _line(tuple(marks)), *map(_line, self.rows)]
        return "\n".join([*lines, *(["", _CUT] if self.is_cut else [])])

    def values(self, column: str) -> list[Any]:
        return [row[self.columns.index(column)] for row in self.rows]

    def labels(self) -> list[str]:
        """What each row is called: its keys."""
        keys = [self.values(name) for name in self.key_columns()]
        return [" ".join(str(key[at]) for key in keys) for at in range(len(self.rows))]

    def key_columns(self) -> tuple[str, ...]:
        """The columns that tell the rows apart: keys, and whatever holds no numbers."""
        return tuple(
            name
            for at, name in enumerate(self.columns)
            if at < self.key_count or not _are_numbers(self.values(name))
        )

    def figure_columns(self) -> tuple[str, ...]:
        keys = self.key_columns()
        return tuple(name for name in self.columns if name not in keys)


def result_of(step: int, inputs: Mapping[int, str]) -> str:
    if step in inputs:
        return inputs[step]
    known = ", ".join(map(str, sorted(inputs))) or "none"
    message = (
        f"This step does not come after step {step}, but after: {known}. Add it to (after ...)."
    )
    raise CannotAnswerError(message)


def tables_of(step: int, inputs: Mapping[int, str]) -> tuple[AnswerTable, ...]:
    """The tables of the result of a step, all of their rows."""
    text = result_of(step, inputs).strip()
    title = text.removeprefix("**").partition("**")[0] if text.startswith("**") else f"step {step}"
    tables = tables_in(text, title)
    if any(table.is_cut for table in tables):
        message = f"Step {step} shows only a part of its rows; ask there for what you need of them."
        raise CannotAnswerError(message)
    return tables


def tables_in(text: str, title: str) -> tuple[AnswerTable, ...]:
    """Read the tables of a Markdown text back; columns set to the right hold the numbers."""
    tables: list[AnswerTable] = []
    rows: list[list[str]] = []
    to_the_right: list[bool] = []
    tokens = _reader().parse(text)
    for at, token in enumerate(tokens):
        if token.type == "table_open":
            rows, to_the_right = [], []
        elif token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append(tokens[at + 1].content)
            to_the_right += [token.attrGet("style") == "text-align:right"] * (len(rows) == 1)
        elif token.type == "table_close":
            numeric = to_the_right if any(to_the_right) else [True] * len(to_the_right)
            after = tokens[at + 2].content if len(tokens) > at + 2 else ""
            tables.append(
                AnswerTable(
                    title=title,
                    columns=tuple(rows[0]),
                    rows=tuple(_row(row, numeric) for row in rows[1:]),
                    is_cut=after == _CUT,
                )
            )
    return tuple(tables)


def shown(value: object) -> str:
    """A cell as text: numbers short and without grouping signs, so that they can be read back."""
    match value:
        case None:
            return _EMPTY
        case bool():
            return str(value).lower()
        case float() | Decimal():
            return _decimal(Decimal(str(value)))
        case _:
            return " ".join(str(value).split()).replace("|", r"\|")


def number(value: object) -> float | Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return value if Decimal(value).is_finite() else None


@cache
def _reader() -> MarkdownIt:
    return MarkdownIt("zero").enable("table")


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        return str(value).lower()
    rounded = value.quantize(Decimal("0.01")) if abs(value) >= 1 else Decimal(f"{value:.4g}")
    text = format(rounded, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(shown(cell) for cell in cells) + " |"


def _row(cells: Sequence[str], numeric: Sequence[bool]) -> tuple[object, ...]:
    return tuple(
        _value(cell) if is_number else cell for cell, is_number in zip(cells, numeric, strict=True)
    )


def _are_numbers(cells: Sequence[object]) -> bool:
    values = [cell for cell in cells if cell is not None]
    return bool(values) and all(number(value) is not None for value in values)


def _value(cell: str) -> int | float | str | None:
    if cell == _EMPTY:
        return None
    if not _NUMBER.fullmatch(cell):
        return cell
    return float(cell) if "." in cell else int(cell)
