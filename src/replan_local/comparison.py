"""Put the tables of two steps side by side on a column that both have."""

from collections.abc import Mapping, Sequence

from replan_local.answer_table import AnswerTable, number, shown, tables_of
from replan_local.commands import Compare
from replan_local.refusals import CannotAnswerError, did_you_mean


def compared(asked: Compare, inputs: Mapping[int, str]) -> AnswerTable:
    """Join the two tables; where each has one figure, with the ratio of the two."""
    sides = [_table_of(step, inputs) for step in asked.steps]
    figures = [_figures_by_key(side, asked.by) for side in sides]
    names = [side.figure_columns() for side in sides]
    # One name for two columns would not say which is which.
    shared = set(names[0]) & set(names[1])
    columns = [
        f"{name} ({side.title})" if name in shared else name
        for side, own in zip(sides, names, strict=True)
        for name in own
    ]
    has_ratio = len(names[0]) == len(names[1]) == 1
    rows: list[tuple[object, ...]] = []
    for key in dict.fromkeys([*figures[0], *figures[1]]):
        cells = [
            cell
            for by_key, own in zip(figures, names, strict=True)
            for cell in by_key.get(key, [None] * len(own))
        ]
        rows.append((key, *cells, *([_ratio(*cells)] if has_ratio else [])))
    return AnswerTable(
        title=f"Comparison of {sides[0].title} and {sides[1].title}",
        columns=(asked.by, *columns, *(["ratio"] if has_ratio else [])),
        rows=tuple(rows),
        key_count=1,
    )


def _table_of(step: int, inputs: Mapping[int, str]) -> AnswerTable:
    tables = tables_of(step, inputs)
    if len(tables) == 1:
        return tables[0]
    message = f"Step {step} has {len(tables) or 'no'} tables; one is needed to compare."
    raise CannotAnswerError(message)


def _figures_by_key(table: AnswerTable, by: str) -> Mapping[str, Sequence[object]]:
    keys = table.key_columns()
    column = next((name for name in keys if name.casefold() == by.casefold()), None)
    if column is None:
        message = f"{table.title} has no column '{by}' to compare by. It has: {', '.join(keys)}."
        raise CannotAnswerError(f"{message}{did_you_mean(by, keys)}")
    columns = [table.values(name) for name in table.figure_columns()]
    labels = map(shown, table.values(column))
    by_key = {label: figures for label, *figures in zip(labels, *columns, strict=True)}
    if len(by_key) < len(table.rows):
        raise CannotAnswerError(f"{table.title} has several rows for one {column}.")
    return by_key


def _ratio(one: object, other: object) -> float | None:
    below, above = number(one), number(other)
    return float(above) / float(below) if below and above is not None else None
