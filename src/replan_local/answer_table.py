"""A small table of an answer: written as Markdown, and read back from it."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

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
    key_count: int = 0  # the first columns that tell the rows apart, even if they hold numbers
    is_cut: bool = False  # whether there are more rows than these

    def markdown(self) -> str:
        """The table in Markdown; columns of figures are set to the right, and a cut is marked."""
        figures = self.figures()
        marks = ["---:" if name in figures else "---" for name in self.columns]
        lines = [_line(self.columns), _line(marks), *map(_line, self.rows)]
        return "\n".join([*lines, *(["", _CUT] if self.is_cut else [])])

    def values(self, column: str) -> list[Any]:
        return [row[self.columns.index(column)] for row in self.rows]

    def figures(self) -> list[str]:
        """The columns of numbers, without the keys."""
        return [name for name in self.columns[self.key_count :] if _are_numbers(self.values(name))]

    def labels(self) -> list[str]:
        """What each row is called: by all of its keys, and by no other row."""
        figures = self.figures()
        keys = [self.values(name) for name in self.columns if name not in figures]
        labels = [" ".join(shown(key[at]) for key in keys) for at in range(len(self.rows))]
        if len(set(labels)) < len(labels):
            raise CannotAnswerError(f"'{self.title}' has several rows with the same keys.")
        return labels


def result_of(step: int, inputs: Mapping[int, str]) -> str:
    if step in inputs:
        return inputs[step].strip()
    step_numbers = ", ".join(map(str, sorted(inputs))) or "none"
    message = f"This step comes after {step_numbers}, not after step {step}. Add it to (after ...)."
    raise CannotAnswerError(message)


def table_of(step: int, inputs: Mapping[int, str]) -> AnswerTable:
    """The one table of the result of a step, all of its rows."""
    text = result_of(step, inputs)
    title = text.removeprefix("**").partition("**")[0] if text.startswith("**") else f"step {step}"
    tables = tables_in(text, title)
    if len(tables) != 1:
        message = f"Step {step} has {len(tables) or 'no'} tables; one is needed."
        raise CannotAnswerError(message)
    if tables[0].is_cut:
        message = f"Step {step} shows only a part of its rows; ask there for what you need of them."
        raise CannotAnswerError(message)
    return tables[0]


def tables_in(text: str, title: str) -> tuple[AnswerTable, ...]:
    """Read the tables of a Markdown text back; columns set to the right hold the numbers."""
    nodes = SyntaxTreeNode(_reader().parse(text)).children
    return tuple(_table(node, title) for node in nodes if node.type == "table")


def _table(node: SyntaxTreeNode, title: str) -> AnswerTable:
    head, *rows = [row.children for part in node.children for row in part.children]
    readers = [_figure if "right" in str(cell.attrs.get("style")) else str for cell in head]
    texts = [[cell.children[0].content for cell in row] for row in rows]
    after = node.next_sibling
    return AnswerTable(
        title=title,
        columns=tuple(cell.children[0].content for cell in head),
        rows=tuple(
            tuple(read(text) for read, text in zip(readers, row, strict=True)) for row in texts
        ),
        is_cut=after is not None and after.children[0].content == _CUT,
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


def _are_numbers(cells: Sequence[object]) -> bool:
    return all(number(cell) is not None for cell in cells if cell is not None)


def _figure(cell: str) -> int | float | str | None:
    if _NUMBER.fullmatch(cell):
        return float(cell) if "." in cell else int(cell)
    return None if cell == _EMPTY else cell
