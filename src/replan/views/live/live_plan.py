"""Show a run on a terminal as a plan that lives."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TextIO

from rich.console import Group
from rich.live import Live
from rich.text import Text

from replan.log.events.types import Event, TaskCompleted
from replan.log.report import RunReport
from replan.views.cells import wrapped
from replan.views.live.frame import ASCII, UNICODE, Window, frame, whole_plan
from replan.views.live.notices import notice, said_lines, warnings_shown_by
from replan.views.live.reporters import Reporter
from replan.views.rendered import columns_of, console_on, print_markdown
from replan.views.run.below_answer import account, files, warnings
from replan.views.run.error_lines import failed_above

_PER_SECOND = 8
_ROOM_TO_ASK = 6
"""Lines of the terminal that a plan leaves to the question below it."""


class LiveReporter(Reporter):
    """Draws the plan again and again until the run is over, then prints all of it once."""

    def __init__(
        self,
        output: TextIO,
        *,
        workspace: Path,
        clock: Callable[[], datetime],
        verbose: bool,
    ) -> None:
        """Prepare; nothing is drawn before the first event."""
        self._output = output
        self._workspace = workspace
        self._clock = clock
        self._verbose = verbose
        self._run = RunReport.begun("", clock())
        self._shown_warnings: set[str] = set()
        self._console = console_on(output)
        self._live = self._new_live()

    def say(self, text: str) -> None:
        """Print a text, apart from the plan that will be drawn below it."""
        self._print([*wrapped(text, self._width), ""])

    def report(self, event: Event, before: RunReport, after: RunReport) -> None:
        """Process an event; the screen is updated a few times a second."""
        if isinstance(event, TaskCompleted):
            self._run = after
            self._end(event)
            return
        self.follow(after)
        self._shown_warnings |= warnings_shown_by(event)
        said = said_lines(before, event) if self._verbose else []
        line_of_event = notice(event, verbose=self._verbose)
        for line in (*said, *([line_of_event] if line_of_event else [])):
            self._print(list(wrapped(line, self._width)), "dim")

    def follow(self, run: RunReport) -> None:
        """Draw the current plan from the next update on."""
        self._run = run
        if not self._live.is_started:
            self._live.start(refresh=True)

    def remark(self, line: str) -> None:
        """Print a line above the plan."""
        self._print(list(wrapped(line, self._width)), "dim")

    def pause(self, *, shows_plan: bool = False) -> None:
        """Stop drawing; the plan as it is now is above what comes."""
        if self._live.is_started:
            self._live.stop()
            # One that was stopped would wipe as many lines as it had drawn when it starts again.
            self._live = self._new_live()
        if shows_plan and self._run.planned:
            height = max(1, self._console.height - _ROOM_TO_ASK)
            for line in frame(self._run, replace(self._window, height=height), self._clock()):
                self._console.print(line, soft_wrap=True)

    def proceed(self, run: RunReport) -> None:
        """Bring the plan back."""
        self._run = run
        if not run.is_over:
            self._live.start(refresh=True)

    def close(self) -> None:
        """Leave the terminal in order, with the plan as it is if the run was cut off."""
        if self._live.is_started:
            self._live.stop()
        if not self._run.is_over:
            # Nobody works on it any more.
            self._show(self._run.model_copy(update={"outcome": "interrupted"}))

    def _new_live(self) -> Live:
        return Live(
            console=self._console,
            get_renderable=self._drawn,
            refresh_per_second=_PER_SECOND,
            transient=True,
            vertical_overflow="crop",
        )

    def _end(self, event: TaskCompleted) -> None:
        if self._live.is_started:
            self._live.stop()
        self._show(self._run)
        self._output.write(f"\n{files(self._run.artifacts, self._workspace)}")
        for line in warnings(event, self._shown_warnings):
            self._print(list(wrapped(line, self._width)))
        self._print(list(wrapped(account(self._run).rstrip("\n"), self._width)))
        self._output.flush()

    def _show(self, run: RunReport) -> None:
        """Print the whole plan, and the whole answer below it."""
        if run.planned:
            for line in whole_plan(run, self._window, self._clock()):
                self._console.print(line, soft_wrap=True)
        answer = run.answer.strip("\n")
        if answer.strip():
            if run.planned:
                self._print([""])
            for line in failed_above(run):
                self._print(list(wrapped(line, self._width)), "red")
            print_markdown(self._console, answer)

    def _print(self, lines: list[str], style: str = "") -> None:
        self._console.print(Text("\n".join(lines), style), soft_wrap=True)

    def _drawn(self) -> Group:
        lines = frame(self._run, self._window, self._clock())
        for line in lines:
            line.no_wrap, line.overflow = True, "crop"
        return Group(*lines)

    @property
    def _width(self) -> int:
        return columns_of(self._console)

    @property
    def _window(self) -> Window:
        signs = UNICODE if self._console.encoding.lower().startswith("utf") else ASCII
        height = max(1, self._console.height - 1)
        return Window(width=self._width, height=height, signs=signs, verbose=self._verbose)
