"""The run that a command names: a stored one, or the file of an export."""

from collections.abc import Callable, Iterable
from pathlib import Path

from replan.assembly.graphs import viewer
from replan.runs.course.whole_run import WholeRun, whole_run, with_texts
from replan.runs.log.event_log import RunEvent
from replan.runs.travel.exported_run import opened_export
from replan.user_files.named import is_file
from replan.user_files.place import Place, find_run, now, open_existing_place

Chosen = Callable[[WholeRun], Iterable[RunEvent]]
"""The events of a run whose long texts are to be read."""


def no_texts(_: WholeRun) -> Iterable[RunEvent]:
    return ()


def all_texts(run: WholeRun) -> Iterable[RunEvent]:
    return run.events


async def load_run(name: str, place: Place, chosen: Chosen = no_texts) -> WholeRun:
    """Read the run that a name means."""
    if is_file(name):
        return opened_export(Path(name))
    async with open_existing_place(place) as storage:
        record = await find_run(storage.runs, name)
        run = await whole_run(viewer(storage), storage, record, now())
        return await with_texts(run, storage, tuple(chosen(run)))
