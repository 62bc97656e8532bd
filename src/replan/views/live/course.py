"""The course of a run as people follow it: a pure fold of its events."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from replan.events import types as events
from replan.log.statuses import awaited
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.state.questions import Question
from replan.state.results import ExecutionStatus, TaskComplexity
from replan.views.cells import one_line
from replan.views.live.call_lines import call_begun_text, call_text

_LONGEST = 2_000


@dataclass(frozen=True, kw_only=True)
class Row:
    """One step, as it is now."""

    id: int  # the step
    description: str  # its one line
    specialists: tuple[str, ...] = ()
    # Its status; `executing` while it is at work.
    status: StepStatus = StepStatus.PENDING
    busy: frozenset[str] = frozenset()  # who works on it now
    # Who is done with it, and whether well.
    ended: Mapping[str, bool] = field(default_factory=dict[str, bool])
    started: float | None = None  # when the work began
    seconds: float | None = None  # how long it took
    asks: bool = False  # whether it waits for a person
    note: str = ""  # why it failed, waits, was skipped or is attempted again
    said: str = ""  # the newest text of its specialist
    awaits: tuple[int, ...] = ()  # the steps that it waits for
    needs: tuple[int, ...] = ()  # those of them that must not fail
    optional: bool = False
    # What it does now, by the calls of models and tools that are under way.
    calls: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class Course:
    """A run, as it is now."""

    started: float  # when it began
    activity: str = "thinking"  # what the host does
    title: str = ""
    rows: Mapping[int, Row] = field(default_factory=dict[int, Row])
    answer: str = ""  # the answer so far
    said: str = ""  # the newest text of a pipeline that does no step
    outcome: str = ""  # how the run ended; empty before its end

    def count(self, *statuses: StepStatus) -> int:
        """How many steps are in one of these ways."""
        return sum(row.status in statuses for row in self.rows.values())


def course_after(course: Course, event: events.Event, now: float) -> Course:
    """Return the course after an event."""
    match event:
        case events.PlanCreated(plan=plan) | events.PlanUpdated(plan=plan) if plan:
            return _with_plan(course, plan)
        case events.PhaseEntered() | events.SpecialistToken(step_id=0):
            return _after_pipeline_event(course, event)
        case (
            events.SpecialistInvoked()
            | events.SpecialistToken()
            | events.SpecialistRetried()
            | events.StepDeferred()
            | events.SpecialistCompleted()
            | events.InputRequested()
        ):
            row = course.rows.get(event.step_id)
            return course if row is None else _with_row(course, _row_after(row, event, now))
        case (
            events.ModelInvoked()
            | events.ModelCompleted()
            | events.ToolInvoked()
            | events.ToolCompleted()
        ):
            row = course.rows.get(event.step_id or 0)
            return course if row is None else _with_row(course, _with_call(row, event))
        case events.AnswerToken():
            return replace(course, activity="answering", answer=course.answer + event.text)
        case _:
            return _after_host_event(course, event)


def _after_pipeline_event(
    course: Course, event: events.PhaseEntered | events.SpecialistToken
) -> Course:
    if isinstance(event, events.SpecialistToken):
        return replace(course, said=(course.said + event.text)[-_LONGEST:])
    if event.step_id is None:
        return replace(course, activity=f"phase {one_line(event.phase[:_LONGEST])}", said="")
    row = course.rows.get(event.step_id)
    return course if row is None else _with_row(course, replace(row, said=""))


def _with_row(course: Course, row: Row) -> Course:
    return replace(course, rows={**course.rows, row.id: row})


def waits_for(row: Row, course: Course) -> str:
    """What a step that is yet to begin waits for; empty where nothing is known about it."""
    if row.status is not StepStatus.PENDING or row.note:
        return ""
    rows = course.rows
    failed = [each for each in row.needs if each in rows and _blocks(rows[each])]
    coming = [each for each in row.awaits if each in rows and rows[each].status.is_open]
    is_known = failed or coming or course.count(StepStatus.EXECUTING)
    return awaited(failed, coming) if is_known else ""


def _blocks(row: Row) -> bool:
    return row.status is StepStatus.FAILED and not row.optional


def with_answer(course: Course, key: str) -> Course:
    """The course after a person has answered the question with this key."""
    step, sign, _ = key.partition("/")
    row = course.rows.get(int(step)) if sign and step.isdecimal() else None
    if row is None or not row.asks:
        return course
    return _with_row(course, replace(row, note="answered", asks=False))


def _with_call(
    row: Row,
    event: events.ModelInvoked | events.ModelCompleted | events.ToolInvoked | events.ToolCompleted,
) -> Row:
    key = f"{event.specialist}/{event.call}"
    others = {name: text for name, text in row.calls.items() if name != key}
    is_begun = isinstance(event, events.ModelInvoked | events.ToolInvoked)
    return replace(row, calls={**others, key: call_begun_text(event)} if is_begun else others)


def _after_host_event(course: Course, event: events.Event) -> Course:
    match event:
        case events.ThinkingCompleted(complexity=complexity) if not course.rows:
            is_simple = complexity is TaskComplexity.SIMPLE
            return replace(course, activity="answering" if is_simple else "planning")
        case events.ApprovalRequested():
            return replace(course, activity="waiting for a decision on the plan")
        case events.AnswerReset():
            return replace(course, answer="")
        case events.LimitReached(scope="run"):
            return replace(course, activity=f"ending: {event.limit} is reached")
        case events.TaskCompleted():
            return replace(course, outcome=event.outcome, answer=event.text)
        case _:
            return course


def _with_plan(course: Course, plan: TaskPlan) -> Course:
    rows = {step.id: _row_of(step, course.rows.get(step.id)) for step in plan.steps}
    return replace(course, activity="judging", title=one_line(plan.title[:_LONGEST]), rows=rows)


def _row_of(step: PlanStep, known: Row | None) -> Row:
    """The row of a step: from the plan, and from its events."""
    row = known or Row(id=step.id, description="")
    is_open = step.status.is_open
    note = row.note if is_open else step.feedback
    if is_open and not row.status.is_open:
        row, note = replace(row, ended={}, started=None, seconds=None), ""
    return replace(
        row,
        description=one_line(step.description[:_LONGEST]),
        specialists=step.specialists or row.specialists,
        status=_status_of_open(row) if is_open else step.status,
        seconds=row.seconds if step.actual_duration is None else step.actual_duration,
        note=one_line(note[:_LONGEST]),
        awaits=step.awaits,
        needs=tuple(each for each in step.dependencies if not _is_condition(each, step)),
        optional=step.optional,
        asks=row.asks and is_open,
    )


def _is_condition(awaited: int, step: PlanStep) -> bool:
    return step.condition is not None and step.condition.step == awaited


def _status_of_open(row: Row) -> StepStatus:
    return StepStatus.EXECUTING if row.busy else StepStatus.PENDING


def _row_after(row: Row, event: events.StepEvent, now: float) -> Row:
    names = row.specialists
    if event.specialist.casefold() not in map(str.casefold, names):
        names = (*names, event.specialist)
    match event:
        case events.SpecialistInvoked():
            is_first = not row.busy
            return replace(
                row,
                specialists=names,
                status=StepStatus.EXECUTING,
                busy=row.busy | {event.specialist},
                started=now if is_first or row.started is None else row.started,
                note="" if is_first else row.note,
                said="",
                calls={},
                asks=False,
            )
        case events.SpecialistToken():
            return replace(row, said=(row.said + event.text)[-_LONGEST:])
        case events.SpecialistRetried():
            note = f"attempt {event.attempt + 1} after: {event.error[:_LONGEST]}"
            return replace(row, note=one_line(note))
        case events.StepDeferred():
            return replace(row, note="" if event.waiting_for else "waits for another round")
        case events.SpecialistCompleted():
            return _with_end(replace(row, specialists=names), event)
        case _:
            return _with_question(row, event)


def _with_question(row: Row, event: events.StepEvent) -> Row:
    if not isinstance(event, events.InputRequested):
        return row
    busy = row.busy - {event.specialist}
    status = StepStatus.EXECUTING if busy else StepStatus.PENDING
    note = f"asks: {one_line(event.text[:_LONGEST])}"
    if event.tool:
        note = f"waits for approval: {call_text(event.tool, event.arguments)}"
    return replace(row, status=status, busy=busy, note=note, calls={}, asks=True)


def _with_end(row: Row, event: events.SpecialistCompleted) -> Row:
    succeeded = event.status is ExecutionStatus.SUCCESS
    ended = {**row.ended, event.specialist: succeeded}
    seconds = max(event.seconds, row.seconds or 0.0)
    row = replace(
        row, busy=row.busy - {event.specialist}, ended=ended, seconds=seconds, said="", calls={}
    )
    if len(ended) < len(row.specialists):
        return row
    if any(ended.values()):
        note = "the result is incomplete" if event.cut else ""
        return replace(row, status=StepStatus.COMPLETED, note=note)
    return replace(row, status=StepStatus.FAILED, note=one_line(event.error[:_LONGEST]))


def course_of(plan: TaskPlan, now: float) -> Course:
    """The course of a run that another process has begun, or that waits."""
    return _with_plan(Course(started=now), plan)


def with_asks(course: Course, asks: Iterable[Question]) -> Course:
    """The course with the steps that ask marked."""
    for ask in asks:
        if (row := course.rows.get(ask.step_id)) is not None:
            note = f"asks: {one_line(ask.text)}"
            course = _with_row(course, replace(row, asks=True, note=note))
    return course
