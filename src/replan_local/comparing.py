"""Put the tables of two earlier steps side by side."""

from collections.abc import Mapping

from replan_local.answer_table import EMPTY, AnswerTable, number_in, shown, table_of
from replan_local.commands import Compare
from replan_local.refusals import one_of


def compared(command: Compare, inputs: Mapping[int, str]) -> str:
    """Join the two tables; where each has one figure, with the ratio of the two."""
    one, other = sides = [table_of(step, inputs) for step in command.steps]
    for side in sides:
        one_of(command.by, side.keys(), f"key in '{side.title}'")
    shared = {*one.figures} & {*other.figures}
    # One name for two columns would not say which is which.
    figures = [
        f"{name} ({side.title})" if name in shared else name
        for side in sides
        for name in side.figures
    ]
    has_ratio = len(one.figures) == len(other.figures) == 1
    rows = [side.figures_by_label() for side in sides]
    cells_by_label = {
        label: [
            side_rows[label][name] if label in side_rows else EMPTY
            for side, side_rows in zip(sides, rows, strict=True)
            for name in side.figures
        ]
        for label in (*rows[0], *rows[1])
    }
    if has_ratio:
        figures.append("ratio")
        for cells in cells_by_label.values():
            cells.append(_ratio(*cells))
    table = AnswerTable(
        title=f"Comparison of {one.title} and {other.title}",
        columns=(command.by, *figures),
        figures=tuple(figures),
        rows=tuple((label, *cells) for label, cells in cells_by_label.items()),
    )
    return table.markdown()


def _ratio(one: str, other: str) -> str:
    whole, part = number_in(one), number_in(other)
    return shown(float(part / whole)) if whole and part is not None else EMPTY
