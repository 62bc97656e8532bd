"""A run as bars over time: what worked, waited, failed, and when nothing was at work."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.cells import cell_len

from replan.log.calls import Calls, calls_of
from replan.log.events.types import ToolCompleted
from replan.log.fold import Pause
from replan.log.report import RunReport
from replan.log.step_reports import AttemptReport, StepReport
from replan.plan.order import critical_path
from replan.views.cells import columns, cut, one_line, seconds
from replan.views.run.overview import mark_of, money

_MOST_TICKS = 8
_LEAST_WIDTH = 0.2  # percent, so that the eye finds the shortest bar
_LENGTHS = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 21600, 86400, 604800)
_PAUSES = {
    "waiting": ("waiting", "waited for a person"),
    "killed": ("killed", "killed: nobody knows how long it worked"),
}
_IDLE = ("idle", "nobody worked on it")
_KINDS = {"cancelled": "cut-off", "unknown_outcome": "killed"}
ALL = "all"
"""The name of the row of the whole run."""

LEGEND = {
    "planned": "waits for steps, or its turn",
    "running": "at work",
    "done": "done",
    "failed": "failed",
    "waiting": "waits for a person",
    "cut-off": "stopped in the middle of its work",
    "killed": "killed, or timed out: outcome unknown",
    "idle": "nobody at work",
}
"""What the patterns of bars mean."""

_HOST_BEGINNINGS = ("thinking_started", "specialist_completed", "input_requested", "run_resumed")
_HOST_ENDS = {
    "plan_created": "the host plans",
    "feedback_generated": "the host judges",
    "task_completed": "the host answers",
}


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A stretch of a row, in percent of the time that is shown."""

    left: float
    width: float
    kind: str  # one of the legend
    text: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """What is drawn of a step, of the host or of the whole run."""

    name: str
    step: int = 0  # 0 for the host and the run
    seconds: float | None = None
    calls: Calls
    bars: tuple[Bar, ...]
    removed: str = ""  # which revision took the step out of the plan
    is_critical: bool = False  # whether it is of the longest chain: if shorter, the run was, too


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Rows of one run on one scale."""

    whole: float  # how long the run took
    ticks: tuple[tuple[float, float], ...]  # percent, and seconds from the beginning
    pauses: tuple[Bar, ...]  # they go through all rows
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class _Scale:
    began: datetime
    length: float

    def bar(self, began: datetime, ended: datetime, kind: str, text: str) -> Iterator[Bar]:
        """Draw the part of a period of time that is within the run."""
        left, right = self._fraction_at(began), self._fraction_at(ended)
        if right >= 0 and left <= 100:  # noqa: PLR2004 - percent
            left, right = max(0.0, left), min(100.0, right)
            width = max(_LEAST_WIDTH, right - left)
            left = min(left, 100 - width)
            yield Bar(left=round(left, 3), width=round(width, 3), kind=kind, text=text)

    def _fraction_at(self, at: datetime) -> float:
        return (at - self.began).total_seconds() / self.length * 100


def timeline_of(report: RunReport) -> Timeline:
    """Draw a run."""
    scale = _Scale(report.began, max(report.seconds, 0.001))
    pauses = [bar for pause in report.pauses for bar in _pause(pause, report, scale)]
    durations = {step.step.id: step.seconds or 0.0 for step in report.planned}
    critical = critical_path(report.plan, durations) if report.plan else ()
    return Timeline(
        whole=report.seconds,
        ticks=tuple(_ticks(scale.length)),
        pauses=tuple(pauses),
        rows=(
            Row(
                name=ALL,
                seconds=report.seconds,
                calls=report.calls,
                bars=tuple(_at_work(report, scale)),
            ),
            _host(report, scale),
            *(_step(step, report, scale, critical) for step in report.steps),
        ),
    )


def _ticks(length: float) -> Iterator[tuple[float, float]]:
    """Round times, as many as can be read."""
    apart = next((each for each in _LENGTHS if length / each <= _MOST_TICKS), length / _MOST_TICKS)
    number = 0
    while (at := number * apart) <= length:
        yield round(at / length * 100, 3), round(at, 3)
        number += 1


def tick_text(at: float, whole: float) -> str:
    """A time on the scale of a run."""
    return f"{at * 1000:.0f} ms" if whole < 1 else seconds(at)


def _at_work(report: RunReport, scale: _Scale) -> Iterator[Bar]:
    """The run between its pauses."""
    since = report.began
    for pause in report.pauses:
        if pause.began > since:
            yield from scale.bar(since, pause.began, "running", "the run")
        since = max(since, pause.ended or report.ended)
    if since < report.ended or not report.pauses:
        yield from scale.bar(since, report.ended, "running", "the run")


def _pause(pause: Pause, report: RunReport, scale: _Scale) -> Iterator[Bar]:
    kind, why = _PAUSES.get(pause.why, _IDLE)
    ended = pause.ended or report.ended
    yield from scale.bar(pause.began, pause.answered_at or ended, kind, why)
    if pause.answered_at is not None:
        yield from scale.bar(pause.answered_at, ended, *_IDLE)


def _host(report: RunReport, scale: _Scale) -> Row:
    host = calls_of(report.host_calls)
    bars = [
        bar
        for began, ended, what in _host_at_work(report)
        for bar in scale.bar(began, ended, "running", what)
    ]
    for event in report.host_calls:
        if event.at is not None:
            kind = "failed" if not isinstance(event, ToolCompleted) and event.error else "done"
            text = f"{event.node}: {event.seconds:.2f} s"
            bars += scale.bar(event.at - timedelta(seconds=event.seconds), event.at, kind, text)
    return Row(name="host", seconds=host.seconds, calls=host, bars=tuple(bars))


def _host_at_work(report: RunReport) -> Iterator[tuple[datetime, datetime, str]]:
    """When the host was at work, in addition to its calls: from the end of what it works on."""
    since: datetime | None = None
    for event in report.events:
        if event.type in _HOST_ENDS and since is not None and event.at is not None:
            yield since, event.at, _HOST_ENDS[event.type]
        # What follows a judgement is an answer, or a revision.
        if event.type in (*_HOST_BEGINNINGS, *_HOST_ENDS):
            since = None if event.type == "plan_created" else event.at


def _step(step: StepReport, report: RunReport, scale: _Scale, critical: Collection[int]) -> Row:
    tried, bars = step.attempts, list[Bar]()
    is_open = step.status.is_open and not report.is_over
    if tried or is_open:
        last = report.ended if is_open else max(attempt.until for attempt in tried)
        planned = min([report.planned_at(step.step.id), *(e.entry.started_at for e in tried)])
        bars += scale.bar(planned, last, "planned", "waits")
    # Where one specialist waits and another one works, the work is seen.
    for attempt in sorted(tried, key=lambda attempt: attempt.outcome != "waiting"):
        bars += _attempt(attempt, scale)
    return Row(
        name=step.step.description,
        step=step.step.id,
        seconds=step.seconds,
        calls=step.calls,
        removed=step.removed,
        bars=tuple(bars),
        is_critical=len(critical) > 1 and step.step.id in critical and bool(step.seconds),
    )


def _attempt(attempt: AttemptReport, scale: _Scale) -> Iterator[Bar]:
    entry, began = attempt.entry, attempt.entry.started_at
    who = f"{entry.specialist}, attempt {entry.number}"
    kind, text = _KINDS.get(attempt.outcome, attempt.outcome), attempt.outcome_text
    text = LEGEND["killed"] if kind == "killed" else text
    if attempt.asked_at is not None:
        before = "killed" if attempt.is_doubted else "done"
        work = LEGEND["killed"] if attempt.is_doubted else "at work"
        yield from scale.bar(began, attempt.asked_at, before, f"{who}: {work}, then asked")
        kind, began = "waiting", attempt.asked_at
        text = LEGEND["waiting"] if attempt.is_doubted else text
    lasted = f", {(attempt.until - began).total_seconds():.2f} s"
    lasted = "" if attempt.seconds is None else lasted
    yield from scale.bar(began, attempt.until, kind, f"{who}: {text}{lasted}")


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
