"""Choose what of some tables can be shown in one chart, and how."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from replan.plan.model import Value
from replan_local.answer_table import AnswerTable, number, shown
from replan_local.words import words_of

Shape = Literal["bar", "line"]

_FEWEST, _MOST_LABELS, _MOST_SERIES = 2, 40, 6
_DATE = re.compile(r"^\d{4}(?:-(?:\d\d(?:-\d\d)?|W\d\d|Q\d))?(?:[ T]\d\d:\d\d.*)?$")
# A series that is a thirtieth of the largest one would be a line on the axis.
_VISIBLE = 30
_SAYS_NOTHING = frozenset(("a", "and", "by", "chart", "in", "of", "report", "the", "total", "with"))


class Series(Value):
    """The numbers of one column, one for each label; none where there is no number."""

    name: str
    values: tuple[float | None, ...]


class ChartData(Value):
    """What a chart shows.

    Attributes:
        shape: Bars, or a line where the labels are dates.
        left_out: The columns of the table that are not shown, for their numbers are far smaller
            or larger, or there are too many.
    """

    shape: Shape
    title: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    left_out: tuple[str, ...] = ()


def choose_chart(
    tables: Iterable[AnswerTable], wording: str, shape: Shape | None = None
) -> ChartData | None:
    """Choose the table that says most: what the step speaks of, then the most columns, the first.

    Args:
        tables: The tables of all inputs, in their order.
        wording: The step's line.
        shape: What is wished for; else dates are a line, all else bars.

    Returns:
        None if no table has a column of labels, a column of numbers and two rows.
    """
    charts = [chart for table in tables if (chart := _chart(table, shape)) is not None]
    spoken_of = set(words_of(wording)) - _SAYS_NOTHING

    def worth(chart: ChartData) -> tuple[int, int]:
        return len(spoken_of & set(words_of(chart.title))), len(chart.series)

    return max(charts, key=worth, default=None)


def _chart(table: AnswerTable, shape: Shape | None) -> ChartData | None:
    keys = table.key_columns()
    numeric = [place for place, name in enumerate(table.columns) if name not in keys]
    if len(keys) != 1 or not numeric or not _FEWEST <= len(table.cells) <= _MOST_LABELS:
        return None
    at = table.columns.index(keys[0])
    labels = tuple(shown(row[at]) for row in table.cells)
    series, left_out = _alike([_series(table, place) for place in numeric])
    if not series:
        return None
    usual: Shape = "line" if all(_DATE.match(label) for label in labels) else "bar"
    return ChartData(
        shape=shape or usual, title=table.title, labels=labels, series=series, left_out=left_out
    )


def _series(table: AnswerTable, place: int) -> Series:
    return Series(
        name=table.columns[place], values=tuple(number(row[place]) for row in table.cells)
    )


def _alike(all_series: Sequence[Series]) -> tuple[tuple[Series, ...], tuple[str, ...]]:
    """The first series and those that can be read on the same axis; the names of the others."""
    first = next((each for each in all_series if _size(each)), None)
    if first is None:
        return (), ()
    low, high = _size(first) / _VISIBLE, _size(first) * _VISIBLE
    alike = [each for each in all_series if low <= _size(each) <= high][:_MOST_SERIES]
    return tuple(alike), tuple(each.name for each in all_series if each not in alike)


def _size(series: Series) -> float:
    return max((abs(value) for value in series.values if value is not None), default=0.0)
