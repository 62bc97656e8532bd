"""Who did what when in a run: a pure fold of its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from replan.plan.model import PlanStep, StepStatus
from replan.runs.course.attempts import AttemptView, attempts_of
from replan.runs.course.revisions import Revision, revisions_in
from replan.runs.log.call_counts import ANSWERED, Calls, calls_of, with_charged
from replan.runs.log.remarks import Anomalies, remarks_of, unusable_replies
from replan.runs.log.run_event import RunEvent

if TYPE_CHECKING:
    from replan.runs.course.whole_run import WholeRun

_CALLS = (*ANSWERED, "tool_completed")
_OPEN = ("running", "waiting", "interrupted")


@dataclass(frozen=True, kw_only=True)
class StepStory:
    step: PlanStep
    status: StepStatus  # as of now: one that is worked on is `executing`
    attempts: tuple[AttemptView, ...]
    removed: str = ""  # which revision took it out of the plan; empty for one that is in it

    @property
    def status_text(self) -> str:
        """Its status, in words."""
        return self.removed or ("waiting" if self.is_asking else self.status.value)

    @property
    def is_asking(self) -> bool:
        """Whether it waits for a person."""
        newest = {each.entry.specialist: each.outcome for each in self.attempts}
        return self.status is StepStatus.PENDING and "waiting" in newest.values()

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
    def tools(self) -> list[RunEvent]:
        calls = [call for each in self.attempts for call in each.calls]
        return [call for call in calls if call.type.startswith("tool_")]


@dataclass(frozen=True, kw_only=True)
class Pause:
    """A time without work on the run; after a kill, its exact length is unknown."""

    began: datetime  # the last sign of life
    ended: datetime | None  # None: it still lasts
    why: str  # `waiting`, `interrupted` or `failed`; `killed` if it could not be recorded
    by: str = ""  # who continued it


@dataclass(frozen=True, kw_only=True)
class Story:
    """The story of a run, from its beginning to now."""

    run: WholeRun
    steps: tuple[StepStory, ...]
    pauses: tuple[Pause, ...]
    revisions: tuple[Revision, ...]  # of its plan, the first plan before all others
    ended: datetime  # its end, or its last sign of life

    @property
    def began(self) -> datetime:
        """Its first moment."""
        moments = [self.run.started_at, *_times(self.run.events)]
        return min(moments)

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

    @property
    def is_killed(self) -> bool:
        """Whether its process was killed, and no other has continued it."""
        return any(each.ended is None and each.why == "killed" for each in self.pauses)

    def _seconds_paused(self, *why: str) -> float:
        own = [(each.ended or self.ended) - each.began for each in self.pauses if each.why in why]
        return sum(own, timedelta()).total_seconds()

    @property
    def host_calls(self) -> list[RunEvent]:
        """The calls of models and tools that the host made, each as its end."""
        return [
            event
            for event in self.run.events
            if event.type in _CALLS and event.details.get("step_id") is None
        ]

    @property
    def calls(self) -> Calls:
        """All calls of models; of a run whose events report none, as its state has them."""
        told, usage = calls_of(self.run.events), getattr(self.run, "usage", None)
        if not (told.number or told.unfinished or usage is None):
            told = Calls.of(usage)
        charged = self.run.spent.get("run")
        return told if charged is None else with_charged(told, charged)

    @cached_property
    def remarks(self) -> Anomalies:
        """What it continued in spite of."""
        return remarks_of(self.run.events, self.unusable)

    @cached_property
    def unusable(self) -> dict[int, str]:
        """What was done instead of using a reply, by the number of its event."""
        return unusable_replies(self.run.events)

    @property
    def is_over(self) -> bool:
        return self.run.outcome not in _OPEN

    def planned_at(self, step: int) -> datetime:
        """When a step was planned: with the plan, or by the revision that added it."""
        return self._planned_at.get(step, self._planned_at[None])

    @cached_property
    def _planned_at(self) -> dict[int | None, datetime]:
        planned: dict[int | None, datetime] = {None: self.began}
        for event in self.run.events:
            changes = cast("dict[str, Any]", event.details.get("changes") or {})
            if event.at is not None:
                added = {each["step"]["id"]: event.at for each in changes.get("added", [])}
                planned |= added if event.type != "plan_created" else {None: event.at}
        return planned

    @property
    def planned(self) -> list[StepStory]:
        """The steps but for those that a revision removed."""
        return [each for each in self.steps if not each.removed]

    def count(self, status: StepStatus) -> int:
        """How many steps of the plan are so."""
        return sum(each.status is status for each in self.planned)


def story_of(run: WholeRun) -> Story:
    attempts = dict[int, list[AttemptView]]()
    for each in attempts_of(run):
        attempts.setdefault(each.entry.step_id, []).append(each)
    ended = max([run.last_seen_at, *_times(run.events)])
    planned = run.plan.steps if run.plan else ()
    known = {step.id for step in planned}
    revisions = tuple(revisions_in(run))
    taken = {step: each for each in revisions for step in each.removed if step not in known}
    gone = [
        PlanStep(
            id=step,
            description=(step in taken and taken[step].removed[step]) or _task(run, step),
        )
        for step in sorted((attempts.keys() | taken.keys()) - known)
    ]
    steps = [*planned, *gone]
    removed = _texts_of_removed(run, {step.id for step in gone}, taken)
    return Story(
        run=run,
        steps=tuple(
            _step(step, tuple(attempts.get(step.id, ())), removed.get(step.id, ""))
            for step in steps
        ),
        pauses=tuple(_pauses(run)),
        revisions=revisions,
        ended=ended,
    )


def _texts_of_removed(
    run: WholeRun, gone: Iterable[int], taken: Mapping[int, Revision]
) -> dict[int, str]:
    """What is said about removed steps; a step that is not planned yet is not one."""
    told = {n: f"removed in version {each.version} by {each.by}" for n, each in taken.items()}
    # Of a run that is over, whatever its plan has not was removed, also where no event says when.
    is_over = run.outcome not in _OPEN
    return {**dict.fromkeys(gone, "removed"), **told} if is_over else told


def _step(step: PlanStep, attempts: tuple[AttemptView, ...], removed: str) -> StepStory:
    if removed:
        return StepStory(step=step, status=StepStatus.SKIPPED, attempts=attempts, removed=removed)
    is_open = step.status.is_open
    busy = is_open and any(each.outcome == "running" for each in attempts)
    status = StepStatus.EXECUTING if busy else step.status
    return StepStory(step=step, status=status, attempts=attempts)


def _task(run: WholeRun, step: int) -> str:
    """What a step was to do that is in the plan no more, or not yet."""
    own = (event.details for event in run.events if event.details.get("step_id") == step)
    return next((str(each["task"]) for each in own if "task" in each), "")


def _times(events: Sequence[RunEvent]) -> list[datetime]:
    return [event.at for event in (*events[:1], *events[-1:]) if event.at is not None]


def _pauses(run: WholeRun) -> list[Pause]:
    """The times between the end of work and the beginning of that of who continues."""
    last, why, pauses = run.started_at, "", list[Pause]()
    began = {(each.step_id, each.specialist, each.number): each.started_at for each in run.ledger}
    for event in run.events:
        if event.at is None:
            continue
        if event.type == "run_resumed":
            by = str(event.details.get("by") or "")
            pauses.append(Pause(began=last, ended=event.at, why=why or "killed", by=by))
        elif event.type == "specialist_invoked" and pauses:
            # The record of a continuation may be later than the first attempts of it.
            said, pause = cast("Mapping[str, Any]", event.details), pauses[-1]
            attempt = said.get("step_id"), said.get("specialist"), said.get("attempt")
            at = began.get(cast("Any", attempt))
            if at is not None and pause.ended is not None and pause.began < at < pause.ended:
                pauses[-1] = replace(pause, ended=at)
        why = "over" if event.type == "task_completed" else ""
        why = str(event.details["reason"]) if event.type == "run_stopped" else why
        last = event.at
    is_over = any(event.type == "task_completed" for event in run.events[-2:])
    if run.outcome in ("waiting", "interrupted") and not is_over:
        since = last if why else max(last, run.last_seen_at)
        pauses.append(Pause(began=since, ended=None, why=why or "killed"))
    return pauses
