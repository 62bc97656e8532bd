"""Put two tables side by side on a column that both have."""

from typing import Any

from replan_local.answer_table import AnswerTable, number, shown
from replan_local.refusals import CannotAnswerError, did_you_mean


def compared(one: AnswerTable, other: AnswerTable, by: str) -> tuple[AnswerTable, list[str]]:
    """Join two tables on a column; where each has one figure, with the ratio of the two."""
    sides = [_Side(one, by), _Side(other, by)]
    names = [name for side in sides for name in side.figures]
    if len(set(names)) < len(names):
        names = [f"{name} ({side.title})" for side in sides for name in side.figures]
    has_ratio = len(names) == len(sides)
    keys = dict.fromkeys(key for side in sides for key in side.rows)
    table = AnswerTable(
        title=f"Comparison of {' and '.join(side.title for side in sides)}",
        columns=(sides[0].key, *names, *(["ratio"] if has_ratio else [])),
        cells=tuple(_row(key, sides, has_ratio=has_ratio) for key in keys),
        key_count=1,
    )
    findings = [
        f"Without a row in {side.title}: {', '.join(lacking[:5])}."
        for side in sides
        if (lacking := [key for key in keys if key not in side.rows])
    ]
    ratios = [row for row in table.cells if has_ratio and row[-1] is not None]
    for word, best in (("Largest", max), ("Smallest", min)):
        if len(ratios) > 1:
            row = best(ratios, key=lambda row: row[-1])
            ratio = f"{word} ratio of {names[1]} to {names[0]}"
            findings.append(f"{ratio}: {row[0]} with {shown(row[-1])}.")
    return table, findings


class _Side:
    """One of the tables: its figures by the values of the column."""

    def __init__(self, table: AnswerTable, by: str) -> None:
        at, keys = table.place(by), table.key_places()
        if at is None or at not in keys:
            names = [table.columns[each] for each in keys]
            message = f"{table.title} has no column '{by}' to compare by. It has: "
            raise CannotAnswerError(f"{message}{', '.join(names)}.{did_you_mean(by, names)}")
        if table.is_cut:
            message = f"{table.title} shows only a part of its rows, so it cannot be compared."
            raise CannotAnswerError(message)
        self.title, self.key, self.figures = table.title, table.columns[at], table.figure_columns()
        places = [table.columns.index(name) for name in self.figures]
        self.rows = {shown(row[at]): [row[each] for each in places] for row in table.cells}
        if len(self.rows) < len(table.cells):
            message = f"{table.title} has several rows for one {self.key}."
            raise CannotAnswerError(message)


def _row(key: str, sides: list[_Side], *, has_ratio: bool) -> tuple[Any, ...]:
    cells = [cell for side in sides for cell in side.rows.get(key, [None] * len(side.figures))]
    if not has_ratio:
        return (key, *cells)
    one, other = (number(cell) for cell in cells)
    is_defined = one is not None and other is not None and one
    return (key, *cells, float(other or 0) / float(one or 1) if is_defined else None)
