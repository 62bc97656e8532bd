"""Draw a chart as one SVG picture that stands alone: no script, no font, no other file."""

import importlib
import math
import re
import sys
from importlib.util import find_spec
from typing import Any

from replan_local.writing.chart_choice import ChartData

_COLOURS = ("#2563a8", "#d9822b", "#4b9b5a", "#a84a6b", "#7a6bb5", "#6b7280")
_FONT = "Helvetica, Arial, 'Noto Sans', 'Noto Sans CJK SC', sans-serif"
_LONG_LABEL, _MANY_LABELS, _MOST_MARKS = 14, 9, 12
_ROUND = 1000
_LONGEST_LABEL, _WIDTH, _HEIGHT = 40, 840, 460
# Its author's notes would put today's date into the file, its script asks for another one.
_DEAD = re.compile(r"<!--.*?-->|<script\b.*?</script>", re.DOTALL)
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def can_draw() -> bool:
    """Whether the library that draws is installed."""
    return find_spec("pygal") is not None


def draw(chart: ChartData) -> str:
    """Draw a chart; the same chart gives the same picture.

    Raises:
        ImportError: The extra `local` is not installed.
    """
    pygal: Any = _load("pygal")
    sideways = chart.shape == "bar" and _is_crowded(chart)
    kind = "Line" if chart.shape == "line" else "HorizontalBar" if sideways else "Bar"
    # A horizontal chart begins at its foot.
    back = -1 if sideways else 1
    picture = getattr(pygal, kind)(**_options(chart))
    picture.uuid = "chart"
    picture.x_labels = [_label(label) for label in chart.labels][::back]
    if chart.shape == "line":
        step = -(-len(chart.labels) // _MOST_MARKS)
        picture.x_labels_major = picture.x_labels[::step]
    for series in chart.series:
        picture.add(_label(series.name), list(series.values)[::back])
    return _DEAD.sub("", picture.render(is_unicode=True)) + "\n"


def _load(name: str) -> Any:
    """Import a part of pygal, without the import hook of an old kind that it leaves behind."""
    before = list(sys.meta_path)
    module = importlib.import_module(name)
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if finder in before or hasattr(finder, "find_spec")
    ]
    return module


def _options(chart: ChartData) -> dict[str, Any]:
    style: Any = _load("pygal.style")
    crowded = _is_crowded(chart)
    rows = len(chart.labels) * len(chart.series)
    high = chart.shape == "bar" and crowded
    return {
        "title": _label(chart.title, longest=80),
        "style": style.Style(
            background="white",
            plot_background="white",
            foreground="#333333",
            foreground_strong="#333333",
            foreground_subtle="#777777",
            guide_stroke_color="#dddddd",
            major_guide_stroke_color="#cccccc",
            opacity="1",
            opacity_hover=".8",
            colors=_COLOURS,
            font_family=_FONT,
            title_font_size=18,
            label_font_size=13,
            major_label_font_size=13,
            legend_font_size=13,
            value_font_size=12,
        ),
        "width": _WIDTH,
        "height": max(_HEIGHT, 120 + 20 * rows) if high else _HEIGHT,
        "explicit_size": True,
        "js": [],
        "no_prefix": True,
        "include_x_axis": True,
        "show_legend": len(chart.series) > 1,
        "legend_at_bottom": True,
        "legend_at_bottom_columns": len(chart.series),
        "x_label_rotation": 35 if chart.shape == "line" and crowded else 0,
        "show_minor_x_labels": chart.shape != "line",
        "truncate_legend": -1,
        "truncate_label": -1,
        "value_formatter": _number,
        "print_values": chart.shape == "bar" and rows <= _MOST_MARKS,
        "print_values_position": "top",
        "max_scale": 8,
        "show_dots": len(chart.labels) <= _LONGEST_LABEL,
        "stroke_style": {"width": 3},
        "margin": 20,
        "margin_right": 40,
    }


def _is_crowded(chart: ChartData) -> bool:
    longest = max(map(len, chart.labels))
    return longest > _LONG_LABEL or len(chart.labels) > _MANY_LABELS


def _label(text: str, longest: int = _LONGEST_LABEL) -> str:
    clean = _UNPRINTABLE.sub(" ", text)
    return clean if len(clean) <= longest else clean[: longest - 1] + "\u2026"


def _number(value: float | None) -> str:
    """Thousands apart, and as many decimals as say something."""
    if value is None:
        return ""
    if abs(value) < _ROUND:
        return f"{value:.4g}"
    # Halves away from zero, as people round.
    return f"{math.copysign(math.floor(abs(value) + 0.5), value):,.0f}"
