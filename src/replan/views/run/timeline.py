"""A run as bars over time, as wide as the window: work, waiting, failures and pauses."""

from collections.abc import Callable
from datetime import datetime, timedelta

from rich.cells import cell_len

from replan.runs.course.story import StepStory, Story
from replan.runs.course.waits import spans_of
from replan.runs.log.call_counts import calls_of
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


def timeline(story: Story, width: int) -> list[str]:
    """The lines of a timeline; none is wider than the width."""
    rows = [_row(step) for step in story.steps]
    calls = story.calls
    took = max(map(cell_len, (seconds(story.seconds), *(row[1] for row in rows))))
    cost = max(map(cell_len, (money(calls), *(row[2] for row in rows))))
    name = max(map(cell_len, ("host", *(row[0] for row in rows))))
    name = max(_LEAST_NAME, min(name, width - took - cost - 4 - max(_LEAST_BAR, width // 2)))
    bar = max(1, width - name - took - cost - 4)
    column = _columns(story, bar)

    def line(texts: tuple[str, str, str], drawn: str) -> str:
        first = padded(texts[0], name)
        return cut(f"{first} {texts[1]:>{took}} {texts[2]:>{cost}} |{drawn}".rstrip(), width)

    host = calls_of(story.host_calls)
    whole = ("all", seconds(story.seconds), money(calls))
    return [
        line(("", "took", "cost"), _scale(story, bar)),
        line(whole, _run_bar(story, bar, column)),
        line(("host", seconds(host.seconds), money(host)), _host_bar(story, bar, column)),
        *(
            line(row, _step_bar(each, story, bar, column))
            for row, each in zip(rows, story.steps, strict=True)
        ),
        "",
        *(cut(each, width) for each in _LEGEND),
    ]


def _row(story: StepStory) -> tuple[str, str, str]:
    took, step = story.seconds, story.step
    name = f"{mark_of(story)} {step.id}. {one_line(step.description)}"
    return name, "-" if took is None else seconds(took), money(story.calls)


def _columns(story: Story, bar: int) -> Column:
    length = max(story.seconds, 0.001)

    def column(at: datetime) -> int:
        place = (at - story.began).total_seconds() / length * bar
        return min(bar - 1, max(0, int(place)))

    return column


def _scale(story: Story, bar: int) -> str:
    """The times above the bars, as many as there is room for."""
    text, parts = "", max(1, bar // 12)
    for part in range(parts):
        at = _tick(story.seconds * part / parts, story.seconds)
        text = f"{text.ljust(bar * part // parts)}{at}"
    return text


def _tick(at: float, whole: float) -> str:
    return f"{at * 1000:.0f} ms" if whole < _SHORT else seconds(at)


def _painted(bar: list[str], column: Column, began: datetime, ended: datetime, sign: str) -> None:
    """Paint a stretch of a bar, one column at least."""
    first, last = column(began), column(ended)
    for at in range(first, max(first + 1, last)):
        bar[at] = sign


def _pauses(bar: list[str], story: Story, column: Column, ended: datetime) -> None:
    for pause in story.pauses:
        end = min(pause.ended or story.ended, ended)
        if column(end) > column(pause.began):
            _painted(bar, column, pause.began, end, _PAUSED.get(pause.why, ":"))


def _run_bar(story: Story, width: int, column: Column) -> str:
    bar = ["="] * width
    _pauses(bar, story, column, story.ended)
    return "".join(bar)


def _host_bar(story: Story, width: int, column: Column) -> str:
    bar = [" "] * width
    for event in story.host_calls:
        took = event.details.get("seconds") or 0.0
        if event.at is not None and isinstance(took, float | int):
            sign = "x" if event.details.get("error") else "="
            _painted(bar, column, event.at - timedelta(seconds=took), event.at, sign)
    return "".join(bar).rstrip()


def _step_bar(step: StepStory, story: Story, width: int, column: Column) -> str:
    bar = [" "] * width
    spans = spans_of(step, story)
    is_settled = not step.status.is_open
    last = max(each.ended for each in spans) if spans and is_settled else story.ended
    if spans or not is_settled:
        _painted(bar, column, story.planned_at(step.step.id), last, ".")
        _pauses(bar, story, column, last)
    # Where one specialist waits and another one works, the work is seen.
    for each in sorted(spans, key=lambda each: each.outcome != "waiting"):
        _painted(bar, column, each.began, each.ended, _SIGNS[each.outcome])
    return "".join(bar).rstrip()
