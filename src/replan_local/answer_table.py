"""A small table of an answer: written as Markdown, and read back from it."""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from replan.base.values import Value
from replan_local.refusals import CannotAnswerError

MOST_ROWS = 30
"""How many rows an answer shows."""

EMPTY = "(empty)"
"""A cell without a value."""

_CUT = "(More rows are not shown.)"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_READER = MarkdownIt("zero").enable("table")


class AnswerTable(Value):
    """Rows of cells, as they are shown, under named columns."""

    title: str  # what the table shows
    columns: tuple[str, ...]
    figures: tuple[str, ...]  # the columns of numbers that are no keys
    rows: tuple[tuple[str, ...], ...]
    is_cut: bool = False  # whether there are more rows than these

    def markdown(self, source: str = "") -> str:
        """The title and the table; columns of figures are set to the right, a cut is marked."""
        marks = ["---:" if name in self.figures else "---" for name in self.columns]
        lines = [f"**{self.title}**" + (f" ({source})" if source else ""), ""]
        lines += [_line(self.columns), _line(marks), *map(_line, self.rows)]
        return "\n".join([*lines, *(["", _CUT] if self.is_cut else [])])

    def keys(self) -> list[str]:
        """The columns that say what a row is about."""
        return [name for name in self.columns if name not in self.figures]

    def figures_by_label(self) -> Mapping[str, Mapping[str, str]]:
        """The figures of each row by their columns, under all of its keys."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        labelled = {" ".join(row[key] for key in self.keys()): row for row in rows}
        if len(labelled) < len(rows):
            raise CannotAnswerError(f"'{self.title}' has several rows with the same keys.")
        return labelled


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
        raise CannotAnswerError(f"Step {step} has {len(tables) or 'no'} tables; one is needed.")
    if tables[0].is_cut:
        message = f"Step {step} shows only a part of its rows; ask there for what you need of them."
        raise CannotAnswerError(message)
    return tables[0]


def tables_in(text: str, title: str) -> tuple[AnswerTable, ...]:
    """Read the tables of a Markdown text back; columns set to the right hold the figures."""
    nodes = SyntaxTreeNode(_READER.parse(text)).children
    return tuple(_table(node, title) for node in nodes if node.type == "table")


def shown(number: float | Decimal) -> str:
    """A number as a cell: short and without grouping signs, so that it can be read back."""
    decimal = Decimal(str(number))
    if not decimal.is_finite():
        return str(number).lower()
    text = f"{decimal:.2f}" if abs(decimal) >= 1 else f"{Decimal(f'{decimal:.4g}'):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def number_in(cell: str) -> Fraction | None:
    return Fraction(cell) if _NUMBER.fullmatch(cell) else None


def _table(node: SyntaxTreeNode, title: str) -> AnswerTable:
    head, *body = [row.children for part in node.children for row in part.children]
    columns, *rows = [tuple(cell.children[0].content for cell in row) for row in (head, *body)]
    after = node.next_sibling
    return AnswerTable(
        title=title,
        columns=columns,
        figures=tuple(
            columns[at]
            for at, cell in enumerate(head)
            if "right" in str(cell.attrs.get("style"))
            and all(_NUMBER.fullmatch(row[at]) or row[at] == EMPTY for row in rows)
        ),
        rows=tuple(rows),
        is_cut=after is not None and after.children[0].content == _CUT,
    )


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
