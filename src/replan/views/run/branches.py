"""What was done in a run, for all who show it: the host and the steps, attempts, and calls."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from replan.log.calls import Calls, calls_of
from replan.log.events.types import (
    Event,
    MemorySummary,
    ModelCompleted,
    ModelInvoked,
    ToolCompleted,
    ToolInvoked,
)
from replan.log.kept_events import prompt_of, with_whole_texts
from replan.log.report import RunReport
from replan.log.step_reports import AttemptReport, StepReport
from replan.runs.reports import ThreadView, WholeReport
from replan.views.cells import amount, counted, one_line
from replan.views.event_lines import call_text, failure_text, short_call_text
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
    begun: _OfCall  # its first event
    # running, cut off, failed, done, unusable; of a tool its own word, such as rejected
    state: str
    text: str  # its state in words
    error: str = ""

    @property
    def seq(self) -> int:
        return _seq(self.event)

    @property
    def first(self) -> int:
        """The number of its first event."""
        return _seq(self.begun)

    @property
    def at(self) -> datetime | None:
        """When it began."""
        return self.begun.at

    @property
    def is_tool(self) -> bool:
        return isinstance(self.event, ToolInvoked | ToolCompleted)

    @property
    def ended(self) -> _Ended | None:
        """The event with which it ended."""
        return self.event if isinstance(self.event, _Ended) else None

    @property
    def name(self) -> str:
        """The model and what it was asked for, or the tool with its arguments shortened."""
        event = self.event
        if isinstance(event, ToolInvoked | ToolCompleted):
            return short_call_text(event.tool, event.arguments)
        what = "reads knowledge" if event.node == "knowledge" else event.node
        return one_line(
            event.model if what.startswith("specialist_") else f"{event.model} ({what})"
        )

    def took(self, currency: str) -> str:
        """What it took, in words; empty where it has no end."""
        event = self.ended
        if event is None:
            return ""
        took = f"{event.seconds:.2f} s"
        if isinstance(event, ToolCompleted):
            approval = "changed" if event.approval == "edited" else event.approval
            return f"{approval} by a person, {took}" if approval else took
        if event.error:
            # A failed call of which its server may have done something is charged in full.
            charged = (
                f", charged {amount(event.cost or 0, currency)} in full as its cost is unknown"
            )
            return f"{took}{charged if event.cost else ''}"
        counts = [event.input_tokens, event.output_tokens]
        tokens = "tokens unknown" if None in counts else f"{counts[0]} in + {counts[1]} out tokens"
        cost = "cost unknown" if event.cost is None else f"cost {amount(event.cost, currency)}"
        return f"{tokens}, {cost}, {took}"


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """An attempt of a step at a specialist."""

    report: AttemptReport
    text: str  # how it ended, in words
    error: str  # in full; empty where `text` says where it stands already
    calls: tuple[Call, ...]

    @property
    def spent(self) -> Calls:
        return calls_of(self.report.calls)


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


def branches_of(report: RunReport) -> list[Branch]:
    """Return the branches of a run: the host, then its steps in their order."""
    took = calls_of(report.host_calls)
    host = Branch(seconds=took.seconds, spent=took, calls=tuple(host_calls_of(report)))
    return [host, *(branch_of(step, report) for step in report.steps)]


def host_calls_of(report: RunReport) -> Iterator[Call]:
    """The calls that the host made."""
    resumed, is_at_work = report.fold.resumed, report.outcome == "running"
    since = _seq(resumed) if resumed else 0
    for call in report.fold.host_calls.values():
        yield _call(call, report, "running" if is_at_work and _seq(call) > since else "cut off")


def branch_of(step: StepReport, report: RunReport) -> Branch:
    """Return the branch of one step."""
    tried = tuple(attempt_of(attempt, report) for attempt in step.attempts)
    return Branch(step=step, seconds=step.seconds, spent=step.calls, attempts=tried)


def attempt_of(attempt: AttemptReport, report: RunReport) -> Attempt:
    """An attempt with its calls."""
    no_end = "running" if attempt.outcome == "running" else "cut off"
    elsewhere = _error_elsewhere(attempt, report.by_id[attempt.entry.step_id])
    return Attempt(
        report=attempt,
        text=f"{attempt.outcome_text}: {elsewhere}" if elsewhere else attempt.outcome_text,
        error="" if elsewhere else attempt.entry.error,
        calls=tuple(_call(call, report, no_end) for call in attempt.calls),
    )


def _seq(event: Event) -> int:
    return event.seq or 0


def _error_elsewhere(attempt: AttemptReport, step: StepReport) -> str:
    """The place that shows the error of an attempt already; empty if there is none."""
    error, above = attempt.entry.error, step.step.feedback
    is_above = error and above and is_in_text(error, above)
    return "the error above" if is_above else same_error_before(attempt, step.attempts)


def _call(event: _OfCall, report: RunReport, no_end: str) -> Call:
    begun = event
    if not isinstance(event, MemorySummary):
        begun = report.fold.begun.get(event.call_key, event)
    error, state = "", no_end
    if isinstance(event, ToolCompleted):
        error, state = failure_text(event), event.status
    elif isinstance(event, _Ended):
        error, state = event.error, "failed" if event.error else "done"
    instead = report.unusable.get(_seq(event), "")
    return Call(
        event=event,
        begun=begun,
        state="unusable" if instead else state,
        text=f"not usable, {instead}" if instead else _TEXTS.get(state, state),
        error=error,
    )


def thread_lines(
    threads: Iterable[ThreadView], step: int | None = None
) -> Iterator[tuple[int, str]]:
    """The threads of pipelines, each with how many are above it: where it is, and its phases."""
    rows = [thread for thread in threads if step in (None, thread.step_id)]
    for thread in rows:
        replaced = ", replaced by a retry" if thread.is_replaced else ""
        # An error stands where it came from, and not once more above it.
        is_below = any((t.error, t.depth > thread.depth) == (thread.error, True) for t in rows)
        error = f": {one_line(thread.error)}" if not is_below else ""
        failed = f", failed{error}" if thread.error else ""
        phases = one_line(" > ".join(thread.phases))
        who = "sub-thread" if thread.depth else f"thread of {one_line(thread.specialist)}"
        how = f"{one_line(thread.phase)}, {counted(thread.messages, 'message')}{replaced}{failed}"
        yield thread.depth, f"{who}: {how}{f' ({phases})' if phases else ''}"


def tool_text(call: Call, run: WholeReport) -> str:
    """The call of a tool with its whole arguments."""
    event = with_whole_texts(call.event, run.texts)
    is_tool = isinstance(event, ToolInvoked | ToolCompleted)
    return call_text(event.tool, event.arguments) if is_tool else call.name


def has_prompt(call: Call) -> bool:
    """Whether what a model was sent is on record."""
    return bool(prompt_of(call.begun))
