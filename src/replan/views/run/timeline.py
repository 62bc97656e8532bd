"""A run as bars over time, as wide as the window: work, waiting, failures and pauses."""

from rich.cells import cell_len

from replan.log.report import RunReport
from replan.views.cells import cut, one_line, padded, seconds
from replan.views.run.bars import ALL, Row, Timeline, timeline_of
from replan.views.run.overview import mark_of, money

_LEAST_BAR, _LEAST_NAME = 20, 10
_SHORT = 1.0
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
        (_name(row, marks), _took(row), money(row.calls, report.currency)) for row in drawn.rows
    ]
    names, took, costs = (max(map(cell_len, texts)) for texts in zip(*rows, strict=True))
    costs = max(costs, len("cost"))
    name = max(_LEAST_NAME, min(names, width - took - costs - 4 - max(_LEAST_BAR, width // 2)))
    bar = max(1, width - name - took - costs - 4)

    def line(texts: tuple[str, str, str], stretch: str) -> str:
        first = padded(texts[0], name)
        return cut(f"{first} {texts[1]:>{took}} {texts[2]:>{costs}} |{stretch}".rstrip(), width)

    return [
        line(("", "took", "cost"), _scale(report, bar)),
        *(
            line(texts, _painted(row, drawn, bar))
            for texts, row in zip(rows, drawn.rows, strict=True)
        ),
        "",
        *(cut(legend, width) for legend in _LEGEND),
    ]


def _name(row: Row, marks: dict[int, str]) -> str:
    return f"{marks[row.step]} {row.step}. {one_line(row.name)}" if row.step else row.name


def _took(row: Row) -> str:
    return "-" if row.seconds is None else seconds(row.seconds)


def _scale(report: RunReport, bar: int) -> str:
    """The times above the bars, as many as there is room for."""
    text, parts = "", max(1, bar // 12)
    for part in range(parts):
        at = _tick(report.seconds * part / parts, report.seconds)
        text = f"{text.ljust(bar * part // parts)}{at}"
    return text


def _tick(at: float, whole: float) -> str:
    return f"{at * 1000:.0f} ms" if whole < _SHORT else seconds(at)


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
    return "".join(signs).rstrip()
