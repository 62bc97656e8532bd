"""Put the tables of two steps side by side on the column that tells their rows apart."""

from collections.abc import Mapping, Sequence

from replan_local.answer_table import AnswerTable, table_of
from replan_local.commands import Compare
from replan_local.refusals import one_of


def compared(asked: Compare, inputs: Mapping[int, str]) -> AnswerTable:
    """Join the two tables; where each has one figure, with the ratio of the two."""
    sides = [table_of(step, inputs) for step in asked.steps]
    names = [side.figures() for side in sides]
    figures = [_figures_by_key(side, asked.by) for side in sides]
    # One name for two columns would not say which is which.
    columns = [
        f"{name} ({side.title})" if name in names[0] and name in names[1] else name
        for side, own in zip(sides, names, strict=True)
        for name in own
    ]
    has_ratio = len(names[0]) == len(names[1]) == 1
    rows: list[tuple[object, ...]] = []
    for key in dict.fromkeys([*figures[0], *figures[1]]):
        one, other = (
            by_key.get(key, [None] * len(own)) for by_key, own in zip(figures, names, strict=True)
        )
        rows.append((key, *one, *other, *([_ratio(one[0], other[0])] if has_ratio else [])))
    return AnswerTable(
        title=f"Comparison of {sides[0].title} and {sides[1].title}",
        columns=(asked.by, *columns, *(["ratio"] if has_ratio else [])),
        rows=tuple(rows),
        key_count=1,
    )


def _figures_by_key(table: AnswerTable, by: str) -> Mapping[str, Sequence[float | None]]:
    figures = table.figures()
    keys = [name for name in table.columns if name not in figures]
    one_of(by, keys, f"key in '{table.title}'")
    columns = [table.values(name) for name in figures]
    return {label: each for label, *each in zip(table.labels(), *columns, strict=True)}


def _ratio(one: float | None, other: float | None) -> float | None:
    return float(other) / float(one) if one and other is not None else None
