"""One report of a run: its steps, their attempts and calls, and how it ended.

It is made of the rows of the run's log. Everything that shows a run, live or at rest, renders this
value or selects from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from operator import not_
from typing import Any, Self, cast

from pydantic import Field, JsonValue

from replan.base.secrets.masking import MASK
from replan.base.values import Value, restored
from replan.log.amounts import NOTHING, Spending
from replan.log.calls import Calls, with_charged, with_usage
from replan.log.equal_calls import EqualCall
from replan.log.events.types import Event, RunSteered, ToolCompleted
from replan.log.fold import (
    HANDED_IN,
    Anomalies,
    AttemptAt,
    Fold,
    HostCall,
    Pause,
    Revision,
    counts_in,
    steps_in,
)
from replan.log.kept_events import events_of
from replan.log.reasons import Reported, why_ended
from replan.log.rows import (
    FORKED,
    REPORT,
    Fork,
    LedgerEntry,
    Request,
    Rows,
    requests_in,
    reserved_in,
    spent_in,
)
from replan.log.step_reports import AttemptReport, StepReport
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.state.outcomes import NOT_OVER, Artifact, RunOutcome
from replan.state.questions import Question, short_key
from replan.state.usage import Usage

LAST_EVENTS = 2  # of a run that is over: its end, and a summary of the conversation after it

LEAST_LEFT = 1.0
"""Seconds after an answer that are told, if nobody continues the run; to begin takes some, too."""

NOT_PLANNED = "began before the plan, which does not have it"
"""What is said about a step that began while the plan was written, and that the plan lacks."""

LEFT_BEHIND = "of a plan that the run had before it went back"
"""What is said about a step that only an abandoned branch of the run had in its plan."""

_NO_REASON = "Changed by a person"  # what the history of a plan says about every such change


class StateFacts(Value):
    """What of a run its state tells, and its events do not; kept as a row once it is over."""

    plan: TaskPlan | None = None  # its plan with all marks and its history
    answer: str = ""  # the text of the answer
    output: JsonValue = None  # the answer's value, where it is of a type
    limit_reached: str = ""  # the limit that ended it, or cut its answer off
    larger_limit: str = ""  # a value of that limit with which it has room; empty where none helps
    warnings: tuple[str, ...] = ()  # what a person may not expect
    usage: Usage = Usage()  # model calls, tokens and money of all rounds that are over
    # What its steps asked, and the answers, by key; those that may have a secret are masked.
    questions: dict[str, Question] = Field(default_factory=dict[str, Question])
    artifacts: tuple[Artifact, ...] = ()  # the files that its steps left, each once
    origin: str = ""  # the run with whose document it began and whose results it kept
    is_final: bool = False  # whether it ended, and not because of a limit


class RunReport(StateFacts):
    """A run, from its beginning to now: at work, at rest, or exported.

    Its rows are fields; `steps`, `attempts`, `pauses`, `revisions`, `calls` and `reason` are what
    they tell.
    """

    run_id: str
    title: str = ""  # what it is about
    team: str = ""  # the name of its team; empty if it is not known
    # Its file, `default` or `python`: a path of the machine that began it.
    team_source: str = Field(default="", exclude=True, repr=False)
    unsafe: tuple[str, ...] = ()  # the specialists whose work must not happen twice
    currency: str = ""  # that of its costs; empty where its team names none
    outcome: RunOutcome  # its status
    started_at: datetime  # when it began
    last_seen_at: datetime  # the time of its last sign of life: now, while a process works on it
    labels: dict[str, str]  # what it is found by
    spent: dict[str, Spending]  # what each scope of its limits was charged
    # What of it is reserved for calls without an end: still at work, or cut off.
    reserved: Spending = Field(default=NOTHING, exclude_if=lambda amount: amount == NOTHING)
    pending_questions: tuple[Question, ...] = ()  # what it waits for
    # Calls of other runs that equal those that it asks about, by the keys of the questions.
    equal_calls: dict[str, EqualCall] = Field(default_factory=dict[str, EqualCall])
    is_held: bool = False  # whether a process works on it now, or will: its work waits in a queue
    is_queued: bool = False  # whether its work waits in a queue
    requests: tuple[Request, ...]  # what was asked of it, by whom: answers, decisions, stops
    events: tuple[Event, ...]  # what happened, in its order
    # When it went back to an older state of its own.
    forks: tuple[Fork, ...] = Field(default=(), exclude_if=not_)
    # Attempts of a graph that was called by its own methods, of which no event tells.
    untold: tuple[LedgerEntry, ...] = Field(default=(), exclude_if=not_)
    # Live only: what steps at work wrote since their last event, by step and specialist; what a
    # pipeline outside a plan writes is that of step 0.
    drafts: dict[tuple[int, str], str] = Field(
        default_factory=dict[tuple[int, str], str], exclude=True, repr=False
    )
    # Live only: the steps whose questions were answered, and that do not go on yet.
    answered: frozenset[int] = Field(default=frozenset(), exclude=True, repr=False)

    @classmethod
    def begun(cls, run_id: str, at: datetime, currency: str = "") -> Self:
        """Return the report of a run that begins, of which nothing happened yet."""
        first_fields: dict[str, Any] = {"run_id": run_id, "outcome": "running", "started_at": at}
        rows: dict[str, Any] = {"labels": {}, "spent": {}, "requests": ()}
        return cls(**first_fields, **rows, currency=currency, last_seen_at=at, events=())

    def answer_to(self, question: Question) -> Request | None:
        """The newest request that answers an open question; the run has not taken it yet."""
        for request in reversed(() if question.problem else self.requests):
            row = request.answers.get(question.key)
            if isinstance(row, dict) and row.get("fingerprint") == question.fingerprint:
                return request
        return None

    @property
    def unanswered(self) -> tuple[Question, ...]:
        """The open questions that have no answer on record."""
        return tuple(each for each in self.pending_questions if self.answer_to(each) is None)

    def questions_without(self, key: str) -> tuple[Question, ...]:
        """The open questions but for one."""
        return tuple(q for q in self.pending_questions if short_key(q.key) != short_key(key))

    def after_answer(self, key: str) -> Self:
        """Return the report after a person answered a question, which the run has not taken yet."""
        steps = {q.step_id for q in self.pending_questions if short_key(q.key) == short_key(key)}
        left = self.questions_without(key)
        answered = self.answered | (steps - {question.step_id for question in left})
        return self.model_copy(update={"pending_questions": left, "answered": answered})

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with changes, which tells what its own rows do."""
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
        fold.add_attempts(self.untold)
        return fold

    def is_unsafe(self, step: PlanStep) -> bool:
        """Whether the work of a step must not happen twice, as its team declares it."""
        unsafe = {name.casefold() for name in self.unsafe}
        # What began before its plan is known by who does it.
        known = self.by_id.get(step.id)
        who = step.specialists or (known.specialists if known else ())
        return any(name.casefold() in unsafe for name in who)

    @property
    def began(self) -> datetime:
        """Its first moment."""
        return min(self.started_at, self.fold.first_at or self.started_at)

    @property
    def ended(self) -> datetime:
        """Its end, or its last sign of life."""
        moments = (self.last_seen_at, self.fold.first_at, self.fold.last_at)
        return max(moment for moment in moments if moment is not None)

    @property
    def is_over(self) -> bool:
        """Whether it ended, and neither runs nor rests."""
        return self.outcome not in NOT_OVER

    @property
    def reason(self) -> str:
        """Why it ended, or does not continue; empty while it works."""
        return why_ended(cast("Reported", self))

    @property
    def is_killed(self) -> bool:
        """Whether its process was killed, and no other has continued it."""
        return any(pause.ended is None and pause.why == "killed" for pause in self.pauses)

    @property
    def seconds(self) -> float:
        """From its beginning to its end."""
        return (self.ended - self.began).total_seconds()

    @property
    def worked(self) -> float:
        """Seconds in which it was worked on."""
        return max(0.0, self.seconds - self.waited - self.idle - self.unknown)

    @property
    def waited(self) -> float:
        """Seconds in which it waited for a person."""
        return self._seconds_paused("waiting") - self._answered

    @property
    def unknown(self) -> float:
        """Seconds in some of which a process worked on it that was killed."""
        return self._seconds_paused("killed")

    @property
    def idle(self) -> float:
        """Seconds without work on it, other than waiting for a person."""
        return self._seconds_paused("interrupted", "failed", "over") + self._answered

    @property
    def _answered(self) -> float:
        """Seconds in which nobody continued it although it was answered."""
        times = (
            (pause.ended or self.ended) - pause.answered_at
            for pause in self.pauses
            if pause.answered_at is not None
        )
        return sum(times, timedelta()).total_seconds()

    def _seconds_paused(self, *why: str) -> float:
        pauses_of_run = [
            (pause.ended or self.ended) - pause.began for pause in self.pauses if pause.why in why
        ]
        return sum(pauses_of_run, timedelta()).total_seconds()

    @property
    def steers(self) -> tuple[RunSteered, ...]:
        """What people ask of it that it has noticed and not taken yet."""
        if self.is_over:
            return ()
        return tuple(event for event in self.fold.steered.values() if event.status == "waits")

    @cached_property
    def pauses(self) -> tuple[Pause, ...]:
        """The times between the end of work and the beginning of that of who continues."""
        fold, last = self.fold, self.fold.last_at or self.started_at
        pauses = [*fold.pauses]
        untold = [each.started_at for each in self.untold if each.started_at > last]
        if untold and fold.why_paused != "over":
            # What goes on without events says neither that it begins nor who does it.
            pauses.append(Pause(began=last, ended=min(untold), why=fold.why_paused or "killed"))
        if self.outcome in ("waiting", "interrupted") and fold.why_paused != "over":
            since = last if fold.why_paused else max(last, self.last_seen_at)
            pauses.append(Pause(began=since, ended=None, why=fold.why_paused or "killed"))
        return tuple(map(self._with_answer, pauses))

    def _with_answer(self, pause: Pause) -> Pause:
        """A pause with the time from which nobody had to be waited for, if it lasted on."""
        ended = pause.ended or self.ended
        if pause.why != "waiting" or (pause.ended is None and self.unanswered):
            return pause
        # The same answer may come again as long as nobody goes on with the first.
        firsts = dict[str, datetime]()
        for request in self.requests:
            if request.kind == "answer" and pause.began <= request.at <= ended:
                firsts |= {key: request.at for key in request.answers if key not in firsts}
        at = max(firsts.values(), default=ended)
        is_left = (ended - at).total_seconds() >= LEAST_LEFT
        return replace(pause, answered_at=at) if is_left else pause

    @cached_property
    def revisions(self) -> tuple[Revision, ...]:
        """The versions of its plan, the first plan before all others."""
        history = self.plan.update_history if self.plan else ()
        # A run that went back may have made a version twice.
        named = {
            (each.version, each.by, steps_in(each.changes)): each.description for each in history
        }
        user = self.labels.get("user", "")
        handed_in = f"{HANDED_IN} (user={user})" if user else HANDED_IN
        return tuple(
            replace(
                revision,
                by=handed_in if revision.by == HANDED_IN else revision.by,
                why=_reason_in(named.get((revision.version, revision.author, revision.steps), "")),
            )
            for revision in self.fold.revisions
        )

    @cached_property
    def attempts(self) -> tuple[AttemptReport, ...]:
        """The attempts of its steps, in the order in which they began."""
        return tuple(self._attempt(at, entry) for at, entry in self.fold.attempts.items())

    def _attempt(self, at: AttemptAt, entry: LedgerEntry) -> AttemptReport:
        fold, is_open = self.fold, entry.ended_at is None
        following = fold.attempts.get((*at[:2], entry.number + 1))
        is_at_work = self.outcome == "running" and at[:2] in fold.at_work
        # When it asked a person, or a person was asked what it did.
        asked_at = (entry.ended_at if entry.outcome == "waiting" else None) or fold.doubted.get(at)
        if asked_at is not None and entry.outcome not in ("done", "failed"):
            until = following.started_at if following else self.ended
        else:
            cuts = (pause.began for pause in self.pauses if pause.began >= entry.started_at)
            until = entry.ended_at or next(cuts, self.ended)
        return AttemptReport(
            entry=entry,
            calls=tuple(fold.calls.get(at, {}).values()),
            # Of one before it, the process may have been killed.
            running_at=self.last_seen_at if is_at_work and is_open and not following else None,
            is_asked_about=any(attempt[:2] == at[:2] for attempt in fold.doubted),
            until=until,
            went_on=following is not None,
            asked_at=asked_at,
        )

    def attempts_of(self, step: int | None = None) -> list[AttemptReport]:
        """The attempts of a step; None: of all."""
        return [attempt for attempt in self.attempts if step in (None, attempt.entry.step_id)]

    @cached_property
    def steps(self) -> tuple[StepReport, ...]:
        """The steps of its plan, and those that a revision removed."""
        attempts = dict[int, list[AttemptReport]]()
        for attempt in self.attempts:
            attempts.setdefault(attempt.entry.step_id, []).append(attempt)
        planned = self.plan.steps if self.plan else ()
        ids = {step.id for step in planned}
        removed_by = {
            n: revision for revision in self.revisions for n in revision.removed if n not in ids
        }
        gone = sorted((attempts.keys() | removed_by.keys()) - ids)
        words = {n: removed_by[n].removed[n] if n in removed_by else "" for n in gone}
        left = [PlanStep(id=n, description=words[n] or self.fold.tasks.get(n, "")) for n in gone]
        left = [*map(self.fold.marked, left)]
        removed = self._texts_of_removed(gone, removed_by)
        asking, at_work = self._asking_steps, set[int]()
        if self.outcome == "running":
            at_work = {step for step, _ in self.fold.at_work}

        def report_of(step: PlanStep) -> StepReport:
            status = StepStatus.SKIPPED if step.id in removed else step.status
            is_at_work = status.is_open and step.id in at_work
            status = StepStatus.EXECUTING if is_at_work else status
            return StepReport(
                step=step,
                status=status,
                attempts=tuple(attempts.get(step.id, ())),
                removed=removed.get(step.id, ""),
                is_early=self._has_early_steps and step.id not in {*ids, *removed},
                is_asking=step.id in asking and status is StepStatus.PENDING,
            )

        return tuple(map(report_of, [*planned, *left]))

    @property
    def is_planning(self) -> bool:
        """Whether the host has not finished the first plan."""
        return self.plan is None and self.fold.is_planning

    @property
    def _has_early_steps(self) -> bool:
        """Whether steps that are in no plan may have begun before theirs."""
        return self.plan is not None or self.is_planning

    @property
    def _asking_steps(self) -> set[int]:
        """The steps that wait for a person: where work is in doubt, no attempt says so."""
        if self.is_over:
            return set()
        asking_ids = {step for step, _ in self.fold.asking}
        return (asking_ids - self.answered) | {
            question.step_id for question in self.pending_questions
        }

    def _texts_of_removed(
        self, gone: Iterable[int], removed_by: dict[int, Revision]
    ) -> dict[int, str]:
        """What is said about removed steps; a step that is not planned yet is not one."""
        texts = dict.fromkeys(gone, LEFT_BEHIND) if self.forks else {}
        texts |= {n: NOT_PLANNED for n in gone if n in self.fold.dropped}
        texts |= {
            n: f"removed in version {revision.version} by {revision.by}"
            for n, revision in removed_by.items()
        }
        # Of a run that is over, whatever its plan has not was removed, also where no event says so.
        return {**dict.fromkeys(gone, "removed"), **texts} if self.is_over else texts

    @cached_property
    def by_id(self) -> dict[int, StepReport]:
        """Its steps by their numbers."""
        return {step.step.id: step for step in self.steps}

    @property
    def progress(self) -> tuple[int, int]:
        """Steps that are done, and all steps."""
        steps = self.plan.steps if self.plan else ()
        return sum(step.status is StepStatus.COMPLETED for step in steps), len(steps)

    @cached_property
    def planned(self) -> list[StepReport]:
        """The steps but for those that a revision removed."""
        return [step for step in self.steps if not step.removed]

    def of_status(self, status: StepStatus) -> list[StepReport]:
        """The steps of the plan that are so."""
        return [step for step in self.planned if step.status is status]

    def count(self, status: StepStatus) -> int:
        """How many steps of the plan are so."""
        return len(self.of_status(status))

    def obstacles(self, step: PlanStep) -> tuple[list[int], list[int]]:
        """What a step waits for: the steps that failed and block it, and those that are coming."""
        before = [self.by_id[step_id] for step_id in step.awaits if step_id in self.by_id]
        handled = step.condition.step if step.condition else None
        failed = [
            step.step.id
            for step in before
            if step.status is StepStatus.FAILED
            and not step.step.optional
            and step.step.id != handled
        ]
        return failed, [step.step.id for step in before if step.status.is_open]

    def planned_at(self, step: int) -> datetime:
        """When a step was planned: with the plan, or by the revision that added it."""
        return self.fold.planned_at.get(step, self.fold.first_plan_at or self.began)

    @property
    def host_calls(self) -> tuple[HostCall, ...]:
        """The calls of models and tools that the host made, each as its end."""
        return tuple(e for e in self.fold.host_calls.values() if isinstance(e, HostCall))

    @cached_property
    def calls(self) -> Calls:
        """All calls of models; of a run whose events do not report all, as its state has them.

        Where only its last events were read, its end has the counts.
        """
        calls = with_usage(self._counts[1], self.usage)
        charged = self.spent.get("run")
        return calls if charged is None else with_charged(calls, charged, self.reserved)

    @property
    def anomalies(self) -> Anomalies:
        """What it continued in spite of."""
        return self._counts[0]

    @cached_property
    def _counts(self) -> tuple[Anomalies, Calls]:
        is_whole = self.events[:1] and self.events[0].seq == 1
        at_end = None if is_whole else counts_in(self.events)
        return at_end or (self.fold.counts.anomalies, self.fold.counts.calls)

    def anomalies_of(self, step: StepReport) -> Anomalies:
        """Which calls of a step came to nothing."""
        calls = [call for attempt in step.attempts for call in attempt.calls]
        ends = Counter(call.status for call in calls if isinstance(call, ToolCompleted))
        unusable = sum(call.seq in self.unusable for call in calls)
        return Anomalies(failed=ends["failed"], refused=ends["rejected"], unusable=unusable)

    @property
    def unusable(self) -> Mapping[int, str]:
        """What was done instead of using a reply, by the number of the end of its call."""
        return self.fold.counts.unusable


