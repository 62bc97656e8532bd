"""One exchange with a run or a session at the terminal: shown as it is told, stopped by signals."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, TypeVar

from replan.cli.shared.signals import Stop
from replan.cli.user_files.storage_location import now
from replan.log.apply import apply
from replan.log.events.types import BaseEvent, Event
from replan.log.report import RunReport
from replan.runs.stopping import GRACE, put_an_end_to
from replan.state.session.context import AgentResult
from replan.views.live.reporters import Reporter

E = TypeVar("E", RunReport, AgentResult)
"""How an exchange ends: the run at rest, or the result of a turn."""


class Follower:
    """Shows the parts of an exchange as they come: its reporter writes a live plan, lines or JSON.

    Attributes:
        reporter: Writes what is shown.
        run: The run after what was told so far.
        stop: The signals that stop the exchange.
    """

    # What a person is not told, because they are asked it, or have said it.
    untold: tuple[type[BaseEvent], ...] = ()

    def __init__(self, reporter: Reporter, run: RunReport, grace: float = GRACE) -> None:
        """Prepare; `follow` shows an exchange."""
        self.reporter = reporter
        self.run = run
        self.stop = Stop(asyncio.Event(), finish=self.stop_at_once)
        self._grace = grace
        self._at_work = set[asyncio.Future[Any]]()

    async def follow(self, parts: AsyncGenerator[Event | E]) -> E | None:
        """Show an exchange until it ends, and return its end; None if it was cut off."""
        work = asyncio.ensure_future(self._take_parts(parts))
        self._at_work = {work}
        winding_down = asyncio.ensure_future(self._announce_stop())
        try:
            await asyncio.wait({work})
        finally:
            await put_an_end_to(winding_down, work)
        return None if work.cancelled() else work.result()

    def take(self, event: Event) -> None:
        """Take an event, and show it."""
        if event.run_id != self.run.run_id:
            self.run = RunReport.begun(event.run_id, event.at or now())
        before, self.run = self.run, apply(self.run, event)
        self.show(event, before, self.run)

    def show(self, event: Event, before: RunReport, after: RunReport) -> None:
        """Show an event, with the run before and after it."""
        if isinstance(event, self.untold):
            self.reporter.follow(after)
        else:
            self.reporter.report(event, before, after)

    async def begin_to_stop(self) -> bool:
        """Prepare for the end; return whether steps may be running that have yet to end."""
        return True

    def stop_at_once(self) -> None:
        """End the exchange without waiting for running steps."""
        for work in self._at_work:
            work.cancel()

    async def _take_parts(self, parts: AsyncGenerator[Event | E]) -> E | None:
        async with aclosing(parts) as told:
            async for part in told:
                if isinstance(part, RunReport | AgentResult):
                    return part
                self.take(part)
        return None

    async def _announce_stop(self) -> None:
        """Say that nothing more starts; an exchange that only waits ends immediately."""
        await self.stop.asked.wait()
        if not await self.begin_to_stop():
            self.stop_at_once()
            return
        self.reporter.remark(
            f"stopping: running steps have {self._grace:g} s to end; "
            "press Ctrl-C again to stop immediately"
        )
