"""One process at a time works on a run: the one that holds its file."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_data_path

from replan.errors import InputError

_MOMENT = 1.0
"""Seconds: longer than anybody takes to look whether a run is held."""


@contextmanager
def holding(run_id: str) -> Generator[None]:
    """Hold a run while this lasts; a process that is killed lets go.

    Raises:
        InputError: Another process works on it, or its file cannot be written.
    """
    path = _path(run_id)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(path, timeout=_MOMENT, mode=0o600)
        lock.acquire()
    except Timeout as error:
        raise InputError(
            f"Another process works on run {run_id[:8]} now. Wait for its end, or stop it."
        ) from error
    except OSError as error:
        raise InputError(f"The run cannot be held: '{path}': {error.strerror}.") from error
    try:
        yield
    finally:
        # While it is held: who has opened it meanwhile finds out, and opens it anew.
        with suppress(OSError):
            path.unlink()
        lock.release()


def _path(run_id: str) -> Path:
    return user_data_path("replan", appauthor=False) / "held" / f"{run_id}.lock"
