"""Report a run as lines of text, as JSON, or by its answer alone."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from pydantic_core import PydanticSerializationError

from replan.log.events.types import Event, TaskCompleted
from replan.log.report import RunReport
from replan.state.questions import Question
from replan.views.live.plain import Lines

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
