"""Choose how a run is told: live on a terminal, as lines, or as JSON."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

from pydantic_core import PydanticSerializationError

from replan.cli.course import Course
from replan.cli.lines import Lines
from replan.events.types import Event

_STEERING = re.compile("[\x7f-\x9f\u2028\u2029]")
_POOR_TERMINALS = ("dumb", "unknown")


class Teller(Protocol):
    """Tells people or programs what happens in a run."""

    def tell(self, event: Event, course: Course) -> None:
        """Tell of an event; `course` is the run after it."""
        ...

    def close(self) -> None:
        """End the telling, also of a run that was broken off."""
        ...


@dataclass(frozen=True, kw_only=True)
class Manner:
    """How to tell: JSON goes before quiet, quiet before verbose."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False


def teller(
    manner: Manner, output: TextIO, *, workspace: Path, terminal: str, clock: Callable[[], float]
) -> Teller:
    """Choose by what was asked for and by where it goes.

    Args:
        manner: What was asked for.
        output: Where it goes.
        workspace: The folder that the paths of artifacts are relative to.
        terminal: The kind of terminal, as `TERM` names it.
        clock: Seconds.
    """
    if manner.as_json:
        return JsonTeller(output)
    if output.isatty() and not manner.quiet and terminal not in _POOR_TERMINALS:
        from replan.cli.live import LiveTeller  # noqa: PLC0415 - only a terminal needs it

        return LiveTeller(output, workspace=workspace, clock=clock, verbose=manner.verbose)
    lines = Lines(workspace=workspace, clock=clock, quiet=manner.quiet, verbose=manner.verbose)
    return LineTeller(lines, output)


@dataclass
class JsonTeller:
    """Writes each event as a line of JSON."""

    output: TextIO

    def tell(self, event: Event, course: Course) -> None:
        """Write an event."""
        self.output.write(json_line(event))
        self.output.flush()

    def close(self) -> None:
        """Nothing is left to write."""


@dataclass
class LineTeller:
    """Writes lines of text."""

    lines: Lines
    output: TextIO

    def tell(self, event: Event, course: Course) -> None:
        """Write what an event adds."""
        self.output.write(self.lines.lines_of(event))
        self.output.flush()

    def close(self) -> None:
        """End the line that was begun."""
        self.output.write(self.lines.broken_off())
        self.output.flush()


def json_line(event: Event) -> str:
    """Write an event as one line of JSON that steers no terminal."""
    try:
        text = event.model_dump_json()
    except PydanticSerializationError:
        # Half a character is no UTF-8, but JSON can spell it.
        text = json.dumps(event.model_dump(mode="json"))
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def seconds() -> float:
    """The clock of the terminal."""
    return time.monotonic()
