"""Look at stored runs without what running them needs: no team file, no model, no key."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from replan.calling.compiled import Graph
from replan.events.types import Event
from replan.log.amounts import Spending
from replan.log.attempt_rows import LedgerEntry
from replan.log.calls import Calls, calls_of, with_charged
from replan.log.kept_events import events_of
from replan.log.whole_results import whole_values
from replan.plan.model import StepStatus, TaskPlan
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.asked.asks import open_asks
from replan.runs.log.plan_so_far import plan_as_it_is, results_on_record
from replan.runs.statuses import RunStatus
from replan.runs.step_status import INCOMPLETE, failures, not_run
from replan.spending.deadline import TIMES
from replan.state.cuts import CUTS
from replan.state.enhanced import EnhancedState
from replan.state.questions import Question
from replan.state.results import SpecialistResult
from replan.state.usage import CUT_OFF, Usage


@dataclass(frozen=True, kw_only=True)
class RunView:
    """A stored run.

    Attributes:
        record: Its entry in the list of runs.
        last_seen_at: Its end; now while a process works on it, else the last sign of life.
        state: Its state; empty if the run was killed before it had a state. Its `usage` is that of
            the rounds that are over.
        plan: Its plan, with the marks of finished steps, and its history.
        results: The recorded results of its plan, if the run is not over.
        pending_questions: What it waits for.
        is_held: Whether a process works on it now, or will: its work waits in a queue.
        is_queued: Whether its work waits in a queue.
        at_work: The steps in progress, each `running` or `waiting`.
        usage: The usage of its model calls so far, including those of the current round.
    """

    record: RunRecord
    last_seen_at: datetime
    state: EnhancedState
    plan: TaskPlan | None = None
    results: tuple[SpecialistResult, ...] = ()
    pending_questions: tuple[Question, ...] = ()
    is_held: bool = False
    is_queued: bool = False
    at_work: Mapping[int, str] = field(default_factory=dict[int, str])
    usage: Calls = field(default_factory=Calls)

    @property
    def run_id(self) -> str:
        """The run."""
        return self.record.run_id

    @property
    def seconds(self) -> float:
        """Seconds from its beginning to its last sign of life, in all processes."""
        return (self.last_seen_at - self.record.started_at).total_seconds()

    @property
    def reason(self) -> str:
        """Why it ended, or does not continue, in words; empty while it is at work."""
        match self.outcome:
            case "running":
                return ""
            case "waiting":
                return "it waits for an answer"
            case "interrupted":
                return "its process was killed" if self.is_killed else "it was stopped"
            case "rejected" if not self.state.get("limit_reached"):
                return "a person rejected its plan"
            case outcome:
                limit, judged = self.state.get("limit_reached"), self._judgement
                reached = [CUTS.get(limit, f"{limit} was reached")] if limit else []
                steps = self.plan.steps if self.plan and outcome in INCOMPLETE else ()
                failed = failures([(step, step.feedback) for step in steps])
                return "; ".join([*reached, *failed] or not_run(steps)) or judged

    @property
    def _judgement(self) -> str:
        judged = self.state.get("current_feedback_result")
        return judged.feedback if judged else ""

    @property
    def origin(self) -> str:
        """The run whose document this one began with; empty if there is none."""
        return self.state.get("kept_from", "")

    @property
    def outcome(self) -> RunStatus:
        """Its status; also correct if its process was killed before it could record it."""
        if self.state.get("is_completed") and (ended := self.state.get("outcome")):
            return ended
        if self.record.outcome != "running" or self.is_held:
            return self.record.outcome
        return "waiting" if self.pending_questions else "interrupted"

    @property
    def is_killed(self) -> bool:
        """Whether its process was killed, at an unknown time."""
        return self.outcome in ("waiting", "interrupted") and self.record.outcome == "running"

    @property
    def steps(self) -> dict[int, str]:
        """The status of each step: as the plan says, or `running`, or `waiting` for a person."""
        asking = {ask.step_id: "waiting" for ask in self.pending_questions}
        now = {**asking, **self.at_work}
        open_ones = {step.id for step in self.plan.open_steps()} if self.plan else set[int]()
        return {
            step.id: now.get(step.id, "pending") if step.id in open_ones else step.status.value
            for step in (self.plan.steps if self.plan else ())
        }

    @property
    def progress(self) -> tuple[int, int]:
        """Steps that are done, and all steps."""
        steps = self.plan.steps if self.plan else ()
        return sum(step.status is StepStatus.COMPLETED for step in steps), len(steps)


async def seen(graph: Graph, storage: Storage, record: RunRecord, at: datetime) -> RunView:
    """Look at a run through any graph of a team with its storage: nothing is run."""
    is_held = record.outcome == "running" and await storage.holds.is_held(record.thread_id)
    if record.outcome == "running" and not is_held:
        # Its process may have come to rest since the record was read.
        record = await storage.runs.get(record.run_id) or record
    snapshot = await snapshot_of(graph, record)
    state = await whole_values(cast("EnhancedState", snapshot.values), storage.log)
    # A run that is over has everything in its state.
    is_over = state.get("is_completed")
    results = [] if is_over else await results_on_record(state, storage.log)
    plan = plan_as_it_is(state, results, at)
    asks = () if is_over else await open_asks(snapshot, storage.log)
    is_open = record.outcome == "running"
    ledger = await storage.log.ledger(record.run_id) if is_open else ()
    charged = (await storage.log.spent(record.run_id)).get("run", Spending())
    is_told = bool(is_over) and not is_open and not _is_guessed(state, charged)
    logged = () if is_told else await storage.log.events(record.run_id)
    events = events_of(record.run_id, logged)
    used = calls_of(events)
    if not (used.number or used.unfinished):
        used = Calls.of(state.get("usage", Usage()))
    return RunView(
        record=record,
        last_seen_at=at if is_held else await _last_sign_of_life(record, ledger, events, storage),
        state=state,
        plan=plan,
        results=tuple(results),
        pending_questions=asks,
        is_held=is_held,
        at_work=_at_work(ledger, record.updated_at) if is_held else {},
        usage=with_charged(used, charged),
    )


def _is_guessed(state: EnhancedState, charged: Spending) -> bool:
    """Whether a run was charged for uncounted calls: its events say for which."""
    usage = state.get("usage", Usage())
    return CUT_OFF in usage.by or charged.tokens > usage.total_tokens


async def _last_sign_of_life(
    record: RunRecord, ledger: Sequence[LedgerEntry], events: Sequence[Event], storage: Storage
) -> datetime:
    """The last sign of life; a killed process left its attempts, its events and its clock."""
    if record.outcome != "running":
        return record.updated_at
    clocks = (await storage.log.notes(record.run_id, f"{TIMES}run/")).values()
    worked = max((each for each in clocks if isinstance(each, int | float)), default=0)
    at_work_at = record.started_at + timedelta(seconds=worked)
    tried = [each.ended_at or each.started_at for each in ledger]
    told = [event.at for event in events[-1:] if event.at is not None]
    return max([record.updated_at, at_work_at, *tried, *told])


def _at_work(ledger: Sequence[LedgerEntry], since: datetime) -> dict[int, str]:
    """The steps whose newest attempt is at work, or asked; earlier ones are not known."""
    newest = {(entry.step_id, entry.specialist): entry for entry in ledger}.values()
    began = [entry for entry in newest if entry.started_at >= since]
    asked = {entry.step_id: "waiting" for entry in began if entry.outcome == "waiting"}
    return asked | {entry.step_id: "running" for entry in began if entry.ended_at is None}


async def snapshot_of(graph: Graph, record: RunRecord) -> StateSnapshot:
    """The newest state of a run, also where its thread has begun another one since."""
    reads, config = cast("Any", graph), config_of(record.thread_id)
    newest: StateSnapshot = await reads.aget_state(config)
    if newest.values.get("run_id", record.run_id) == record.run_id:
        return newest
    own = reads.aget_state_history(config, filter={"run_id": record.run_id}, limit=1)
    async for found in own:
        return found
    return newest._replace(values={}, next=(), tasks=(), interrupts=())


def config_of(thread_id: str) -> RunnableConfig:
    """LangGraph's configuration of a run: its thread."""
    return {"configurable": {"thread_id": thread_id}}
