"""What was done in a run as a tree: step, attempt, call of a model or a tool."""

from dataclasses import dataclass
from datetime import datetime

from replan.events.types import (
    Event,
    MemorySummary,
    ModelCompleted,
    ModelInvoked,
    ToolCompleted,
    ToolInvoked,
)
from replan.log.calls import Calls, calls_of
from replan.log.report import RunReport
from replan.log.step_reports import AttemptReport, StepReport
from replan.views.call_lines import failure_text, short_call_text
from replan.views.run.error_lines import is_in_text, same_error_before

HOST = 0
"""The number of the branch that has the calls of the host."""

_Ended = ModelCompleted | ToolCompleted | MemorySummary
_OfCall = _Ended | ModelInvoked | ToolInvoked
_TEXTS = {"success": "done", "waiting": "asked a person"}


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a model or a tool."""

    event: _OfCall  # its newest event, whose number is its address in the run
    first: int  # the number of its first event
    at: datetime | None  # when it began
    # running, cut off, failed, done, unusable; of a tool its own word, such as rejected
    state: str
    text: str  # its state in words
    error: str = ""

    @property
    def seq(self) -> int:
        return _seq(self.event)

    @property
    def is_tool(self) -> bool:
        return isinstance(self.event, ToolInvoked | ToolCompleted)

    @property
    def ended(self) -> _Ended | None:
        """The event with which it ended."""
        return self.event if isinstance(self.event, _Ended) else None

    @property
    def name(self) -> str:
        """The model, or the tool with its arguments shortened."""
        event = self.event
        if isinstance(event, ToolInvoked | ToolCompleted):
            return short_call_text(event.tool, event.arguments)
        return event.model


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An attempt of a step at a specialist."""

    report: AttemptReport
    text: str  # how it ended, in words
    error: str  # in full; empty where `text` says where it stands already
    spent: Calls
    calls: tuple[Call, ...]


@dataclass(frozen=True, kw_only=True)
class Branch:
    """A step with its attempts, or the host with its calls, which belong to no attempt."""

    step: StepReport | None = None
    spent: Calls
    seconds: float | None
    attempts: tuple[Attempt, ...] = ()
    calls: tuple[Call, ...] = ()

    @property
    def number(self) -> int:
        return self.step.step.id if self.step else HOST


def tree_of(report: RunReport) -> list[Branch]:
    """Return the branches of a run: the host, then its steps in their order."""
    took, resumed = calls_of(report.host_calls), report.fold.resumed
    since = _seq(resumed) if resumed else 0
    is_at_work = report.outcome == "running"
    calls = (
        _call(call, report, "running" if is_at_work and _seq(call) > since else "cut off")
        for call in report.fold.host_calls.values()
    )
    host = Branch(seconds=took.seconds, spent=took, calls=tuple(calls))
    return [host, *(branch_of(step, report) for step in report.steps)]


def _seq(event: Event) -> int:
    return event.seq or 0


def branch_of(step: StepReport, report: RunReport) -> Branch:
    """Return the branch of one step."""
    tried = tuple(_attempt(attempt, step, report) for attempt in step.attempts)
    return Branch(step=step, seconds=step.seconds, spent=step.calls, attempts=tried)


def _attempt(attempt: AttemptReport, step: StepReport, report: RunReport) -> Attempt:
    no_end = "running" if attempt.outcome == "running" else "cut off"
    elsewhere = _error_elsewhere(attempt, step)
    return Attempt(
        report=attempt,
        text=f"{attempt.outcome_text}: {elsewhere}" if elsewhere else attempt.outcome_text,
        error="" if elsewhere else attempt.entry.error,
        spent=calls_of(attempt.calls),
        calls=tuple(_call(call, report, no_end) for call in attempt.calls),
    )


def _error_elsewhere(attempt: AttemptReport, step: StepReport) -> str:
    """The place that shows the error of an attempt already; empty if there is none."""
    error, above = attempt.entry.error, step.step.feedback
    is_above = error and above and is_in_text(error, above)
    return "the error above" if is_above else same_error_before(attempt, step.attempts)


def _call(event: _OfCall, report: RunReport, no_end: str) -> Call:
    began = event
    if not isinstance(event, MemorySummary):
        began = report.fold.begun.get(event.call_key, event)
    error, state = "", no_end
    if isinstance(event, ToolCompleted):
        error, state = failure_text(event), event.status
    elif isinstance(event, _Ended):
        error, state = event.error, "failed" if event.error else "done"
    instead = report.unusable.get(_seq(event), "")
    return Call(
        event=event,
        first=_seq(began),
        at=began.at,
        state="unusable" if instead else state,
        text=f"not usable, {instead}" if instead else _TEXTS.get(state, state),
        error=error,
    )
