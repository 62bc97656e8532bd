"""Report a run as lines of its events, as JSON, or by its answer alone."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pydantic_core import PydanticSerializationError

from replan.base.texts.signs import harmless
from replan.log.events import types as events
from replan.log.events.types import Event, TaskCompleted
from replan.log.report import RunReport
from replan.log.step_reports import awaited
from replan.plan.model import PlanStep
from replan.state.outcomes import cut_in_words
from replan.state.questions import Question
from replan.state.results import ExecutionStatus
from replan.views.cells import one_line
from replan.views.event_lines import who
from replan.views.live.notices import notice, said_lines, warnings_shown_by
from replan.views.run.below_answer import account, files, warnings
from replan.views.run.error_lines import failed_above
from replan.views.step_texts import waits_in_words

_MARKS = {
    ExecutionStatus.SUCCESS: "[x]",
    ExecutionStatus.PARTIAL: "[~]",
    ExecutionStatus.FAILED: "[!]",
}


class Lines:
    """Turns one run's events into text, in their order."""

    def __init__(self, *, workspace: Path, quiet: bool = False, verbose: bool = False) -> None:
        """Begin a run."""
        self._workspace = workspace
        self._quiet = quiet
        self._verbose = verbose
        self._is_mid_line = False  # whether the last piece of an answer ended within a line
        self._shown_warnings: set[str] = set()

    def lines_of(self, event: events.Event, before: RunReport, after: RunReport) -> str:
        """The text that an event adds to the terminal, with its line ends; often empty."""
        match event:
            case events.AnswerToken() | events.AnswerReset():
                text = self._answer_piece(event, before)
            case events.TaskCompleted():
                text = self._end_lines(event, before, after)
            case _ if self._quiet:
                text = ""
            case _:
                said = said_lines(before, event) if self._verbose else []
                text = "".join(f"{line}\n" for line in said) + self._work_lines(event)
                text = self.broken_off() + text if text else ""
        if text:
            self._is_mid_line = not text.endswith("\n")
        self._shown_warnings |= warnings_shown_by(event)
        return harmless(text)

    def broken_off(self) -> str:
        """The text that closes a run which ended without its last event."""
        return "\n" if self._is_mid_line else ""

    def _work_lines(self, event: events.Event) -> str:
        match event:
            case events.SpecialistInvoked() | events.SpecialistRetried() | events.StepDeferred():
                return f"{_attempt_line(event)}\n"
            case events.SpecialistCompleted():
                return f"{_step_end_line(event)}\n"
            case events.PlanCreated() | events.PlanUpdated():
                return _plan_text(event)
            case events.ThinkingStarted():
                return "thinking\n"
            case _:
                line = notice(event, verbose=self._verbose)
                return f"{line}\n" if line else ""

    def _answer_piece(
        self, event: events.AnswerToken | events.AnswerReset, report: RunReport
    ) -> str:
        if isinstance(event, events.AnswerReset):
            return f"{self.broken_off()}(the answer begins again)\n"
        is_first = not (report.answer or self._quiet)
        return f"\n{_above_answer(report)}{event.text}" if is_first else event.text

    def _end_lines(self, event: events.TaskCompleted, before: RunReport, after: RunReport) -> str:
        """The remaining output: the answer if it was not streamed, files, and the account."""
        text = self._rest_of_answer(event.text, before)
        if self._quiet:
            return text
        made = files(after.artifacts, self._workspace)
        warned = "".join(f"{line}\n" for line in warnings(event, self._shown_warnings))
        return f"{text}\n{made}{warned}{account(after)}"

    def _rest_of_answer(self, answer: str, report: RunReport) -> str:
        streamed = report.answer
        if streamed.strip() and answer.startswith(streamed.rstrip()):
            rest = answer[len(streamed) :]
            is_closed = rest.endswith("\n") or not (rest or self._is_mid_line)
            return rest if is_closed else f"{rest}\n"
        # Nothing was streamed, or something else than what counts in the end.
        told = "" if self._quiet or streamed.strip() else _above_answer(report)
        before = self.broken_off() if self._quiet else f"{self.broken_off()}\n{told}"
        return before + answer.rstrip("\n") + "\n"


def _above_answer(report: RunReport) -> str:
    return "".join(f"{line}\n" for line in failed_above(report))


def _step_end_line(event: events.SpecialistCompleted) -> str:
    error = f": {one_line(event.error)}" if event.error else ""
    cut = f" (incomplete: {cut_in_words(event.cut)})" if event.cut else ""
    return f"{_MARKS[event.status]} {who(event)}{error}{cut} ({event.seconds:.1f} s)"


