"""Draw the course of a run into a window: a pure function of course, size and time."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from replan.log.statuses import WAITING, WORDS
from replan.plan.model import StepStatus
from replan.views.cells import cut, folded, padded, seconds, steady
from replan.views.live.course import Course, Row, waits_for

_FRAMES_PER_SECOND = 8
_WITH_NAMES, _WITH_TIMES = 44, 26
_WIDEST_NAME = 18
_TIME = 7
_LEAST_DESCRIPTION = 12


@dataclass(frozen=True, kw_only=True)
class Signs:
    """The signs before the steps."""

    marks: dict[StepStatus, str]
    spinner: str


_MARKED = (StepStatus.PENDING, StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.SKIPPED)
UNICODE = Signs(marks=dict(zip(_MARKED, "·✓✗–", strict=True)), spinner="⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
ASCII = Signs(marks=dict(zip(_MARKED, ".x!-", strict=True)), spinner="|/-\\")
_STYLES = {
    StepStatus.PENDING: "dim",
    StepStatus.EXECUTING: "cyan",
    StepStatus.COMPLETED: "green",
    StepStatus.FAILED: "red",
    StepStatus.SKIPPED: "dim",
}

_NOTED = (StepStatus.EXECUTING, StepStatus.FAILED)
"""The steps that get more lines if there is little room."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Where a course is drawn."""

    width: int  # cells of a line
    height: int
    signs: Signs = UNICODE  # the signs that it can show
    verbose: bool = False  # whether to show what specialists say


