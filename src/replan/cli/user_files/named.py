"""The names of a run in commands: its id, `last`, or the file of an export."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from replan.base.failures import describe

MEMORY = "memory"
LAST = "last"


@contextmanager
def refusing_damaged(name: str) -> Generator[None]:
    """While a run is shown, refuse its file as damaged if its events have unexpected content."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if not is_file(name):
            raise
        missing = f"An event lacks a field of its type, or has a wrong one: {describe(error)}."
        from replan.runs.travel.exported_run import refused  # noqa: PLC0415 - loads a framework

        raise refused(Path(name), f"It is damaged. {missing}") from error


def is_file(name: str) -> bool:
    """Whether a name means a file, and not a stored run."""
    looks_so = name.endswith(".json") or os.sep in name
    return name != LAST and (looks_so or Path(name).is_file())
