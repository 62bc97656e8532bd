"""A run as bars over time, as wide as the window: work, waiting, failures and pauses."""

from rich.cells import cell_len

from replan.log.report import RunReport
from replan.views.cells import columns, cut, one_line, seconds
from replan.views.run.bars import ALL, Row, Timeline, tick_text, timeline_of
from replan.views.run.overview import mark_of, money

_LEAST_BAR, _LEAST_NAME, _GAPS = 20, 10, 7
_SIGNS = {
    "planned": ".",
    "running": "=",
    "done": "=",
    "failed": "x",
    "waiting": "?",
    "cut-off": "/",
    "killed": "/",
    "idle": ":",
}
_LEGEND = (
    "= at work   x failed   ? waits for a person   . waits",
    "/ cut off, or killed   : nobody at work",
)


def timeline(report: RunReport, width: int) -> list[str]:
    """The lines of a timeline; none is wider than the width."""
    drawn = timeline_of(report)
    marks = {step.step.id: mark_of(step) for step in report.steps}
    rows = [
        (
            f"{marks[row.step]} {row.step}. {one_line(row.name)}" if row.step else row.name,
            "-" if row.seconds is None else seconds(row.seconds),
            money(row.calls, report.currency),
        )
        for row in drawn.rows
    ]
    rows = [("", "took", "cost"), *rows]
    names, *others = (max(map(cell_len, cells)) for cells in zip(*rows, strict=True))
    room = width - sum(others) - _GAPS
    name = max(_LEAST_NAME, min(names, room - max(_LEAST_BAR, width // 2)))
    bar = max(1, room - min(name, names))
    bars = [f"|{_scale(report, bar)}", *(f"|{_painted(row, drawn, bar)}" for row in drawn.rows)]
    names_cut = (cut(row[0], name) for row in rows)
    table = zip(names_cut, *[*zip(*rows, strict=True)][1:], bars, strict=True)
    return [
        *columns(table, width, right=(1, 2)),
        "",
        *(cut(legend, width) for legend in _LEGEND),
    ]


def _scale(report: RunReport, bar: int) -> str:
    """The times above the bars, as many as there is room for."""
    text, parts = "", max(1, bar // 12)
    for part in range(parts):
        at = tick_text(report.seconds * part / parts, report.seconds)
        text = f"{text.ljust(bar * part // parts)}{at}"
    return text


def _painted(row: Row, drawn: Timeline, width: int) -> str:
    """The bars of a row in signs; work is seen over pauses, one column of it at least."""
    is_all = row.name == ALL
    signs = ["=" if is_all else " "] * width
    waits = [bar for bar in row.bars if bar.kind == "planned"]
    rests = drawn.pauses if waits or is_all else ()
    last = max((bar.left + bar.width for bar in waits), default=100.0)
    work = [bar for bar in row.bars if bar.kind != "planned" and not is_all]
    for bar in (*waits, *rests, *work):
        first = min(width - 1, int(bar.left * width / 100))
        end = int(min(last, bar.left + bar.width) * width / 100)
        for at in range(first, end if bar in rests else max(first + 1, end)):
            signs[at] = _SIGNS[bar.kind]
    return "".join(signs)