def frame(course: Course, window: Window, now: float) -> list[Text]:
    """Draw a run that continues; never more lines than the window has, and none wider."""
    last = _status_line(course, window, now)
    if not course.rows:
        return [*_tail(course.answer or course.said, window, window.height - 2), last]
    head = _title(course, window)
    room = window.height - len(head) - 1
    # While steps run they come first; then the answer does.
    share, least = (room // 3, 4) if course.count(StepStatus.EXECUTING) else (room * 2 // 3, 1)
    tail = _tail(course.answer, window, min(max(3, share), room - least))
    body = _body(course, window, now, room - len(tail))
    return [*head, *body, last, *tail][: window.height]


def whole_plan(course: Course, window: Window, now: float) -> list[Text]:
    """Draw all steps of a run that is over, however many lines they take."""
    lines = _title(course, window)
    indent = " " * (_id_width(course) + 3)
    for row in course.rows.values():
        lines.append(_row_line(row, course, window, now))
        note = folded(steady(row.note), max(1, window.width - len(indent))) if row.note else ()
        lines += [Text(f"{indent}{line}", _note_style(row)) for line in note]
    return lines


def _title(course: Course, window: Window) -> list[Text]:
    return [Text(cut(steady(course.title), window.width), "bold")] if course.title else []


def _body(course: Course, window: Window, now: float, room: int) -> list[Text]:
    """The steps with their notes; of too many, those that matter now, and how many are left out."""
    rows = list(course.rows.values())

    def heights(noted: Container[StepStatus]) -> dict[int, int]:
        return {row.id: 1 + len(_notes(row, course, window, noted)) for row in rows}

    noted, shown = tuple(StepStatus), rows
    if sum(heights(noted).values()) > room:
        noted = _NOTED
    if sum(heights(noted).values()) > room:
        running = [row.id for row in rows if row.status is StepStatus.EXECUTING]
        # All that runs is seen before anything is said about it.
        noted = noted if sum(heights(noted)[each] for each in running) < room else ()
        shown = _chosen(rows, heights(noted), room - 1)
    lines = [line for row in shown for line in _lines(row, course, window, now, noted)]
    if len(shown) == len(rows):
        return lines[: max(0, room)]
    hidden = [row for row in rows if row not in shown]
    return [*lines[: max(0, room - 1)], _counts(hidden, window)][: max(0, room)]


def _chosen(rows: Sequence[Row], height: Mapping[int, int], room: int) -> list[Row]:
    """Running steps first, then the next ones, then failures, then the newest ends."""
    pending = [row for row in rows if row.status is StepStatus.PENDING]
    running = [row for row in rows if row.status is StepStatus.EXECUTING]
    failed = [row for row in rows if row.status is StepStatus.FAILED]
    ended = [row for row in rows if row.status in (StepStatus.COMPLETED, StepStatus.SKIPPED)]
    chosen: set[int] = set()
    for row in (*running, *pending[:3], *reversed(failed), *pending[3:], *reversed(ended)):
        if height[row.id] <= room:
            room -= height[row.id]
            chosen.add(row.id)
    return [row for row in rows if row.id in chosen]


def _counts(hidden: Iterable[Row], window: Window) -> Text:
    statuses = [row.status for row in hidden]
    ended = (StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.SKIPPED)
    order = (*ended, StepStatus.EXECUTING, StepStatus.PENDING)
    parts = [f"{n} {WORDS[status]}" for status in order if (n := statuses.count(status))]
    return Text(cut(f"… and {', '.join(parts)}", window.width), "dim")


def _lines(
    row: Row, course: Course, window: Window, now: float, noted: Container[StepStatus]
) -> list[Text]:
    return [_row_line(row, course, window, now), *_notes(row, course, window, noted)]


def _row_line(row: Row, course: Course, window: Window, now: float) -> Text:
    style, width = _STYLES[row.status], window.width
    mark = window.signs.marks.get(row.status) or _spin(window, now)
    text = Text(f"{mark} ", style)
    text.append(f"{row.id:>{_id_width(course)}} ", "dim")
    names, before = _names_width(course, window), text.cell_len
    times = _TIME + 1 if width >= _WITH_TIMES else 0
    space = width - text.cell_len - times - (names + 1 if names else 0)
    dim = "dim" if row.status in (StepStatus.SKIPPED, StepStatus.COMPLETED) else ""
    waits = waits_for(row, course) if names else ""
    least = max(0, space - cell_len(waits) - 2) if waits else 0
    if waits and least >= _LEAST_DESCRIPTION:
        text.append(f"{cut(steady(row.description), least)}  ", dim)
        text.append(padded(waits, space - (text.cell_len - before)), "dim")
    else:
        text.append(padded(steady(row.description), max(0, space)), dim)
    if names:
        text.append(f" {padded(steady(', '.join(row.specialists)), names)}", "dim")
    if times:
        text.append(f"{_time_of(row, now):>{times}}", style)
    text.rstrip()
    text.truncate(width)
    return text


def _notes(row: Row, course: Course, window: Window, noted: Container[StepStatus]) -> list[Text]:
    if row.status not in noted:
        return []
    notes = [row.note] if row.note else []
    if row.calls:
        *_, newest = row.calls.values()
        notes.append(f"{len(row.calls)} at once: {newest}" if len(row.calls) > 1 else newest)
    if window.verbose and row.busy and row.said.strip():
        notes.append(row.said.strip().rsplit("\n", 1)[-1])
    indent = " " * (_id_width(course) + 3)
    return [Text(cut(indent + steady(note), window.width), _note_style(row)) for note in notes]


def _note_style(row: Row) -> str:
    return "red" if row.status is StepStatus.FAILED else "dim"


def _status_line(course: Course, window: Window, now: float) -> Text:
    total, done = len(course.rows), course.count(StepStatus.COMPLETED)
    counts = {WORDS[each]: course.count(each) for each in (StepStatus.FAILED, StepStatus.SKIPPED)}
    counts[WAITING] = sum(row.asks for row in course.rows.values())
    counts[WORDS[StepStatus.EXECUTING]] = running = course.count(StepStatus.EXECUTING)
    parts = [f"{done} of {total} {WORDS[StepStatus.COMPLETED]}"] if total else []
    parts += [f"{number} {word}" for word, number in counts.items() if number]
    parts += [] if running or counts[WAITING] else [course.activity]
    line = f"{_spin(window, now)} {seconds(now - course.started)}: {', '.join(parts)}"
    return Text(cut(line, window.width), "cyan")


def _tail(answer: str, window: Window, room: int) -> list[Text]:
    """The newest lines of the answer, under an empty line."""
    if not answer.strip() or room < 2:  # noqa: PLR2004 - the empty line and one of text
        return []
    newest = answer[-window.width * room * 2 :]
    lines = list(folded("\n".join(map(_plain, newest.split("\n"))), window.width))
    return [Text(""), *(Text(cut(line, window.width)) for line in lines[1 - room :])]


def _plain(line: str) -> str:
    lead = line[: len(line) - len(line.lstrip())]
    return lead + steady(line)


def _spin(window: Window, now: float) -> str:
    spinner = window.signs.spinner
    return spinner[int(now * _FRAMES_PER_SECOND) % len(spinner)]


def _time_of(row: Row, now: float) -> str:
    if row.busy and row.started is not None:
        return seconds(max(0.0, now - row.started))
    return "" if row.seconds is None else seconds(row.seconds)


def _id_width(course: Course) -> int:
    return len(str(max(course.rows, default=1)))


def _names_width(course: Course, window: Window) -> int:
    if window.width < _WITH_NAMES:
        return 0
    widest = max(cell_len(steady(", ".join(row.specialists))) for row in course.rows.values())
    return min(widest, _WIDEST_NAME, window.width // 4)
