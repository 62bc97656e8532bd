"""Read the state, the plan and the report of a stored run; nothing is run."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast, get_args

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot
from pydantic import Field

from replan.base.errors import InputError
from replan.base.secrets.masking import MASK
from replan.base.values import Value
from replan.log.equal_calls import CALLS, EqualCall, call_in, equal_call
from replan.log.events.types import Event, SpecialistInvoked
from replan.log.kept_events import events_of, references
from replan.log.report import LAST_EVENTS, RunReport, StateFacts, masked
from replan.log.rows import LedgerEntry
from replan.log.run_log import RunLog
from replan.log.whole_results import whole_values
from replan.models.spending.deadline import TIMES
from replan.nodes.result_collector import settle_round
from replan.pipelines.phases.suggestions import next_phase
from replan.plan.markdown.seal import sealed
from replan.plan.model import TaskPlan
from replan.ports.run_book import RunOutcome, RunRecord
from replan.ports.storage import Storage
from replan.runs.asked.asks import open_asks
from replan.runs.calling.barred import check_not_barred
from replan.runs.calling.compiled import Graph, services_in
from replan.runs.calling.new_or_continued import is_not_begun
from replan.specialists.steps.on_record import RecordedResults
from replan.state.enhanced import EnhancedState, plan_of
from replan.state.outcomes import Outcome
from replan.state.pipeline.thread_rows import thread_from
from replan.state.pipeline.threads import HISTORY, Thread
from replan.state.questions import Question
from replan.state.results import Assignment, SpecialistResult, newest_results
from replan.state.rules import is_final, larger_limit
from replan.state.usage import Usage


async def snapshot_of(graph: Graph, record: RunRecord) -> StateSnapshot:
    """The newest state of a run, also where its thread has begun another one since."""
    reads, config = cast("Any", graph), config_of(record.thread_id)
    newest: StateSnapshot = await reads.aget_state(config)
    has_begun = not is_not_begun(newest)
    if has_begun and newest.values.get("run_id", record.run_id) == record.run_id:
        return newest
    history = reads.aget_state_history(config, filter={"run_id": record.run_id}, limit=1)
    async for snapshot in history:
        # What is there before it begins is the state of the run before.
        return snapshot._replace(values={}) if is_not_begun(snapshot) else snapshot
    return newest._replace(values={}, next=(), tasks=(), interrupts=())


async def check_goes_on(graph: Graph, record: RunRecord) -> None:
    """Check that a run may go on: here, and on its thread, where what continues is the newest run.

    Raises:
        InputError: It was exported or cancelled for good, or its thread has begun another run.
    """
    await check_not_barred(services_in(graph).log, record.run_id)
    newest: StateSnapshot = await cast("Any", graph).aget_state(config_of(record.thread_id))
    names = newest.metadata or {} if is_not_begun(newest) else newest.values
    if names.get("run_id") in (None, "", record.run_id):
        return
    own = await snapshot_of(graph, record)
    # One that was killed before it left anything there can begin behind the other.
    if own.values or own.tasks:
        raise InputError(
            "Another run has begun on the thread of this one, which cannot continue. Start its "
            "request again, under another id."
        )


def config_of(thread_id: str) -> RunnableConfig:
    """LangGraph's configuration of a run: its thread."""
    return {"configurable": {"thread_id": thread_id}}


def with_results(
    plan: TaskPlan, results: Iterable[SpecialistResult], origin: str, at: datetime
) -> TaskPlan:
    """Return a plan, sealed, with the marks of its open steps that finished since it was written.

    `origin` is the run that has the whole results.
    """
    steps = {step.id: step for step in plan.open_steps()}
    new = {result.key: result.replace(round=0) for result in results if result.step_id in steps}
    # All that a step names have to answer, besides those who did.
    answered = {number: dict[str, str]() for number in steps}
    for result in new.values():
        answered[result.step_id][result.specialist_name.casefold()] = result.specialist_name
    seats = [
        Assignment(step_id=number, specialist=name)
        for number, names in answered.items()
        if names
        for name in (
            {specialist.casefold(): specialist for specialist in steps[number].specialists} | names
        ).values()
    ]
    state: EnhancedState = {
        "current_round": 0,
        "current_specialist_results": new,
        "dispatched": seats,
    }
    return sealed(settle_round(plan, state, at), origin)


