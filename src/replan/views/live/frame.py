"""Draw a run into a window: a pure function of its report, size and time."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from replan.log.events import types as events
from replan.log.report import RunReport
from replan.log.step_reports import WAITING, WORDS, StepReport, awaited
from replan.plan.model import StepStatus
from replan.state.person.answers import question_shown
from replan.state.questions import PLAN
from replan.state.results import TaskComplexity
from replan.views.cells import cut, folded, padded, seconds, steady
from replan.views.event_lines import call_begun_text, short_call_text

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

_LONGEST = 2_000  # characters of a text of which a line is drawn


@dataclass(frozen=True, kw_only=True)
class Window:
    """Where a run is drawn."""

    width: int  # cells of a line
    height: int
    signs: Signs = UNICODE  # the signs that it can show
    verbose: bool = False  # whether to show what specialists say


def frame(report: RunReport, window: Window, now: datetime) -> list[Text]:
    """Draw a run that continues; never more lines than the window has, and none wider."""
    last = _status_line(report, window, now)
    if not report.planned:
        said = "".join(text for (step, _), text in report.drafts.items() if not step)
        return [*_tail(report.answer or said, window, window.height - 2), last]
    head = _title(report, window)
    room = window.height - len(head) - 1
    # While steps run they come first; then the answer does.
    share, least = (room // 3, 4) if report.count(StepStatus.EXECUTING) else (room * 2 // 3, 1)
    tail = _tail(report.answer, window, min(max(3, share), room - least))
    body = _body(report, window, now, room - len(tail))
    return [*head, *body, last, *tail][: window.height]


def whole_plan(report: RunReport, window: Window, now: datetime) -> list[Text]:
    """Draw all steps of a run that is over, however many lines they take."""
    lines = _title(report, window)
    indent = " " * (_id_width(report) + 3)
    for row in report.planned:
        lines.append(_row_line(row, report, window, now))
        note = folded(steady(_note(row, report)), max(1, window.width - len(indent)))
        lines += [Text(f"{indent}{line}", _note_style(row)) for line in note if line]
    return lines


def _title(report: RunReport, window: Window) -> list[Text]:
    title = report.plan.title[:_LONGEST] if report.plan else ""
    return [Text(cut(steady(title), window.width), "bold")] if title else []


def _body(report: RunReport, window: Window, now: datetime, room: int) -> list[Text]:
    """The steps with their notes; of too many, those that matter now, and how many are left out."""
    rows = report.planned

    def heights(noted: Container[StepStatus]) -> dict[int, int]:
        return {row.step.id: 1 + len(_notes(row, report, window, noted)) for row in rows}

    noted, shown = tuple(StepStatus), rows
    if sum(heights(noted).values()) > room:
        noted = _NOTED
    if sum(heights(noted).values()) > room:
        running = [row.step.id for row in rows if row.status is StepStatus.EXECUTING]
        # All that runs is seen before anything is said about it.
        noted = noted if sum(heights(noted)[step_id] for step_id in running) < room else ()
        shown = _chosen(rows, heights(noted), room - 1)
    lines = [line for row in shown for line in _lines(row, report, window, now, noted)]
    if len(shown) == len(rows):
        return lines[: max(0, room)]
    seen = {row.step.id for row in shown}
    hidden = [row for row in rows if row.step.id not in seen]
    return [*lines[: max(0, room - 1)], _counts(hidden, window)][: max(0, room)]


def _chosen(rows: Sequence[StepReport], height: Mapping[int, int], room: int) -> list[StepReport]:
    """Running steps first, then the next ones, then failures, then the newest ends."""
    pending = [row for row in rows if row.status is StepStatus.PENDING]
    running = [row for row in rows if row.status is StepStatus.EXECUTING]
    failed = [row for row in rows if row.status is StepStatus.FAILED]
    ended = [row for row in rows if row.status in (StepStatus.COMPLETED, StepStatus.SKIPPED)]
    chosen: set[int] = set()
    for row in (*running, *pending[:3], *reversed(failed), *pending[3:], *reversed(ended)):
        if height[row.step.id] <= room:
            room -= height[row.step.id]
            chosen.add(row.step.id)
    return [row for row in rows if row.step.id in chosen]


def _counts(hidden: Iterable[StepReport], window: Window) -> Text:
    statuses = [row.status for row in hidden]
    ended = (StepStatus.COMPLETED, StepStatus.FAILED, StepStatus.SKIPPED)
    order = (*ended, StepStatus.EXECUTING, StepStatus.PENDING)
    parts = [f"{n} {WORDS[status]}" for status in order if (n := statuses.count(status))]
    return Text(cut(f"… and {', '.join(parts)}", window.width), "dim")


def _lines(
    row: StepReport, report: RunReport, window: Window, now: datetime, noted: Container[StepStatus]
) -> list[Text]:
    return [_row_line(row, report, window, now), *_notes(row, report, window, noted)]


def _row_line(row: StepReport, report: RunReport, window: Window, now: datetime) -> Text:
    style, width = _STYLES[row.status], window.width
    mark = window.signs.marks.get(row.status) or _spin(window, now)
    text = Text(f"{mark} ", style)
    text.append(f"{row.step.id:>{_id_width(report)}} ", "dim")
    names, before = _names_width(report, window), text.cell_len
    times = _TIME + 1 if width >= _WITH_TIMES else 0
    space = width - text.cell_len - times - (names + 1 if names else 0)
    dim = "dim" if row.status in (StepStatus.SKIPPED, StepStatus.COMPLETED) else ""
    waits = _waits(row, report) if names else ""
    description = steady(row.step.description[:_LONGEST])
    least = max(0, space - cell_len(waits) - 2) if waits else 0
    if waits and least >= _LEAST_DESCRIPTION:
        text.append(f"{cut(description, least)}  ", dim)
        text.append(padded(waits, space - (text.cell_len - before)), "dim")
    else:
        text.append(padded(description, max(0, space)), dim)
    if names:
        text.append(f" {padded(_names(row), names)}", "dim")
    if times:
        text.append(f"{_time_of(row, report, now):>{times}}", style)
    text.rstrip()
    text.truncate(width)
    return text


def _notes(
    row: StepReport, report: RunReport, window: Window, noted: Container[StepStatus]
) -> list[Text]:
    if row.status not in noted:
        return []
    running = [attempt for attempt in row.attempts if attempt.running_at]
    calls = [call for attempt in running for call in attempt.calls]
    begun = [call for call in calls if isinstance(call, events.ModelInvoked | events.ToolInvoked)]
    several = f"{len(begun)} at once: " if len(begun) > 1 else ""
    doing = [f"{several}{call_begun_text(call)}" for call in begun[-1:]]
    drafts = [text for (step, _), text in report.drafts.items() if step == row.step.id]
    said = [text.strip() for text in drafts[-1:] if window.verbose and running]
    notes = [_note(row, report), *doing, *(text.rsplit("\n", 1)[-1] for text in said)]
    indent = " " * (_id_width(report) + 3)
    return [
        Text(cut(indent + steady(note), window.width), _note_style(row)) for note in notes if note
    ]


def _note_style(row: StepReport) -> str:
    return "red" if row.status is StepStatus.FAILED else "dim"


def _status_line(report: RunReport, window: Window, now: datetime) -> Text:
    total, done = len(report.planned), report.count(StepStatus.COMPLETED)
    counts = {
        WORDS[status]: report.count(status) for status in (StepStatus.FAILED, StepStatus.SKIPPED)
    }
    counts[WAITING] = sum(row.is_asking for row in report.planned)
    counts[WORDS[StepStatus.EXECUTING]] = running = report.count(StepStatus.EXECUTING)
    parts = [f"{done} of {total} {WORDS[StepStatus.COMPLETED]}"] if total else []
    parts += [f"{number} {word}" for word, number in counts.items() if number]
    parts += [] if running or counts[WAITING] else [_activity(report)]
    worked = seconds(report.worked + _since(report, now))
    return Text(cut(f"{_spin(window, now)} {worked}: {', '.join(parts)}", window.width), "cyan")


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


def _spin(window: Window, now: datetime) -> str:
    spinner = window.signs.spinner
    return spinner[int(now.timestamp() * _FRAMES_PER_SECOND) % len(spinner)]


def _time_of(row: StepReport, report: RunReport, now: datetime) -> str:
    running = sum(attempt.running_at is not None for attempt in row.attempts)
    return "" if row.seconds is None else seconds(row.seconds + running * _since(report, now))


def _since(report: RunReport, now: datetime) -> float:
    """Seconds since the newest event of a run at work."""
    return max(0.0, (now - report.ended).total_seconds()) if report.outcome == "running" else 0.0


def _names(row: StepReport) -> str:
    return steady(", ".join(row.step.specialists or row.specialists))


def _note(row: StepReport, report: RunReport) -> str:  # noqa: PLR0911 - one for each status
    """Why a step waits, failed, was skipped or is attempted again."""
    if row.is_asking:
        return _question_text(row, report)
    match row.status:
        case StepStatus.PENDING if row.step.id in report.answered:
            return "answered"
        case StepStatus.PENDING if row.is_cut_off:
            return "stopped"
        case StepStatus.PENDING if row.step.id in report.fold.deferred:
            return "waits for another round"
        case StepStatus.EXECUTING:
            return _tried_text(row)
        case StepStatus.COMPLETED:
            reasons = [why for (step, _), why in report.fold.cuts.items() if step == row.step.id]
            return "the result is incomplete" if any(reasons) else ""
        case StepStatus.FAILED | StepStatus.SKIPPED:
            return (row.step.feedback or row.error)[:_LONGEST]
        case _:
            return ""


def _question_text(row: StepReport, report: RunReport) -> str:
    """What a step asks a person."""
    questions = [
        question for question in report.pending_questions if question.step_id == row.step.id
    ]
    if not questions:
        return "waits for a person"
    details = questions[-1].details
    if questions[-1].kind == "approval" and isinstance(details, dict) and "tool" in details:
        arguments: Any = details.get("arguments", {})
        return f"waits for approval: {short_call_text(str(details['tool']), arguments)}"
    return f"asks: {question_shown(questions[-1])[:_LONGEST]}"


def _tried_text(row: StepReport) -> str:
    """Why a step at work is attempted again; nothing where its last attempt did not fail."""
    failed = [attempt.entry for attempt in row.attempts if attempt.outcome == "failed"]
    last = failed[-1] if failed else None
    if last is None or row.attempts[-1].entry.number > last.number + 1:
        return ""
    return f"attempt {last.number + 1} after: {last.error[:_LONGEST]}"


def _waits(row: StepReport, report: RunReport) -> str:
    """What a step that is yet to begin waits for; empty where nothing is known about it."""
    if row.status is not StepStatus.PENDING or _note(row, report):
        return ""
    failed, coming = report.obstacles(row.step)
    is_known = failed or coming or report.count(StepStatus.EXECUTING)
    return awaited(failed, coming) if is_known else ""


def _activity(report: RunReport) -> str:  # noqa: PLR0911 - one for each kind
    """What the host does."""
    if report.answer:
        return "answering"
    if any(question.kind == PLAN for question in report.pending_questions):
        return "waiting for a decision on the plan"
    for event in reversed(report.events):
        match event:
            case events.LimitReached(scope="run"):
                return f"ending: {event.limit} is reached"
            case events.PhaseEntered(step_id=None):
                return f"phase {steady(event.phase[:_LONGEST])}"
            case events.PlanCreated() | events.PlanUpdated():
                return "judging"
            case events.ThinkingCompleted(complexity=complexity) if not report.planned:
                return "answering" if complexity is TaskComplexity.SIMPLE else "planning"
            case _:
                pass
    return "judging" if report.planned else "thinking"


def _id_width(report: RunReport) -> int:
    return len(str(max((row.step.id for row in report.planned), default=1)))


def _names_width(report: RunReport, window: Window) -> int:
    if window.width < _WITH_NAMES:
        return 0
    widest = max(cell_len(_names(row)) for row in report.planned)
    return min(widest, _WIDEST_NAME, window.width // 4)
