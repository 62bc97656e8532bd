"""A small table of an answer: written as Markdown, and read back from it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from replan.plan.model import Value
from replan_local.refusals import CannotAnswerError

MOST_ROWS = 30
"""How many rows an answer shows."""

_RULE = re.compile(r"^\s*+\|?(?:\s*+:?-{3,}+:?\s*+\|)++\s*+:?-*+:?\s*+$")
_NUMBER = re.compile(r"^-?\d+(?:\.\d+)?$")
_CUT = re.compile(r"^\(\d+ more rows are not shown\.\)$")
_EMPTY = "(empty)"
_CELL_END = re.compile(r"(?<!\\)\|")


class AnswerTable(Value):
    """Rows under named columns."""

    title: str  # what the table shows
    columns: tuple[str, ...]
    cells: tuple[tuple[Any, ...], ...]  # the rows; numbers are numbers, everything else is text
    total_rows: int = 0  # how many rows there are in all, if more than these
    # How many of the first columns tell the rows apart, even if they hold numbers.
    key_count: int = 0

    @property
    def is_cut(self) -> bool:
        """Whether it has more rows than it shows."""
        return self.total_rows > len(self.cells)

    def markdown(self) -> str:
        """The table in Markdown; a cut is marked."""
        shown_rows = self.cells[:MOST_ROWS]
        keys = self.key_places()
        marks = (" --- " if at in keys else " ---: " for at in range(len(self.columns)))
        lines = [_row(self.columns), f"|{'|'.join(marks)}|", *(_row(row) for row in shown_rows)]
        if hidden := max(self.total_rows, len(self.cells)) - len(shown_rows):
            lines += ["", f"({hidden} more rows are not shown.)"]
        return "\n".join(lines)

    def place(self, column: str) -> int | None:
        """Where a column is, without regard to case."""
        folded = [name.casefold() for name in self.columns]
        return folded.index(column.casefold()) if column.casefold() in folded else None

    def key_places(self) -> tuple[int, ...]:
        """The columns that tell the rows apart: keys, and whatever holds no numbers."""
        return tuple(
            at
            for at in range(len(self.columns))
            if at < self.key_count or not _is_numeric(row[at] for row in self.cells)
        )

    def figure_columns(self) -> tuple[str, ...]:
        keys = self.key_places()
        return tuple(name for at, name in enumerate(self.columns) if at not in keys)


def result_of(step: int, inputs: Mapping[int, str]) -> str:
    if step in inputs:
        return inputs[step]
    known = ", ".join(map(str, sorted(inputs))) or "none"
    raise CannotAnswerError(
        f"This step does not come after step {step}, but after: {known}. Add it to (after ...)."
    )


def tables_in(text: str, title: str) -> tuple[AnswerTable, ...]:
    """Read the tables of a Markdown text back; columns set to the right hold the numbers."""
    lines = text.splitlines()
    return tuple(
        _table(lines, at, header, title)
        for at, line in enumerate(lines)
        if at and _RULE.match(line) and (header := _cells(lines[at - 1]))
    )


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


def _table(lines: Sequence[str], rule: int, header: Sequence[str], title: str) -> AnswerTable:
    rows = tuple(_rows(lines, rule, header))
    end = rule + 1 + len(rows)
    after = next((line for line in lines[end : end + 2] if line.strip()), "")
    more = 1 if _CUT.match(after) else 0
    return AnswerTable(
        title=title, columns=tuple(header), cells=rows, total_rows=len(rows) + more if more else 0
    )


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        return str(value).lower()
    rounded = value.quantize(Decimal("0.01")) if abs(value) >= 1 else Decimal(f"{value:.4g}")
    text = format(rounded, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(shown(cell) for cell in cells) + " |"


def _is_numeric(cells: Iterator[object]) -> bool:
    values = [cell for cell in cells if cell is not None]
    return bool(values) and all(number(value) is not None for value in values)


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|")
    parts = _CELL_END.split(inner)
    return [part.strip().replace(r"\|", "|") for part in (parts[:-1] or parts)]


def _rows(lines: Sequence[str], rule: int, header: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    marks = _cells(lines[rule])
    to_the_right = [mark.endswith(":") and not mark.startswith(":") for mark in marks]
    numeric = to_the_right if any(to_the_right) else [True] * len(header)
    for line in lines[rule + 1 :]:
        cells = _cells(line) if line.strip().startswith("|") else []
        if len(cells) != len(header) or len(numeric) != len(header):
            return
        yield tuple(
            _value(cell, is_number=right) for cell, right in zip(cells, numeric, strict=True)
        )


def _value(cell: str, *, is_number: bool) -> int | float | str | None:
    if cell == _EMPTY:
        return None
    if not is_number or not _NUMBER.match(cell):
        return cell
    return float(cell) if "." in cell else int(cell)
