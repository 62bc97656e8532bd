"""What the events of a run tell: one fold, which takes them one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from replan.base.values import Value, restored
from replan.log.calls import Calls, calls_of, sum_of
from replan.log.events import types as events
from replan.log.events.types import Event
from replan.log.rows import UNKNOWN_ENDS, LedgerEntry
from replan.plan.changes import PlanChanges, changed
from replan.plan.model import PlanStep, StepStatus, TaskPlan

CallEvent = events.ModelInvoked | events.ModelCompleted | events.ToolInvoked | events.ToolCompleted
"""The newest event of a call that a step made: the end of one that is over."""

HostCall = events.ModelCompleted | events.MemorySummary | events.ToolCompleted
"""The end of a call that the host made."""

HANDED_IN = "handed in with the request"
ASKED_AGAIN = "asked again"

_AUTHORS = {"model": "the host", "person": "a person", "rule": "a rule"}
_StepAt = tuple[int, str]  # a step at a specialist

AttemptAt = tuple[int, str, int]
"""An attempt: its step, its specialist and its number there."""


def _planned_after(plan: TaskPlan, event: Event) -> TaskPlan:
    """A plan as its events describe it: the title, and the reported fields of each step."""
    if isinstance(event, events.PlanCreated):
        return TaskPlan(title=event.title, steps=event.outline)
    if isinstance(event, events.PlanUpdated) and event.changes:
        return changed(plan, restored(PlanChanges, event.changes))
    return plan


def steps_in(changes: Mapping[str, Any]) -> tuple[Any, ...]:
    """The steps that changes of a plan added, removed and modified."""
    added = (each["step"]["id"] for each in changes.get("added") or ())
    others = (sorted(map(int, changes.get(name) or ())) for name in ("removed", "modified"))
    return (*added, *map(tuple, others))


@dataclass(frozen=True, kw_only=True)
class Revision:
    """What happened to a plan at once."""

    version: int
    seq: int  # the number of its event
    at: datetime | None
    by: str  # who made it, by name where it is known; `HANDED_IN` of a plan that came with the run
    changes: Mapping[str, Any]  # as the event has them; empty for the first plan
    before: TaskPlan
    after: TaskPlan
    is_first: bool = False
    author: str = ""  # `model`, `person` or `rule`
    why: str = ""

    @property
    def steps(self) -> tuple[Any, ...]:
        """The steps that it changed."""
        return steps_in(self.changes)

    @property
    def removed(self) -> dict[int, str]:
        """The steps that it took out of the plan, with their words."""
        before = self.before.by_id
        removed = map(int, self.changes.get("removed") or ())
        return {step: before[step].description if step in before else "" for step in removed}


@dataclass(frozen=True, kw_only=True)
class Pause:
    """A time without work on the run; after a kill, its exact length is unknown."""

    began: datetime  # the last sign of life
    ended: datetime | None  # None: it still lasts
    why: str  # `waiting`, `interrupted` or `failed`; `killed` if it could not be recorded
    by: str = ""  # who continued it
    # When it had its last answer, if it waited for one and nobody continued it then.
    answered_at: datetime | None = None


class Anomalies(Value):
    """How often a run met what it continued in spite of."""

    failed: int = 0  # calls of tools that failed
    refused: int = 0  # calls of tools that a person refused
    unusable: int = 0  # replies of models that could not be used


_COUNTED = (
    *(events.ModelInvoked, events.ModelCompleted, events.MemorySummary),
    *(events.ReplyParseFailed, events.ToolCompleted),
)


@dataclass
class Counts:
    """What the calls of a run took, and which of them it continued in spite of."""

    # What was done instead of using a reply, by the number of the event that ended its call.
    unusable: dict[int, str] = field(default_factory=dict[int, str])
    _calls: Calls = field(default_factory=Calls)
    _open: set[str] = field(default_factory=set[str])
    _ends: Counter[str] = field(default_factory=Counter[str])
    # The newest reply by its place, and by its step and attempt.
    _replied: dict[Any, int] = field(default_factory=dict[Any, int])
    _newest: dict[Any, int] = field(default_factory=dict[Any, int])

    @staticmethod
    def counts(event: Event) -> bool:
        """Whether an event changes anything."""
        return isinstance(event, _COUNTED)

    def apply(self, event: Event) -> None:
        """Take an event."""
        match event:
            case events.ModelInvoked():
                self._open.add(event.call)
                # A plan with mistakes may be another node's.
                place = event.node, event.step_id, event.attempt
                before = self._replied.get(place) or self._newest.get(place[1:])
                if event.is_reprompt and before is not None:
                    self.unusable[before] = ASKED_AGAIN
            case events.ModelCompleted():
                self._add(event)
                self._open.discard(event.call)
                if not event.error:
                    place = event.node, event.step_id, event.attempt
                    self._replied[place] = self._newest[place[1:]] = event.seq or 0
            case events.MemorySummary():
                self._add(event)
            case events.ReplyParseFailed() if (event.node, None, None) in self._replied:
                self.unusable[self._replied[event.node, None, None]] = f"instead: {event.fallback}"
            case events.ToolCompleted():
                self._ends[event.status] += 1
            case _:
                pass

    def _add(self, event: Event) -> None:
        self._calls = sum_of([self._calls, calls_of([event])])

    @property
    def calls(self) -> Calls:
        """What the calls of models took."""
        return sum_of([self._calls, Calls(unfinished_calls=len(self._open))])

    @property
    def stats(self) -> dict[str, Any]:
        """The counts as the event of the end has them."""
        return {
            "anomalies": self.anomalies.model_dump(),
            "calls": self.calls.model_dump(exclude={"cost"}),
        }

    @property
    def anomalies(self) -> Anomalies:
        """What the run continued in spite of."""
        return Anomalies(
            failed=self._ends["failed"],
            refused=self._ends["rejected"],
            unusable=len(self.unusable),
        )


def counts_in(newest: Sequence[Event]) -> tuple[Anomalies, Calls] | None:
    """Read the counts of a run from its last events; None where no end with counts is there."""
    for at, event in enumerate(newest):
        if isinstance(event, events.TaskCompleted) and event.stats:
            anomalies = restored(Anomalies, event.stats["anomalies"])
            # A summary of the conversation may follow the end.
            calls = restored(Calls, event.stats["calls"])
            return anomalies, sum_of([calls, calls_of(newest[at + 1 :])])
    return None


class Fold:
    """What events tell of a run: its calls, the versions of its plan, its pauses, its end."""

    _is_thought_of = False  # whether a model was asked
    _person = ""  # who changed the plan, or decided about it

    def __init__(self, started_at: datetime | None = None) -> None:
        self.counts = Counts()
        # The calls of each attempt, by step, specialist and number, each as its newest event.
        self.calls = dict[AttemptAt, dict[Any, CallEvent]]()
        self.host_calls = dict[Any, HostCall | CallEvent]()  # those of the host
        self.begun = dict[Any, events.ModelInvoked | events.ToolInvoked]()  # their beginnings
        self.attempts = dict[AttemptAt, LedgerEntry]()  # in the order in which they began
        # The steps at specialists who have begun them, or are about to try again.
        self.at_work = set[_StepAt]()
        self.asking = set[_StepAt]()  # those whose newest attempt asked a person
        # The specialists that are done with a step since it was opened last, and whether well.
        self.ends = dict[int, dict[str, bool]]()
        self.deferred = set[int]()  # the steps that are left for another round
        self.dropped = dict[int, str]()  # those that began before a plan without them; their words
        self.revisions = list[Revision]()
        self.planned = TaskPlan()
        self.pauses = list[Pause]()  # those that are over
        self.request = ""
        self.tasks = dict[int, str]()  # the words of the steps that were begun
        self.planned_at = dict[int, datetime]()  # when revisions added steps
        self.first_plan_at: datetime | None = None
        self.cuts = dict[_StepAt, str]()  # why the newest results are incomplete, or nothing
        # When a person was asked what attempts did, or by attempts what their calls of tools did.
        self.doubted = dict[AttemptAt, datetime | None]()
        self.asked_at = dict[str, datetime]()  # when questions were asked, by their keys
        self.decision: events.AnswerReceived | None = None  # the newest one about a plan
        self.steered = dict[str, events.RunSteered]()  # what became of requests, by their names
        self.limits = list[events.LimitReached]()
        self.judged: events.FeedbackGenerated | None = None
        self.stopped: events.RunStopped | None = None
        self.resumed: events.RunResumed | None = None
        self.why_paused = ""  # why nobody works on it now; empty without a record of that
        self.first_at: datetime | None = None
        self.last_at: datetime | None = None
        self._started_at = started_at

    def apply(self, event: Event) -> None:
        """Take the next event."""
        self.counts.apply(event)
        self._apply_to_calls(event)
        self._apply_to_plan(event)
        self._apply_to_steps(event)
        self._apply_to_run(event)

    def add_attempts(self, untold: Iterable[LedgerEntry]) -> None:
        """Take attempts of which no event tells."""
        added = {(each.step_id, each.specialist, each.number): each for each in untold}
        if added:
            both = (self.attempts | added).items()
            self.attempts = dict(sorted(both, key=lambda attempt: attempt[1].started_at))

    def _apply_to_calls(self, event: Event) -> None:
        match event:
            case events.ModelInvoked() | events.ToolInvoked():
                self.begun[event.call_key] = event
                self._is_thought_of |= isinstance(event, events.ModelInvoked)
            case events.MemorySummary():
                self.host_calls[event.seq] = event
            case events.RunStarted():
                self._is_thought_of = False
            case _:
                pass
        if isinstance(event, CallEvent):
            # The end of a call takes the place of its beginning.
            is_hosts = event.step_id is None
            calls_of_attempt = (
                self.host_calls if is_hosts else self.calls.setdefault(_attempt_of(event), {})
            )
            calls_of_attempt[event.call_key] = event

    def _apply_to_plan(self, event: Event) -> None:
        before, self.planned = self.planned, _planned_after(self.planned, event)
        match event:
            case (
                events.RunCorrected()
                | events.AnswerReceived(kind="plan")
                | events.RunSteered(kind="edit", status="taken")
            ):
                self._person = event.by
            case events.PlanCreated():
                by = _AUTHORS["model"] if self._is_thought_of else HANDED_IN
                self.first_plan_at = event.at
                self._revise(event, by, before)
            case events.PlanUpdated(changes=changes) if changes:
                by = (self._person if event.by == "person" else "") or _AUTHORS[event.by]
                added: Any = changes.get("added", [])
                if event.at is not None:
                    self.planned_at |= {added_step["step"]["id"]: event.at for added_step in added}
                self._revise(event, by, before)
            case _:
                pass

    def _revise(
        self, event: events.PlanCreated | events.PlanUpdated, by: str, before: TaskPlan
    ) -> None:
        is_first = isinstance(event, events.PlanCreated)
        revision = Revision(
            version=event.version,
            seq=event.seq or 0,
            at=event.at,
            by=by,
            changes={} if isinstance(event, events.PlanCreated) else event.changes,
            before=before,
            after=self.planned,
            is_first=is_first,
            author="" if isinstance(event, events.PlanCreated) else event.by,
        )
        self.revisions.append(revision)

    def _apply_to_steps(self, event: Event) -> None:  # noqa: C901 - one for each kind
        match event:
            case events.SpecialistInvoked():
                self._begin(event)
            case events.SpecialistRetried() | events.AttemptEnded() | events.SpecialistCompleted():
                self._end(event)
            case events.InputRequested():
                if event.at is not None:
                    self.asked_at.setdefault(event.key, event.at)
                if event.kind == "unknown_outcome":
                    self.doubted[_attempt_of(event)] = self._time_of(event)
            case events.StepDeferred(waiting_for=()):
                self.deferred.add(event.step_id)
            case events.EarlyStepDropped():
                # It began before a plan that does not hold it.
                self.dropped[event.step_id] = event.task
                self._reopen([event.step_id])
            case events.RunStopped() | events.TaskCompleted():
                self.at_work.clear()
            case events.RunResumed():
                # What was asked before may have its answer.
                self.at_work.clear()
                self.asking.clear()
            case _:
                self._apply_to_ends(event)

    def _apply_to_ends(self, event: Event) -> None:
        """Forget the ends of the steps that an event opens again."""
        match event:
            case events.StepsInvalidated():
                self._reopen(rerun.step for rerun in event.reruns)
            case events.RunCorrected():
                self._reopen([event.step_id])
            case events.PlanUpdated(plan=plan, changes=changes) if plan:
                # What one of several specialists did well counts in a later round, too, and what
                # began before its plan was complete.
                partly = {step.id for step in plan.open_steps() if self.end_of(step) is None}
                added: Any = changes.get("added", ())
                early = {added_step["step"]["id"] for added_step in added}
                self._reopen([*self.ends.keys() - partly - early])
            case events.PlanUpdated(changes=changes):
                modified: Any = changes.get("modified", ())
                self._reopen(set(map(int, modified)))
            case _:
                pass

    @property
    def is_planning(self) -> bool:
        """Whether a model was asked, and no plan is known."""
        return self._is_thought_of and not self.revisions

    def marked(self, step: PlanStep, why: str = "") -> PlanStep:
        """An open step with the mark of how it ended, if it did."""
        is_well = self.end_of(step) if step.status.is_open else None
        if is_well is None:
            return step
        if is_well:
            return step.replace(status=StepStatus.COMPLETED, feedback="")
        return step.replace(status=StepStatus.FAILED, feedback=why)

    def end_of(self, step: PlanStep) -> bool | None:
        """Whether a step has succeeded since it was opened; None while a specialist works on it."""
        ends = self.ends.get(step.id, {})
        named = {specialist.casefold() for specialist in step.specialists}
        return any(ends.values()) if ends and named <= ends.keys() else None

    def _begin(self, event: events.SpecialistInvoked) -> None:
        attempt = _attempt_of(event)
        self.tasks.setdefault(event.step_id, event.task)
        self.at_work.add(attempt[:2])
        self.asking.discard(attempt[:2])
        self.deferred.discard(event.step_id)
        if (at := self._time_of(event)) is not None:
            begun = LedgerEntry(
                run_id=event.run_id,
                step_id=event.step_id,
                specialist=event.specialist,
                number=event.attempt,
                key="",
                started_at=at,
                idempotency_key=event.idempotency_key,
            )
            self.attempts.setdefault(attempt, begun)

    def _end(self, event: events.AttemptEnd) -> None:
        """Take how an attempt ended; a final end stays."""
        attempt = _attempt_of(event)
        begun = self.attempts.get(attempt)
        if begun is not None and begun.outcome in UNKNOWN_ENDS:
            end_fields = {"outcome": event.outcome, "error": event.error}
            self.attempts[attempt] = begun.replace(ended_at=self._time_of(event), **end_fields)
        if not isinstance(event, events.SpecialistRetried):
            self.at_work.discard(attempt[:2])
        if event.outcome == "waiting":
            self.asking.add(attempt[:2])
        if isinstance(event, events.SpecialistCompleted):
            self.cuts[attempt[:2]] = event.cut
            done = self.ends.setdefault(event.step_id, {})
            done[event.specialist.casefold()] = event.outcome == "done"

    def _time_of(self, event: events.BaseEvent) -> datetime | None:
        """When an event happened; of one without a log, the last time that is known."""
        return event.at or self.last_at or self._started_at

    def _reopen(self, steps: Iterable[int]) -> None:
        for step in steps:
            self.ends.pop(step, None)

    def _apply_to_run(self, event: Event) -> None:  # noqa: C901 - one for each kind
        match event:
            case events.RunStarted() if not self.request:
                self.request = event.request
            case events.AnswerReceived(kind="plan"):
                self.decision = event
            case events.LimitReached():
                self.limits.append(event)
            case events.FeedbackGenerated():
                self.judged = event
            case events.RunStopped():
                self.stopped = event
            case events.RunResumed():
                self.resumed = event
            case events.RunSteered():
                self.steered[event.request] = event
            case _:
                pass
        if event.at is not None:
            self._apply_to_pauses(event, event.at)

    def _apply_to_pauses(self, event: Event, at: datetime) -> None:
        if isinstance(event, events.RunResumed):
            began, why = self.last_at or self._started_at or at, self.why_paused or "killed"
            self.pauses.append(Pause(began=began, ended=at, why=why, by=event.by))
        match event:
            case events.TaskCompleted():
                self.why_paused = "over"
            case events.RunStopped():
                self.why_paused = event.reason
            case events.MemorySummary() if self.why_paused == "over":
                pass
            case events.RunSteered() if self.why_paused:
                # It came too late: who refuses it does not work on the run.
                return
            case _:
                self.why_paused = ""
        self.first_at, self.last_at = self.first_at or at, at


def _attempt_of(event: events.StepEvent | CallEvent) -> AttemptAt:
    return event.step_id or 0, event.specialist, event.attempt or 0
