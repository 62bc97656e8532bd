"""The run that a command names: a stored one, or the file of an export."""

from collections.abc import Callable, Iterable
from pathlib import Path

from replan.assembly.graphs import viewer
from replan.cli.user_files.named import is_file
from replan.cli.user_files.storage_location import (
    StorageLocation,
    find_run,
    now,
    open_existing_location,
)
from replan.log.events.types import Event
from replan.runs.reports import WholeReport, read_report, with_texts
from replan.runs.travel.exported_run import opened_export

Chosen = Callable[[WholeReport], Iterable[Event]]
"""The events of a run whose long texts are to be read."""


def no_texts(_: WholeReport) -> Iterable[Event]:
    return ()


def all_texts(run: WholeReport) -> Iterable[Event]:
    return run.events


async def load_run(name: str, location: StorageLocation, chosen: Chosen = no_texts) -> WholeReport:
    """Read the run that a name means."""
    if is_file(name):
        return opened_export(Path(name))
    async with open_existing_location(location) as storage:
        record = await find_run(storage.runs, name)
        run = await read_report(viewer(storage), storage, record, now())
        return await with_texts(run, storage, tuple(chosen(run)))