async def results_on_record(state: EnhancedState, log: RunLog) -> list[SpecialistResult]:
    """The results that belong to the plan as it is, whether or not the state has them already."""
    plan = plan_of(state)
    rows = await log.results(state.get("run_id", ""))
    settled = plan.by_id.keys() - {step.id for step in plan.open_steps()}
    finished = {
        key: result for key, result in newest_results(state).items() if result.step_id in settled
    }
    return [*{**finished, **RecordedResults.of(state, rows).known}.values()]


def plan_as_it_is(
    state: EnhancedState, results: Sequence[SpecialistResult], at: datetime
) -> TaskPlan | None:
    """The plan with the marks of steps that finished since it was written, and its history."""
    plan = state.get("current_plan")
    if plan is None:
        return None
    whole = plan.replace(update_history=tuple(state.get("plan_history", [])))
    is_open = {step.id for step in plan.open_steps()}
    has_new = any(result.step_id in is_open for result in results)
    return with_results(whole, results, state.get("run_id", "") if has_new else "", at)


Report = TypeVar("Report", bound=RunReport)

_WHOSE = ("tenant", "user")
_MOST_RUNS, _MOST_ROWS = 100, 500  # that are looked through for equal calls
_OF_STEP = re.compile(r"(\d+)\.([^/]*)/(.+)", re.DOTALL)


class ThreadView(Value):
    """The status of a thread of a step, or a sub-thread of it."""

    step_id: int
    specialist: str  # the specialist that is a pipeline
    depth: int  # how many threads are above it
    phase: str  # the phase in which it continues
    phases: tuple[str, ...]  # the phases of its messages, in their order
    messages: int  # how many messages it has
    is_replaced: bool = False  # whether a retry has put another one in its place
    error: str = ""  # why its last work failed; else empty


class WholeReport(RunReport):
    """A report with all that the storage holds of its run."""

    # The results of its steps, the newest at each specialist, whole.
    results: tuple[SpecialistResult, ...]
    threads: tuple[ThreadView, ...] = ()  # the status of the threads of its pipelines
    # The long texts of events, by reference: those that were read.
    texts: dict[str, str] = Field(default_factory=dict[str, str])


def facts_of(
    state: EnhancedState, plan: TaskPlan | None, results: Iterable[SpecialistResult]
) -> StateFacts:
    """What a report shows of the state of a run."""
    answer = state.get("final_answer")
    questions: dict[str, Question] = state.get("questions", {})
    return StateFacts(
        plan=plan,
        answer="" if answer is None else answer.text,
        output=state.get("output"),
        limit_reached=state.get("limit_reached", ""),
        larger_limit=larger_limit(state),
        warnings=tuple(state.get("warnings", ())),
        usage=state.get("usage", Usage()),
        questions={
            key: question.replace(answer=MASK)
            if question.secret and not question.is_open
            else question
            for key, question in questions.items()
        },
        artifacts=tuple({f.path: f for result in results for f in result.artifacts}.values()),
        origin=state.get("source_run_id", ""),
        is_final=is_final(state),
    )


async def keep_report(state: EnhancedState, log: RunLog, at: datetime) -> None:
    """Keep what a report shows of the state of a run that is over, beside its events.

    The plan is kept without its document and the excerpts of results: the state has them.
    """
    results = newest_results(state).values()
    facts = facts_of(state, plan_as_it_is(state, (), at), results)
    if facts.plan is not None:
        steps = (step.replace(brief="", parameters={}, result="") for step in facts.plan.steps)
        facts = facts.replace(plan=facts.plan.replace(content="", steps=tuple(steps)))
    kept = facts.model_dump(mode="json", exclude_defaults=True)
    await log.keep_report(state.get("run_id", ""), kept)


