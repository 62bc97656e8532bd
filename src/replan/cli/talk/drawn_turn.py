"""One turn of a session at the terminal: drawn while it works, stopped by signals."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field

from replan.cli.shared.signals import Stop, handling_signals
from replan.events.types import (
    AnswerReceived,
    Event,
    InputRequested,
    SpecialistToken,
    TaskCompleted,
    WarningReported,
)
from replan.log.apply import apply
from replan.log.report import RunReport
from replan.runs.stopping import GRACE, put_an_end_to
from replan.state.session.context import AgentResult
from replan.user_files.storage_location import now
from replan.views.live.reporters import Reporter

STOPPING = (
    f"stopping: running steps have {GRACE:g} s to end; press Ctrl-C again to stop immediately"
)


@dataclass(kw_only=True)
class Turn:
    """The view of a turn while it is taken."""

    reporter: Reporter
    run: RunReport
    is_asked_in_place: bool = False  # whether a person is asked what the turn asks
    shows_plan: bool = True  # false: only what is said is shown, as the plan is one step
    result: AgentResult | None = None  # None where it was cut off
    is_told: bool = False  # whether the answer was reported
    code: int = 0  # the exit code of the signal that stopped it; 0 if none did
    asked_to_stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self, parts: AsyncGenerator[Event | AgentResult]) -> None:
        """Report what happens until the turn is over, stopped, or cut off.

        Raises:
            ReplanError: The turn could not be taken, or not be kept.
        """
        task = asyncio.ensure_future(self._report_parts(parts))
        stop = Stop(self.asked_to_stop, finish=task.cancel)
        winding_down = asyncio.ensure_future(self._announce_stop())
        with handling_signals(stop):
            try:
                await asyncio.wait({task})
            finally:
                await put_an_end_to(winding_down, task)
        self.code = stop.code
        if not task.cancelled():
            task.result()

    async def _report_parts(self, parts: AsyncGenerator[Event | AgentResult]) -> None:
        warned = list[str]()
        async with aclosing(parts) as given:
            async for part in given:
                if isinstance(part, AgentResult):
                    # A run tells its warnings when it is over; a turn of a job is not a run.
                    for text in warned if not self.is_told else ():
                        self.reporter.remark(f"warning: {text}")
                    self.result = part
                    continue
                if part.run_id != self.run.run_id:
                    self.run = RunReport.begun(part.run_id, part.at or now())
                before, self.run = self.run, apply(self.run, part)
                if not (self.shows_plan or isinstance(part, SpecialistToken)):
                    warned += [part.text] if isinstance(part, WarningReported) else []
                    continue
                self.is_told |= isinstance(part, TaskCompleted)
                if isinstance(part, WarningReported):
                    warned.append(part.text)
                if self.is_asked_in_place and isinstance(part, InputRequested | AnswerReceived):
                    # Whoever is asked, and answers, need not be told.
                    self.reporter.follow(self.run)
                else:
                    self.reporter.report(part, before, self.run)

    async def _announce_stop(self) -> None:
        await self.asked_to_stop.wait()
        self.reporter.remark(STOPPING)