def _reason_in(why: str) -> str:
    return "" if why.startswith(_NO_REASON) else why


def kept_report(rows: Rows, run_id: str, last: int | None = None) -> Mapping[str, Any] | None:
    """What a log has of the report of a run that is over; None if the run went on or back since.

    Args:
        rows: Its rows.
        run_id: The run.
        last: How many of its last events are read, and no requests; None: everything.
    """
    newest = rows.newest_event()
    key = f"{REPORT}{newest}"
    if not rows.has(key) or rows.below(FORKED):
        return None
    facts = restored(StateFacts, rows.value(key))
    logged = rows.events(0 if last is None else max(0, newest - last))
    return {
        **dict(facts),
        "spent": dict(spent_in(rows)),
        "reserved": reserved_in(rows),
        "requests": masked(requests_in(rows, run_id), facts.questions) if last is None else (),
        "events": tuple(events_of(run_id, logged)),
    }


def masked(requests: Iterable[Request], questions: Mapping[str, Question]) -> tuple[Request, ...]:
    """Return requests without answers that may have a secret in them."""
    secret = {key: MASK for key, question in questions.items() if question.secret}
    return tuple(
        request.replace(
            answers={key: secret.get(key, text) for key, text in request.answers.items()}, said=""
        )
        for request in requests
    )
