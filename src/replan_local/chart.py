"""Draw the last table that can be shown as one SVG picture that is alone."""

import importlib
import re
import sys
from collections.abc import Sequence
from typing import Any

from replan_local.answer_table import AnswerTable, number, shown
from replan_local.commands import Chart
from replan_local.refusals import CannotAnswerError

_FEWEST, _MOST_LABELS, _MOST_SERIES, _LONGEST_LABEL = 2, 40, 6, 40
# Its author's notes would put today's date into the file, its script asks for another one.
_DEAD = re.compile(r"<!--.*?-->|<script\b.*?</script>", re.DOTALL)
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def table_to_draw(tables: Sequence[AnswerTable]) -> AnswerTable:
    """The last whole table with one column of labels and figures: later ones say more."""
    for table in reversed(tables):
        is_drawable = len(table.key_columns()) == 1 and table.figure_columns() and not table.is_cut
        if is_drawable and _FEWEST <= len(table.rows) <= _MOST_LABELS:
            return table
    raise CannotAnswerError(
        "There is no chart: no result has a whole table with one column of labels, "
        "a column of numbers and at least two rows."
    )


def draw(table: AnswerTable, shape: Chart) -> str:
    """Draw the figures of a table over its labels; the same table gives the same picture."""
    pygal = _pygal()
    (labels,) = table.key_columns()
    picture = (pygal.Line if shape == "line" else pygal.Bar)(
        title=_printable(table.title),
        js=[],
        no_prefix=True,
        width=840,
        height=460,
        explicit_size=True,
        include_x_axis=True,
        legend_at_bottom=True,
        truncate_legend=_LONGEST_LABEL,
        truncate_label=_LONGEST_LABEL,
        x_label_rotation=35,
        formatter="{:,.10g}".format,
    )
    picture.uuid = "chart"
    picture.x_labels = [_printable(shown(label)) for label in table.values(labels)]
    for name in table.figure_columns()[:_MOST_SERIES]:
        picture.add(_printable(name), [number(value) for value in table.values(name)])
    return _DEAD.sub("", picture.render(is_unicode=True)) + "\n"


def _pygal() -> Any:
    """Import pygal, without the import hook of an old kind that it leaves behind."""
    before = list(sys.meta_path)
    try:
        module = importlib.import_module("pygal")
    except ImportError as error:
        message = 'There is no chart: drawing needs pygal (pip install "replan[local]").'
        raise CannotAnswerError(message) from error
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if finder in before or hasattr(finder, "find_spec")
    ]
    return module


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub(" ", text)