def _attempt_line(
    event: events.SpecialistInvoked | events.SpecialistRetried | events.StepDeferred,
) -> str:
    match event:
        case events.SpecialistInvoked():
            return f"-> {who(event)}: {one_line(event.task)}"
        case events.SpecialistRetried():
            return f"[~] {who(event)}: {one_line(event.error)}; trying again"
        case events.StepDeferred():
            steps = event.waiting_for
            waits = awaited((), steps) if steps else "waits for another round"
            return f"[ ] {who(event)}: {waits}"


def _plan_text(event: events.PlanCreated | events.PlanUpdated) -> str:
    """A new plan in full, a revised one by its open steps; new statuses have had their lines."""
    if isinstance(event, events.PlanCreated):
        return f"\n{event.markdown.strip()}\n\n"
    if not event.changes or event.plan is None:
        return ""
    steps = "".join(f"    {_open_step(step)}\n" for step in event.plan.open_steps())
    return f"{notice(event)}; open steps:\n{steps}"


def _open_step(step: PlanStep) -> str:
    names = "".join(f" @{name}" for name in step.specialists)
    after = "".join(f" ({wait})" for wait in waits_in_words(step))
    return f"[ ] {step.id} {one_line(step.description)}{names}{after}"


_STEERING = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Reporter:
    """Reports to people or programs what happens in a run; a method left out reports nothing."""

    def say(self, text: str) -> None:
        """Say something before the run begins."""

    def report(self, event: Event, before: RunReport, after: RunReport) -> None:
        """Report an event, with the run before and after it."""

    def follow(self, run: RunReport) -> None:
        """Take the status of the run, and print nothing."""

    def remark(self, line: str) -> None:
        """Tell a person something that is not an event."""

    def pause(self, *, shows_plan: bool = False) -> None:
        """Leave the terminal to other output, below the current plan or without it."""

    def proceed(self, run: RunReport) -> None:
        """Take the terminal back, and show the current state of the run."""

    def close(self) -> None:
        """End the output, also that of a run that was cut off."""


@dataclass
class JsonReporter(Reporter):
    """Writes each event as a line of JSON, and nothing else."""

    output: TextIO

    def report(self, event: Event, before: RunReport, after: RunReport) -> None:
        """Write an event."""
        is_end = isinstance(event, TaskCompleted)
        self.output.write(json_line(event.replace(usage=after.usage) if is_end else event))
        self.output.flush()


@dataclass
class LineReporter(Reporter):
    """Writes lines of text."""

    lines: Lines
    output: TextIO
    errors: TextIO

    def say(self, text: str) -> None:
        """Write a line."""
        self.output.write(f"{text}\n")

    def report(self, event: Event, before: RunReport, after: RunReport) -> None:
        """Write the output of an event."""
        self.output.write(self.lines.lines_of(event, before, after))
        self.output.flush()

    def remark(self, line: str) -> None:
        """Write a line that does not belong to the run."""
        self.errors.write(f"{line}\n")
        self.errors.flush()

    def pause(self, *, shows_plan: bool = False) -> None:
        """End the line that was begun."""
        self.close()

    def close(self) -> None:
        """End the line that was begun."""
        self.output.write(self.lines.broken_off())
        self.output.flush()


class AnswerReporter(LineReporter):
    """Writes the answer alone, on a terminal, when it is whole."""

    def report(self, event: Event, before: RunReport, after: RunReport) -> None:
        """Write the answer."""
        from replan.views.rendered import console_on, print_markdown  # noqa: PLC0415 - only a terminal needs it

        if isinstance(event, TaskCompleted):
            print_markdown(console_on(self.output), event.text)


def json_line(event: Event) -> str:
    """Write an event as one line of JSON that steers no terminal; the last one has the answer."""
    if isinstance(event, TaskCompleted):
        end = {"answer": event.text, "output": event.output}
        usage = event.usage.model_dump(mode="json")
        return _harmless_json(json.dumps({**event.model_dump(mode="json"), **end, "usage": usage}))
    try:
        text = event.model_dump_json()
    except PydanticSerializationError:
        # Half a character is not UTF-8, but JSON can spell it.
        text = json.dumps(event.model_dump(mode="json"))
    return _harmless_json(text)


def rest_line(kind: str, run_id: str, asks: Sequence[Question], resume: str) -> str:
    """Write the status of a run that is not over, `waiting` or `interrupted`, and what is next."""
    questions = [
        {"key": ask.key, "kind": ask.kind, "text": ask.text, "details": ask.details} for ask in asks
    ]
    record = {"type": kind, "run_id": run_id, "pending_questions": questions, "resume": resume}
    return _harmless_json(json.dumps(record))


def _harmless_json(text: str) -> str:
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"
