"""Draw the first table that can be shown as one SVG picture that is alone."""

import importlib
import re
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from replan_local.answer_table import AnswerTable, number, shown
from replan_local.commands import Chart

NOTHING_TO_DRAW = (
    "There is no chart: no result has a whole table with one column of labels, "
    "a column of numbers and at least two rows."
)
CANNOT_DRAW = 'There is no chart: drawing needs pygal (pip install "replan[local]").'

_FEWEST, _MOST_LABELS, _MOST_SERIES, _LONGEST_LABEL = 2, 40, 6, 40
# Its author's notes would put today's date into the file, its script asks for another one.
_DEAD = re.compile(r"<!--.*?-->|<script\b.*?</script>", re.DOTALL)
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def can_draw() -> bool:
    return find_spec("pygal") is not None


def table_to_draw(tables: Iterable[AnswerTable]) -> AnswerTable | None:
    """The last whole table with one column of labels and figures: later ones say more."""
    fitting = [
        table
        for table in tables
        if len(table.key_places()) == 1
        and table.figure_columns()
        and _FEWEST <= len(table.cells) <= _MOST_LABELS
        and not table.is_cut
    ]
    return fitting[-1] if fitting else None


def draw(table: AnswerTable, shape: Chart) -> str:
    """Draw the figures of a table over its labels; the same table gives the same picture."""
    pygal = _pygal()
    (keys,) = table.key_places()
    picture = (pygal.Line if shape == "line" else pygal.Bar)(
        title=_label(table.title),
        js=[],
        no_prefix=True,
        width=840,
        height=460,
        explicit_size=True,
        include_x_axis=True,
        legend_at_bottom=True,
        truncate_legend=-1,
        truncate_label=-1,
        x_label_rotation=35,
        value_formatter=_number,
    )
    picture.uuid = "chart"
    picture.x_labels = [_label(shown(row[keys])) for row in table.cells]
    for name in table.figure_columns()[:_MOST_SERIES]:
        at = table.columns.index(name)
        picture.add(_label(name), [number(row[at]) for row in table.cells])
    return _DEAD.sub("", picture.render(is_unicode=True)) + "\n"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.10g}"


def _pygal() -> Any:
    """Import pygal, without the import hook of an old kind that it leaves behind."""
    before = list(sys.meta_path)
    module = importlib.import_module("pygal")
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if finder in before or hasattr(finder, "find_spec")
    ]
    return module


def _label(text: str) -> str:
    clean = _UNPRINTABLE.sub(" ", text)
    return clean if len(clean) <= _LONGEST_LABEL else clean[: _LONGEST_LABEL - 1] + "\u2026"