async def read_run(graph: Graph, storage: Storage, record: RunRecord, at: datetime) -> RunReport:
    """Read the report of a run, with what it waits for."""
    report, _ = await _read(graph, storage, record, at)
    return report


async def _read(
    graph: Graph,
    storage: Storage,
    record: RunRecord,
    at: datetime,
    known: tuple[Event, ...] = (),  # its first events, if they were read before
    *,
    is_whole: bool = False,  # whether results that its plan does not have any longer are read, too
) -> tuple[RunReport, Mapping[str, SpecialistResult]]:
    """The report of a run as its storage has it, and the newest results of its steps."""
    log = storage.log
    is_held = await storage.works_on(record)
    if record.outcome == "running" and not is_held:
        # Its process may have come to rest since the record was read.
        record = await storage.runs.get(record.run_id) or record
    snapshot = await snapshot_of(graph, record)
    state = await whole_values(cast("EnhancedState", snapshot.values), log)
    # A run that is over has everything in its state.
    is_over = state.get("is_completed")
    newer = () if is_over else await results_on_record(state, log)
    questions = () if is_over else await open_asks(snapshot, log)
    recorded = (await log.results(record.run_id)).values() if is_whole else ()
    results = {result.key: result for result in recorded}
    results |= newest_results(state) | {result.key: result for result in newer}
    facts = facts_of(state, plan_as_it_is(state, newer, at), results.values())
    rows = await log.reported(record.run_id, known[-1].seq or 0 if known else 0)
    events = (*known, *events_of(record.run_id, rows.events))
    entered: dict[str, Any] = {
        **record.reported,
        "last_seen_at": at if is_held else await _last_sign_of_life(record, events, log),
    }
    report = RunReport(
        **dict(facts),
        **entered,
        spent=dict(rows.spent),
        reserved=rows.reserved,
        forks=tuple(rows.forks),
        untold=_untold(rows.attempts, events),
        pending_questions=questions,
        is_held=is_held,
        requests=masked(rows.requests, facts.questions),
        events=events,
    )
    outcome = _outcome_of(record, state, report.unanswered, is_held=is_held)
    return report.model_copy(update={"outcome": outcome}), results


def _untold(attempts: Sequence[LedgerEntry], events: Sequence[Event]) -> tuple[LedgerEntry, ...]:
    """The attempts of which no event tells: events are written where a runtime is at work."""
    invoked = (event for event in events if isinstance(event, SpecialistInvoked))
    told = {(event.step_id, event.specialist, event.attempt) for event in invoked}
    return tuple(
        entry for entry in attempts if (entry.step_id, entry.specialist, entry.number) not in told
    )


def _outcome_of(
    record: RunRecord, state: EnhancedState, questions: Sequence[Question], *, is_held: bool
) -> RunOutcome:
    """The status of a run; also correct if its process was killed before it could record it."""
    if state.get("is_completed") and (ended := state.get("outcome")):
        return ended
    # One that was over, and went back to an older state since: its record is of the end before.
    has_gone_back = record.outcome in get_args(Outcome) and bool(state.get("run_id"))
    if is_held or not (record.outcome == "running" or has_gone_back):
        return record.outcome
    return "waiting" if questions else "interrupted"


async def _last_sign_of_life(record: RunRecord, events: Sequence[Event], log: RunLog) -> datetime:
    """The last sign of life; a killed process left its events and its clock."""
    if record.outcome != "running":
        return record.updated_at
    clocks = (await log.notes(record.run_id, f"{TIMES}run/")).values()
    worked = max((clock for clock in clocks if isinstance(clock, int | float)), default=0)
    at_work_at = record.started_at + timedelta(seconds=worked)
    times = [event.at for event in events[-1:] if event.at is not None]
    return max([record.updated_at, at_work_at, *times])


