"""A run that is steered from another process, and what its owner says about that."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import typer

from replan.assembly.graphs import viewer
from replan.assembly.runtime import open_runtime
from replan.base.errors import InputError
from replan.base.texts.signs import harmless
from replan.cli.desk.dialogs import edited_text
from replan.cli.shared.process import GOOD, WRONG_USE
from replan.cli.user_files.plan_text import read_plan_text
from replan.cli.user_files.storage_location import (
    StorageLocation,
    find_run,
    open_existing_location,
    short,
)
from replan.log.events.types import RunSteered
from replan.log.report import RunReport
from replan.log.rows import STEERS
from replan.plan.markdown.seal import unsealed
from replan.runs.asked.requests import plan_to_steer
from replan.runs.service import Runtime
from replan.views.event_lines import steering_text

_PATIENCE = 5.0  # seconds for the owner of the run to take note


@dataclass(frozen=True, kw_only=True)
class SteeredRun:
    """A run that is about to be steered."""

    run_id: str
    runtime: Runtime
    known: int  # the number of its newest event

    async def outcome(self) -> int:
        """Say what the owner of the run makes of the newest request, and return the exit code."""
        report = await self.runtime.get(self.run_id)
        name = next(request.name for request in reversed(report.requests) if request.kind in STEERS)
        said: RunSteered | None = None
        if report.is_held:
            with suppress(TimeoutError):
                said = await asyncio.wait_for(self._said_of(name), _PATIENCE)
        if said is None:
            text = "it is on record, and the run takes it when it goes on"
            typer.echo(f"run {short(self.run_id)}: {text}")
            return GOOD
        is_refused = said.status == "refused"
        typer.echo(harmless(f"run {short(self.run_id)}: {steering_text(said)}"), err=is_refused)
        return WRONG_USE if is_refused else GOOD

    async def _said_of(self, request: str) -> RunSteered | None:
        async with aclosing(self.runtime.events(self.run_id, after=self.known)) as events:
            async for event in events:
                if isinstance(event, RunSteered) and event.request == request:
                    return event
        return None


@asynccontextmanager
async def steer(
    prefix: str, location: StorageLocation
) -> AsyncGenerator[tuple[Runtime, SteeredRun]]:
    """Find a run to steer, whichever process works on it."""
    async with open_existing_location(location) as kept:
        record = await find_run(kept.runs, prefix)
        async with open_runtime(viewer(kept), storage=kept) as runtime:
            events = (await runtime.get(record.run_id)).events
            newest_seq = max((event.seq or 0 for event in events), default=0)
            yield runtime, SteeredRun(run_id=record.run_id, runtime=runtime, known=newest_seq)


async def edited_document(
    report: RunReport, path: Path | None, version: int | None
) -> tuple[str, int]:
    """The edited document of the plan of a run, and the version that it was made from."""
    plan = plan_to_steer(report)
    if path is not None:
        if version is None:
            problem = f"The plan of the run is at version {plan.version} now."
            raise InputError(f"{problem} Name the one that you edited: --version NUMBER.")
        return read_plan_text(path), version
    if not sys.stdin.isatty():
        raise InputError("There is no terminal for an editor. Give the document with --plan FILE.")
    before = unsealed(plan.content)
    text = await edited_text(before, ".md", os.environ, lambda _: None)
    if text == before:
        raise InputError("Nothing was changed.")
    return text, plan.version
