"""The run that a command names: one that is kept here, or the file of an export."""

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from replan.assembly import viewer
from replan.cli.kept.place import LAST, Place, found, now, opened
from replan.failures import describe
from replan.runs.event_log import RunEvent
from replan.runs.export import opened_export, refused
from replan.runs.whole_run import WholeRun, whole_run, with_texts

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
    async with opened(place) as storage:
        record = await found(storage.runs, name)
        run = await whole_run(viewer(storage), storage, record, now())
        return await with_texts(run, storage, tuple(chosen(run)))


@contextmanager
def trusted(name: str) -> Generator[None]:
    """Show a run; a file of others whose events hold something else is refused as damaged."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if not is_file(name):
            raise
        missing = f"An event has no, or no right, field of its type: {describe(error)}."
        raise refused(Path(name), f"It is damaged. {missing}") from error


def is_file(name: str) -> bool:
    """Whether a name means a file, and no run that is kept here."""
    looks_so = name.endswith(".json") or os.sep in name
    return name != LAST and (looks_so or Path(name).is_file())
