"""One turn of a session at the terminal: shown while it is taken, stopped by signals."""

from collections.abc import AsyncGenerator

from replan.cli.shared.follower import Follower
from replan.cli.shared.signals import handling_signals
from replan.log.events.types import (
    AnswerReceived,
    Event,
    InputRequested,
    SpecialistToken,
    TaskCompleted,
    WarningReported,
)
from replan.log.report import RunReport
from replan.state.session.context import AgentResult
from replan.views.live.reporters import Reporter


class DrawnTurn(Follower):
    """The view of a turn while it is taken.

    Attributes:
        result: What the turn came to; None where it was cut off.
        is_told: Whether the answer was shown.
    """

    def __init__(
        self, reporter: Reporter, run: RunReport, *, is_asked_in_place: bool, shows_plan: bool
    ) -> None:
        """Prepare.

        Args:
            reporter: Writes what is shown.
            run: The run that is under way.
            is_asked_in_place: Whether a person is asked what the turn asks.
            shows_plan: Whether more is shown than what is said; the plan of a job is one step.
        """
        super().__init__(reporter, run)
        self.untold = (InputRequested, AnswerReceived) if is_asked_in_place else ()
        self.result: AgentResult | None = None
        self.is_told = False
        self._shows_plan = shows_plan
        self._warned = list[str]()

    async def take_turn(self, parts: AsyncGenerator[Event | AgentResult]) -> None:
        """Show a turn until it is over, stopped, or cut off.

        Raises:
            ReplanError: The turn could not be taken, or not be kept.
        """
        with handling_signals(self.stop):
            self.result = await self.follow(parts)
        # A run tells its warnings when it is over; a turn of a job is not a run.
        for text in self._warned if self.result and not self.is_told else ():
            self.reporter.remark(f"warning: {text}")

    def show(self, event: Event, before: RunReport, after: RunReport) -> None:
        """Show an event; of a plan that is not shown, what is said."""
        if isinstance(event, WarningReported):
            self._warned.append(event.text)
        if self._shows_plan or isinstance(event, SpecialistToken):
            self.is_told |= isinstance(event, TaskCompleted)
            super().show(event, before, after)
