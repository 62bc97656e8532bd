"""Read the report of a stored run, through any graph of a team with its storage: nothing is run."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import get_args

from pydantic import Field

from replan.calling.compiled import Graph
from replan.events.types import Event
from replan.log.kept_events import events_of, references
from replan.log.report import LAST_EVENTS, RunReport, StateFacts, masked
from replan.log.run_log import RunLog
from replan.plan.model import TaskPlan
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.log.plan_so_far import plan_as_it_is
from replan.runs.looking import RunView, seen
from replan.secrets.known import MASK
from replan.state.enhanced import EnhancedState
from replan.state.outcomes import Outcome
from replan.state.pipeline.thread_rows import thread_from
from replan.state.pipeline.threads import HISTORY, Thread
from replan.state.questions import Question
from replan.state.results import SpecialistResult
from replan.state.usage import Usage
from replan.threads.phases.suggestions import next_phase
from replan.values import Value, restored

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
        warnings=tuple(state.get("warnings", ())),
        usage=state.get("usage", Usage()),
        questions={
            key: each.replace(answer=MASK) if each.secret and not each.is_open else each
            for key, each in questions.items()
        },
        artifacts=tuple({f.path: f for each in results for f in each.artifacts}.values()),
        origin=state.get("kept_from", ""),
    )


def facts_in(view: RunView) -> StateFacts:
    """What a report shows of the state of a run that was looked at."""
    results = {**view.state.get("current_specialist_results", {})}
    results |= {each.key: each for each in view.results}
    return facts_of(view.state, view.plan, results.values())


async def keep_report(state: EnhancedState, log: RunLog, at: datetime) -> None:
    """Keep what a report shows of the state of a run that is over, beside its events.

    The plan is kept without its document and the excerpts of results: the state has them.
    """
    results = state.get("current_specialist_results", {}).values()
    facts = facts_of(state, plan_as_it_is(state, (), at), results)
    if facts.plan is not None:
        steps = (each.replace(brief="", parameters={}, result="") for each in facts.plan.steps)
        facts = facts.replace(plan=facts.plan.replace(content="", steps=tuple(steps)))
    kept = facts.model_dump(mode="json", exclude_defaults=True)
    await log.keep_report(state.get("run_id", ""), kept)


async def read_report(
    graph: Graph,
    storage: Storage,
    record: RunRecord,
    at: datetime,
    known: tuple[Event, ...] = (),  # its first events, if they were read before
) -> WholeReport:
    """Read a run; answers that may have a secret in them are masked, as in its events."""
    run_id, view = record.run_id, await seen(graph, storage, record, at)
    recorded = (await storage.log.results(run_id)).values()
    newest = {each.key: each for each in recorded}
    newest |= view.state.get("current_specialist_results", {})
    newest |= {each.key: each for each in view.results}
    facts = facts_of(view.state, view.plan, newest.values())
    requests = await storage.log.requests([run_id], taken=True)
    new = await storage.log.events(run_id, known[-1].seq or 0 if known else 0)
    return WholeReport(
        **dict(facts),
        run_id=run_id,
        title=record.title,
        outcome=view.outcome,
        started_at=record.started_at,
        last_seen_at=view.last_seen_at,
        labels=record.labels,
        spent=dict(await storage.log.spent(run_id)),
        pending_questions=view.pending_questions,
        ledger=tuple(await storage.log.ledger(run_id)),
        requests=masked(requests, facts.questions),
        events=(*known, *events_of(run_id, new)),
        results=tuple(newest.values()),
        threads=await thread_views(storage, run_id),
    )


async def read_summary(
    graph: Graph, storage: Storage, record: RunRecord, at: datetime
) -> RunReport:
    """Read what a list shows of a run: of one that is over, without its state."""
    kept = None
    if record.outcome in get_args(Outcome):
        kept, ends = await storage.log.report(record.run_id, LAST_EVENTS)
        if kept is not None:
            return RunReport(
                **dict(restored(StateFacts, kept)),
                run_id=record.run_id,
                title=record.title,
                outcome=record.outcome,
                started_at=record.started_at,
                last_seen_at=record.updated_at,
                labels=record.labels,
                spent=dict(await storage.log.spent(record.run_id)),
                ledger=(),
                requests=(),
                events=tuple(events_of(record.run_id, ends)),
            )
    return await read_report(graph, storage, record, at)


async def with_texts(report: WholeReport, storage: Storage, events: Iterable[Event]) -> WholeReport:
    """Return a report with the long texts of some of its events, of those still kept."""
    found = {ref: await storage.log.text(report.run_id, ref) for ref in references(events)}
    texts = {ref: text for ref, text in found.items() if text is not None}
    return report.model_copy(update={"texts": texts})


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
    said = [str(each.meta["phase"]) for each in thread.messages if "phase" in each.meta]
    yield ThreadView.model_validate(
        {
            **whose,
            "depth": depth,
            "phase": next_phase(thread),
            "phases": tuple(dict.fromkeys(said)),
            "messages": len(thread.messages),
            "is_replaced": is_replaced,
            "error": thread.error,
        }
    )
    for path, below in thread.sub_threads():
        is_old = is_replaced or HISTORY in path.split(".")
        yield from _views(whose, below, depth + 1, is_replaced=is_old)
