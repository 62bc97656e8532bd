"""A run as bars over time, as wide as the window: work, waiting, failures and pauses."""

from collections.abc import Callable
from datetime import datetime, timedelta

from rich.cells import cell_len

from replan.events.types import ToolCompleted
from replan.log.calls import calls_of
from replan.log.report import RunReport
from replan.log.step_reports import StepReport
from replan.views.cells import cut, one_line, padded, seconds
from replan.views.run.overview import mark_of, money

_LEAST_BAR, _LEAST_NAME = 20, 10
_SHORT = 1.0
_SIGNS = {
    "running": "=",
    "done": "=",
    "failed": "x",
    "waiting": "?",
    "unknown_outcome": "/",
    "cancelled": "/",
}
_PAUSED = {"waiting": "?", "killed": "/"}
_LEGEND = (
    "= at work   x failed   ? waits for a person   . waits",
    "/ cut off, or killed   : nobody at work",
)

Column = Callable[[datetime], int]


def timeline(report: RunReport, width: int) -> list[str]:
    """The lines of a timeline; none is wider than the width."""
    rows = [_row(step, report.currency) for step in report.steps]
    calls = report.calls
    took = max(map(cell_len, (seconds(report.seconds), *(row[1] for row in rows))))
    whole = ("all", seconds(report.seconds), money(calls, report.currency))
    cost = max(map(cell_len, (whole[2], *(row[2] for row in rows))))
    name = max(map(cell_len, ("host", *(row[0] for row in rows))))
    name = max(_LEAST_NAME, min(name, width - took - cost - 4 - max(_LEAST_BAR, width // 2)))
    bar = max(1, width - name - took - cost - 4)
    column = _columns(report, bar)

    def line(texts: tuple[str, str, str], drawn: str) -> str:
        first = padded(texts[0], name)
        return cut(f"{first} {texts[1]:>{took}} {texts[2]:>{cost}} |{drawn}".rstrip(), width)

    by_host = calls_of(report.host_calls)
    host = ("host", seconds(by_host.seconds), money(by_host, report.currency))
    return [
        line(("", "took", "cost"), _scale(report, bar)),
        line(whole, _run_bar(report, bar, column)),
        line(host, _host_bar(report, bar, column)),
        *(
            line(row, _step_bar(each, report, bar, column))
            for row, each in zip(rows, report.steps, strict=True)
        ),
        "",
        *(cut(each, width) for each in _LEGEND),
    ]


def _row(report: StepReport, currency: str) -> tuple[str, str, str]:
    took, step = report.seconds, report.step
    name = f"{mark_of(report)} {step.id}. {one_line(step.description)}"
    return name, "-" if took is None else seconds(took), money(report.calls, currency)


def _columns(report: RunReport, bar: int) -> Column:
    length = max(report.seconds, 0.001)

    def column(at: datetime) -> int:
        place = (at - report.began).total_seconds() / length * bar
        return min(bar - 1, max(0, int(place)))

    return column


def _scale(report: RunReport, bar: int) -> str:
    """The times above the bars, as many as there is room for."""
    text, parts = "", max(1, bar // 12)
    for part in range(parts):
        at = _tick(report.seconds * part / parts, report.seconds)
        text = f"{text.ljust(bar * part // parts)}{at}"
    return text


def _tick(at: float, whole: float) -> str:
    return f"{at * 1000:.0f} ms" if whole < _SHORT else seconds(at)


def _painted(bar: list[str], column: Column, began: datetime, ended: datetime, sign: str) -> None:
    """Paint a stretch of a bar, one column at least."""
    first, last = column(began), column(ended)
    for at in range(first, max(first + 1, last)):
        bar[at] = sign


def _pauses(bar: list[str], report: RunReport, column: Column, ended: datetime) -> None:
    for pause in report.pauses:
        end = min(pause.ended or report.ended, ended)
        if column(end) > column(pause.began):
            _painted(bar, column, pause.began, end, _PAUSED.get(pause.why, ":"))


def _run_bar(report: RunReport, width: int, column: Column) -> str:
    bar = ["="] * width
    _pauses(bar, report, column, report.ended)
    return "".join(bar)


def _host_bar(report: RunReport, width: int, column: Column) -> str:
    bar = [" "] * width
    for event in report.host_calls:
        if event.at is not None:
            is_failed = not isinstance(event, ToolCompleted) and event.error
            began = event.at - timedelta(seconds=event.seconds)
            _painted(bar, column, began, event.at, "x" if is_failed else "=")
    return "".join(bar).rstrip()


def _step_bar(step: StepReport, report: RunReport, width: int, column: Column) -> str:
    bar = [" "] * width
    tried, is_settled = step.attempts, not step.status.is_open
    last = max(each.until for each in tried) if tried and is_settled else report.ended
    if tried or not is_settled:
        _painted(bar, column, report.planned_at(step.step.id), last, ".")
        _pauses(bar, report, column, last)
    # Where one specialist waits and another one works, the work is seen.
    for each in sorted(tried, key=lambda each: each.outcome != "waiting"):
        _painted(bar, column, each.entry.started_at, each.until, _SIGNS[each.outcome])
    return "".join(bar).rstrip()
