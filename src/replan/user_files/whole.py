"""The run that a command names: a stored one, or the file of an export."""

from collections.abc import Callable, Iterable
from pathlib import Path

from replan.assembly.graphs import viewer
from replan.runs.course.whole_run import WholeRun, whole_run, with_texts
from replan.runs.log.event_log import RunEvent
from replan.runs.travel.exported_run import opened_export
from replan.user_files.named import is_file
from replan.user_files.place import Place, found, now, opened_kept

Chosen = Callable[[WholeRun], Iterable[RunEvent]]
"""The events of a run whose long texts are to be read."""


def no_texts(_: WholeRun) -> Iterable[RunEvent]:
    return ()


def all_texts(run: WholeRun) -> Iterable[RunEvent]:
    return run.events


async def loaded(name: str, place: Place, chosen: Chosen = no_texts) -> WholeRun:
    """Read the run that a name means."""
    if is_file(name):
        return opened_export(Path(name))
    async with opened_kept(place) as storage:
        record = await found(storage.runs, name)
        run = await whole_run(viewer(storage), storage, record, now())
        return await with_texts(run, storage, tuple(chosen(run)))