async def read_report(
    graph: Graph,
    storage: Storage,
    record: RunRecord,
    at: datetime,
    known: tuple[Event, ...] = (),  # its first events, if they were read before
) -> WholeReport:
    """Read a run; answers that may have a secret in them are masked, as in its events."""
    report, results = await _read(graph, storage, record, at, known, is_whole=True)
    return WholeReport(
        **dict(await with_equal_calls(report, storage)),
        results=tuple(results.values()),
        threads=await thread_views(storage, record.run_id),
    )


async def read_summary(
    graph: Graph, storage: Storage, record: RunRecord, at: datetime
) -> RunReport:
    """Read what a list shows of a run: of one that is over, without its state."""
    if record.outcome in get_args(Outcome):
        kept = await storage.log.report(record.run_id, LAST_EVENTS)
        if kept is not None:
            return RunReport(**record.reported, **kept)
    return await read_run(graph, storage, record, at)


async def with_equal_calls(report: Report, storage: Storage) -> Report:
    """Return a report with the calls of other runs here that equal those that it asks about.

    Looked through are the newest rows of the newest runs of the same tenant and user.
    """
    asked = [question for question in report.pending_questions if call_in(question) is not None]
    if not asked:
        return report
    labels = {name: report.labels[name] for name in _WHOSE if name in report.labels}
    recent = await storage.runs.recent(_MOST_RUNS, labels)
    others = [record.run_id for record in recent if record.run_id != report.run_id]
    logged = await storage.log.recent_events(others, CALLS, _MOST_ROWS)
    found = dict[str, EqualCall]()
    for run_id in reversed(others):
        made = {question.key: equal_call(question, run_id, logged[run_id]) for question in asked}
        found |= {key: call for key, call in made.items() if call is not None}
    return report.model_copy(update={"equal_calls": found})


async def with_texts(report: WholeReport, storage: Storage, events: Iterable[Event]) -> WholeReport:
    """Return a report with the long texts of some of its events, of those still kept."""
    return report.model_copy(update={"texts": await texts_of(report.run_id, storage, events)})


async def texts_of(run_id: str, storage: Storage, events: Iterable[Event]) -> dict[str, str]:
    """Read the long texts of some events, of those still kept, by their references."""
    texts = {ref: await storage.log.text(run_id, ref) for ref in references(events)}
    return {ref: text for ref, text in texts.items() if text is not None}


async def thread_views(storage: Storage, run_id: str) -> tuple[ThreadView, ...]:
    """Read the status of the threads of a run: each above its sub-threads, steps in their order."""
    newest: dict[tuple[int, str], Thread] = {}
    threads = await storage.threads.rows(run_id)
    for thread_id in sorted(threads, key=_order):
        found = _OF_STEP.fullmatch(thread_id.removeprefix(f"{run_id}/"))
        if found is not None:
            newest[int(found[1]), found[3]] = thread_from(threads[thread_id])
    return tuple(
        view
        for (step, specialist), thread in newest.items()
        for view in _views({"step_id": step, "specialist": specialist}, thread)
    )


def _order(thread_id: str) -> list[tuple[int, str]]:
    """Sort ids with numbers in them, so that generation 10 comes after 9."""
    return [(int(part or 0), text) for text, part in re.findall(r"(\D*)(\d*)", thread_id)]


def _views(
    whose: Mapping[str, int | str], thread: Thread, depth: int = 0, *, is_replaced: bool = False
) -> Iterator[ThreadView]:
    phases = [str(message.meta["phase"]) for message in thread.messages if "phase" in message.meta]
    yield ThreadView.model_validate(
        {
            **whose,
            "depth": depth,
            "phase": next_phase(thread),
            "phases": tuple(dict.fromkeys(phases)),
            "messages": len(thread.messages),
            "is_replaced": is_replaced,
            "error": thread.error,
        }
    )
    for path, below in thread.sub_threads():
        is_old = is_replaced or HISTORY in path.split(".")
        yield from _views(whose, below, depth + 1, is_replaced=is_old)
