"""Show a run on a terminal as a plan that lives."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from rich.console import Group
from rich.live import Live
from rich.text import Text

from replan.events.types import Event, SpecialistCompleted, TaskCompleted
from replan.plan.model import StepStatus
from replan.state.results import Artifact
from replan.views.cells import wrapped
from replan.views.live.course import Course, Row
from replan.views.live.frame import ASCII, UNICODE, Window, frame, whole_plan
from replan.views.live.notices import Sayings, notice, verbose_notice, warnings_shown_by
from replan.views.live.reporters import Reporter
from replan.views.rendered import columns_of, console_on, print_markdown
from replan.views.run.below_answer import account, files, warnings

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
        clock: Callable[[], float],
        verbose: bool,
        made: Iterable[Artifact] = (),
    ) -> None:
        """Prepare; nothing is drawn before the first event."""
        self._output = output
        self._workspace = workspace
        self._clock = clock
        self._verbose = verbose
        self._course = Course(started=clock())
        self._sayings = Sayings()
        self._shown_warnings: set[str] = set()
        self._artifacts = {each.path: each for each in made}
        self._console = console_on(output)
        self._live = self._new_live()

    def say(self, text: str) -> None:
        """Print a text, apart from the plan that will be drawn below it."""
        self._print([*wrapped(text, self._width), ""])

    def report(self, event: Event, course: Course) -> None:
        """Process an event; the screen is updated a few times a second."""
        if isinstance(event, TaskCompleted):
            self._course = course
            self._end(event)
            return
        if isinstance(event, SpecialistCompleted) and event.result is not None:
            self._artifacts |= {each.path: each for each in event.result.artifacts}
        self.follow(course)
        self._shown_warnings |= warnings_shown_by(event)
        said = self._sayings.after(event) if self._verbose else []
        line_of_event = notice(event) or (verbose_notice(event) if self._verbose else "")
        for line in (*said, *([line_of_event] if line_of_event else [])):
            self._print(list(wrapped(line, self._width)), "dim")

    def follow(self, course: Course) -> None:
        """Draw the current plan from the next update on."""
        self._course = course
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
        if shows_plan and self._course.rows:
            height = max(1, self._console.height - _ROOM_TO_ASK)
            for line in frame(self._course, replace(self._window, height=height), self._clock()):
                self._console.print(line, soft_wrap=True)

    def proceed(self, course: Course) -> None:
        """Bring the plan back."""
        self._course = course
        if not self._course.outcome:
            self._live.start(refresh=True)

    def close(self) -> None:
        """Leave the terminal in order, with the plan as it is if the run was cut off."""
        if self._live.is_started:
            self._live.stop()
        if self._course.outcome:
            return
        rows = {row.id: _row_stopped(row) for row in self._course.rows.values()}
        self._show(replace(self._course, rows=rows))

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
        self._show(self._course)
        seconds = self._clock() - self._course.started
        self._output.write(f"\n{files(self._artifacts.values(), self._workspace)}")
        for line in warnings(event, self._shown_warnings):
            self._print(list(wrapped(line, self._width)))
        self._print(list(wrapped(account(event, seconds).rstrip("\n"), self._width)))
        self._output.flush()

    def _show(self, course: Course) -> None:
        """Print the whole plan, and the whole answer below it."""
        if course.rows:
            for line in whole_plan(course, self._window, self._clock()):
                self._console.print(line, soft_wrap=True)
        answer = course.answer.strip("\n")
        if answer.strip():
            if course.rows:
                self._print([""])
            print_markdown(self._console, answer)

    def _print(self, lines: list[str], style: str = "") -> None:
        self._console.print(Text("\n".join(lines), style), soft_wrap=True)

    def _drawn(self) -> Group:
        lines = frame(self._course, self._window, self._clock())
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


def _row_stopped(row: Row) -> Row:
    if not row.busy:
        return row
    return replace(row, status=StepStatus.PENDING, busy=frozenset(), note="stopped")
