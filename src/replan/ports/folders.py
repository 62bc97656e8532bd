"""The folders of the step that is being done, for tools, which are called without its context."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the work of a step reads and writes."""

    workspace: Path  # the folder that it may read and write
    out: Path  # the folder for the files that it makes


HERE = Folders(Path(), Path())
folders_at_work: ContextVar[Folders] = ContextVar("folders", default=HERE)


def folders_of_step() -> Folders:
    """Return the folders of the step that is being done; outside one, the working directory."""
    return folders_at_work.get()


@contextmanager
def within(folders: Folders) -> Generator[None]:
    """Run the block with these folders."""
    before = folders_at_work.set(folders)
    try:
        yield
    finally:
        folders_at_work.reset(before)
