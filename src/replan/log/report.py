"""One report of a run: its steps, their attempts and calls, and how it ended.

It is made of the rows of the run's log. Everything that shows a run, live or at rest, renders this
value or selects from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Self, TypeVar

from pydantic import Field, JsonValue

from replan.events.types import Event, ModelCompleted, ToolCompleted, ToolInvoked
from replan.log.amounts import Spending
from replan.log.attempt_rows import LedgerEntry
from replan.log.calls import Calls, calls_of, with_charged
from replan.log.fold import (
    HANDED_IN,
    Anomalies,
    CallEvent,
    Fold,
    HostCall,
    Pause,
    Revision,
    counts_in,
)
from replan.log.rows import Request
from replan.log.statuses import RUNNING, WAITING
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.secrets.known import MASK
from replan.state.artifacts import Artifact
from replan.state.questions import Question
from replan.state.usage import Usage
from replan.values import Value

Report = TypeVar("Report", bound="RunReport")

LAST_EVENTS = 2  # of a run that is over: its end, and a summary of the conversation after it

_OPEN = ("running", "waiting", "interrupted")
_NO_REASON = "Changed by a person"  # what the history of a plan says about every such change


class AttemptReport(Value):
    """What an attempt of a step did, assembled from what is kept of it."""

    entry: LedgerEntry  # its rows in the log
    # The calls of models and tools that it made, each as its last event: one that is not over, or
    # was killed, is still `model_invoked` or `tool_invoked`.
    calls: tuple[CallEvent, ...] = ()
    running_at: datetime | None = None  # now, where a process works on it
    is_asked_about: bool = False  # whether a person is asked, or was, what it did
    went_on: bool = False  # whether another one came after it

    @property
    def seconds(self) -> float | None:
        """How long it took, or has taken until now; None if its end is unknown."""
        ended = self.entry.ended_at or self.running_at
        return ended and (ended - self.entry.started_at).total_seconds()

    @property
    def outcome(self) -> str:
        """How it ended; `running` where it continues."""
        return "running" if self.running_at else self.entry.outcome

    @property
    def outcome_text(self) -> str:
        """How it ended, in words: an attempt that asks is followed by another after the answer."""
        if self.outcome == "waiting":
            return "asked, then went on" if self.went_on else "waits for a person"
        is_cut_off = self.outcome in ("unknown_outcome", "cancelled") and not self.is_asked_about
        return "cut off" if is_cut_off else self.outcome.replace("_", " ")

    @property
    def cost(self) -> float | None:
        """What its model calls were charged; None where one of them has no price."""
        ends = [each for each in self.calls if isinstance(each, ModelCompleted)]
        costs = [each.cost for each in ends if each.cost is not None]
        return sum(costs) if len(costs) == len(ends) else None


class StepReport(Value):
    """A step of the plan, or one that a revision removed."""

    step: PlanStep
    status: StepStatus  # as of now: one that is worked on is `executing`
    attempts: tuple[AttemptReport, ...] = ()
    removed: str = ""  # which revision took it out of the plan; empty for one that is in it
    is_asking: bool = False  # whether it waits for a person

    @property
    def status_text(self) -> str:
        """Its status, in words."""
        is_running = self.status is StepStatus.EXECUTING
        status = RUNNING if is_running else self.status.value
        return self.removed or (WAITING if self.is_asking else status)

    @property
    def specialists(self) -> tuple[str, ...]:
        tried = dict.fromkeys(each.entry.specialist for each in self.attempts)
        return tuple(tried) or self.step.specialists

    @property
    def began(self) -> datetime | None:
        """When its first attempt began."""
        return min((each.entry.started_at for each in self.attempts), default=None)

    @property
    def seconds(self) -> float | None:
        """How long its attempts took together, until now; None if no end is known."""
        took = [each.seconds for each in self.attempts if each.seconds is not None]
        return sum(took) if took else None

    @property
    def calls(self) -> Calls:
        return calls_of(call for each in self.attempts for call in each.calls)

    @property
    def tools(self) -> list[ToolInvoked | ToolCompleted]:
        calls = [call for each in self.attempts for call in each.calls]
        return [call for call in calls if isinstance(call, ToolInvoked | ToolCompleted)]


class StateFacts(Value):
    """What of a run its state tells, and its events do not; kept as a row once it is over."""

    plan: TaskPlan | None = None  # its plan with all marks and its history
    answer: str = ""  # the text of the answer
    output: JsonValue = None  # the answer's value, where it is of a type
    limit_reached: str = ""  # the limit that ended it, or cut its answer off
    warnings: tuple[str, ...] = ()  # what a person may not expect
    usage: Usage = Usage()  # model calls, tokens and money of all rounds that are over
    # What its steps asked, and the answers, by key; those that may have a secret are masked.
    questions: dict[str, Question] = Field(default_factory=dict[str, Question])
    artifacts: tuple[Artifact, ...] = ()  # the files that its steps left, each once
    origin: str = ""  # the run with whose document it began and whose results it kept


class RunReport(StateFacts):
    """A run, from its beginning to now: at work, at rest, or exported.

    Its rows are fields; `steps`, `attempts`, `pauses`, `revisions` and `calls` are what they tell.
    """

    run_id: str
    title: str = ""  # what it is about
    outcome: str  # its status
    started_at: datetime  # when it began
    last_seen_at: datetime  # the time of its last sign of life: now, while a process works on it
    labels: dict[str, str]  # what it is found by
    spent: dict[str, Spending]  # what each scope of its limits was charged
    pending_questions: tuple[Question, ...] = ()  # what it waits for
    ledger: tuple[LedgerEntry, ...]  # every attempt of a step
    requests: tuple[Request, ...]  # what was asked of it, by whom: answers, decisions, stops
    events: tuple[Event, ...]  # what happened, in its order

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        # What the rows of the original tell may not be what those of the copy do.
        for name in vars(copied).keys() - type(self).model_fields.keys():
            del vars(copied)[name]
        return copied

    @cached_property
    def fold(self) -> Fold:
        """What its events tell."""
        fold = Fold(self.started_at)
        for event in self.events:
            fold.apply(event)
        return fold

    @property
    def began(self) -> datetime:
        """Its first moment."""
        return min(self.started_at, self.fold.first_at or self.started_at)

    @property
    def ended(self) -> datetime:
        """Its end, or its last sign of life."""
        moments = (self.last_seen_at, self.fold.first_at, self.fold.last_at)
        return max(each for each in moments if each is not None)

    @property
    def is_over(self) -> bool:
        return self.outcome not in _OPEN

    @property
    def is_killed(self) -> bool:
        """Whether its process was killed, and no other has continued it."""
        return any(each.ended is None and each.why == "killed" for each in self.pauses)

    @property
    def seconds(self) -> float:
        """From its beginning to its end."""
        return (self.ended - self.began).total_seconds()

    @property
    def waited(self) -> float:
        """Seconds in which it waited for a person."""
        return self._seconds_paused("waiting")

    @property
    def unknown(self) -> float:
        """Seconds in some of which a process worked on it that was killed."""
        return self._seconds_paused("killed")

    @property
    def idle(self) -> float:
        """Seconds without work on it, other than waiting for a person."""
        return self._seconds_paused("interrupted", "failed", "over")

    def _seconds_paused(self, *why: str) -> float:
        own = [(each.ended or self.ended) - each.began for each in self.pauses if each.why in why]
        return sum(own, timedelta()).total_seconds()

    @cached_property
    def pauses(self) -> tuple[Pause, ...]:
        """The times between the end of work and the beginning of that of who continues."""
        fold, last = self.fold, self.fold.last_at or self.started_at
        pauses = [*map(self._until_work, fold.pauses, fold.attempts_after)]
        if self.outcome in ("waiting", "interrupted") and fold.why_paused != "over":
            since = last if fold.why_paused else max(last, self.last_seen_at)
            pauses.append(Pause(began=since, ended=None, why=fold.why_paused or "killed"))
        return tuple(pauses)

    def _until_work(self, pause: Pause, begun: Collection[tuple[int, str, int]]) -> Pause:
        """The record of a continuation may be later than the first attempts of it."""
        own = (e for e in self.ledger if (e.step_id, e.specialist, e.number) in begun)
        moments = [each.started_at for each in own if each.started_at > pause.began]
        ended = min(moments, default=pause.ended)
        return (
            replace(pause, ended=ended) if ended and pause.ended and ended < pause.ended else pause
        )

    @cached_property
    def revisions(self) -> tuple[Revision, ...]:
        """The versions of its plan, the first plan before all others."""
        history = self.plan.update_history if self.plan else ()
        reasons = {each.version: each.description for each in history}
        named = {n: "" if why.startswith(_NO_REASON) else why for n, why in reasons.items()}
        user = self.labels.get("user", "")
        handed_in = f"{HANDED_IN} (user={user})" if user else HANDED_IN
        return tuple(
            replace(
                each,
                by=handed_in if each.by == HANDED_IN else each.by,
                why=named.get(each.version, ""),
            )
            for each in self.fold.revisions
        )

    @cached_property
    def attempts(self) -> tuple[AttemptReport, ...]:
        """The attempts of its steps, in the order in which they began."""
        newest = {(each.step_id, each.specialist): each.number for each in self.ledger}
        calls = self.fold.calls
        return tuple(
            AttemptReport(
                entry=each,
                calls=tuple(calls.get((each.step_id, each.specialist, each.number), {}).values()),
                running_at=self.last_seen_at if self._is_running(each) else None,
                is_asked_about=(each.step_id, each.specialist) in self.fold.doubted,
                went_on=each.number < newest[each.step_id, each.specialist],
            )
            for each in self.ledger
        )

    def attempts_of(self, step: int | None = None) -> list[AttemptReport]:
        """The attempts of a step; None: of all."""
        return [each for each in self.attempts if step in (None, each.entry.step_id)]

    def _is_running(self, entry: LedgerEntry) -> bool:
        """Whether the process that works on it began it; one before it may have been killed."""
        is_open = self.outcome == "running" and entry.ended_at is None
        return is_open and self._is_of_now(entry)

    def _is_of_now(self, entry: LedgerEntry) -> bool:
        """Whether an attempt began since the run was last resumed."""
        since = self.fold.resumed.at if self.fold.resumed is not None else None
        return since is None or entry.started_at >= since

    @cached_property
    def steps(self) -> tuple[StepReport, ...]:
        """The steps of its plan, and those that a revision removed."""
        attempts = dict[int, list[AttemptReport]]()
        for each in self.attempts:
            attempts.setdefault(each.entry.step_id, []).append(each)
        planned = self.plan.steps if self.plan else ()
        known = {step.id for step in planned}
        taken = {n: each for each in self.revisions for n in each.removed if n not in known}
        gone = sorted((attempts.keys() | taken.keys()) - known)
        words = {n: taken[n].removed[n] if n in taken else "" for n in gone}
        left = [PlanStep(id=n, description=words[n] or self.fold.tasks.get(n, "")) for n in gone]
        removed = self._texts_of_removed(gone, taken)
        asking = self._asking_steps
        return tuple(
            _step(
                step,
                tuple(attempts.get(step.id, ())),
                removed=removed.get(step.id, ""),
                is_asking=step.id in asking,
            )
            for step in [*planned, *left]
        )

    @property
    def _asking_steps(self) -> set[int]:
        """The steps that wait for a person: where work is in doubt, no attempt says so."""
        if self.is_over:
            return set()
        newest = {(each.step_id, each.specialist): each for each in self.ledger}.values()
        asked = (each for each in newest if each.outcome == "waiting")
        # What was asked before a resumption may have its answer.
        own = {e.step_id for e in asked if self.outcome != "running" or self._is_of_now(e)}
        return own | {each.step_id for each in self.pending_questions}

    def _texts_of_removed(self, gone: Iterable[int], taken: dict[int, Revision]) -> dict[int, str]:
        """What is said about removed steps; a step that is not planned yet is not one."""
        texts = {n: f"removed in version {each.version} by {each.by}" for n, each in taken.items()}
        # Of a run that is over, whatever its plan has not was removed, also where no event says so.
        return {**dict.fromkeys(gone, "removed"), **texts} if self.is_over else texts

    @property
    def progress(self) -> tuple[int, int]:
        """Steps that are done, and all steps."""
        steps = self.plan.steps if self.plan else ()
        return sum(step.status is StepStatus.COMPLETED for step in steps), len(steps)

    @property
    def planned(self) -> list[StepReport]:
        """The steps but for those that a revision removed."""
        return [each for each in self.steps if not each.removed]

    def count(self, status: StepStatus) -> int:
        """How many steps of the plan are so."""
        return sum(each.status is status for each in self.planned)

    def planned_at(self, step: int) -> datetime:
        """When a step was planned: with the plan, or by the revision that added it."""
        return self.fold.planned_at.get(step, self.fold.first_plan_at or self.began)

    @property
    def host_calls(self) -> tuple[HostCall, ...]:
        """The calls of models and tools that the host made, each as its end."""
        return tuple(self.fold.host_calls)

    @cached_property
    def calls(self) -> Calls:
        """All calls of models; of a run whose events report none, as its state has them.

        Where only its last events were read, its end has the counts.
        """
        is_whole = self.events[:1] and self.events[0].seq == 1
        at_end = None if is_whole else counts_in(self.events)
        calls = self.fold.counts.calls if at_end is None else at_end[1]
        if not (calls.number or calls.unfinished):
            calls = Calls.of(self.usage)
        charged = self.spent.get("run")
        return calls if charged is None else with_charged(calls, charged)

    @property
    def anomalies(self) -> Anomalies:
        """What it continued in spite of."""
        return self.fold.counts.anomalies

    def anomalies_of(self, step: StepReport) -> Anomalies:
        """Which calls of a step came to nothing."""
        calls = [call for attempt in step.attempts for call in attempt.calls]
        ends = Counter(each.status for each in calls if isinstance(each, ToolCompleted))
        unusable = sum(each.seq in self.unusable for each in calls)
        return Anomalies(failed=ends["failed"], refused=ends["rejected"], unusable=unusable)

    @property
    def unusable(self) -> dict[int, str]:
        """What was done instead of using a reply, by the number of the end of its call."""
        return dict(self.fold.counts.unusable)


def _step(
    step: PlanStep, attempts: tuple[AttemptReport, ...], *, removed: str, is_asking: bool
) -> StepReport:
    status = StepStatus.SKIPPED if removed else step.status
    if status.is_open and any(each.outcome == "running" for each in attempts):
        status = StepStatus.EXECUTING
    return StepReport(
        step=step,
        status=status,
        attempts=attempts,
        removed=removed,
        is_asking=is_asking and status is StepStatus.PENDING,
    )


def masked(requests: Iterable[Request], questions: Mapping[str, Question]) -> tuple[Request, ...]:
    """Return requests without answers that may have a secret in them."""
    secret = {key: MASK for key, each in questions.items() if each.secret}
    return tuple(
        each.replace(answers={key: secret.get(key, text) for key, text in each.answers.items()})
        for each in requests
    )


def apply(report: Report, event: Event) -> Report:
    """Return the report of a run after one more event; the former one is as it was.

    What the events told so far is handed on, so that a long run is not folded again for each.
    """
    fold = vars(report).pop("fold", None)
    after = report.model_copy(update={"events": (*report.events, event)})
    if fold is not None:
        fold.apply(event)
        vars(after)["fold"] = fold
    return after
