"""One run at a time works on a thread: it holds the thread for as long as its process lives."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from filelock import FileLock, Timeout

from replan.adapters.storage.sqlite_file import file_errors
from replan.adapters.storage.uninterrupted import uninterrupted
from replan.errors import ThreadBusyError

MOMENT = 1.0
"""Seconds: longer than the hold of a process takes to fall that was killed just now."""


class Holds(Protocol):
    """Threads that are worked on, by whatever process that has the same storage open."""

    def holding(self, thread_id: str) -> AbstractAsyncContextManager[None]:
        """Hold a thread while this lasts; a process that is killed lets go.

        Raises:
            ThreadBusyError: Another run holds it.
            StorageError: Nobody can say.
        """
        ...


class FileHolds:
    """A lock file for each thread that is worked on, in a folder beside the SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = Path(f"{path}.held")

    @asynccontextmanager
    async def holding(self, thread_id: str) -> AsyncGenerator[None]:
        """Hold a thread while this lasts."""
        path = self._folder / f"{digest_of(thread_id).hex()}.lock"
        lock = FileLock(path, timeout=MOMENT, mode=0o600, thread_local=False)
        try:
            with file_errors(self._path):
                self._folder.mkdir(mode=0o700, exist_ok=True)
                try:
                    # Not stopped in the middle: a lock that nobody knows of would stay.
                    await uninterrupted(asyncio.to_thread(lock.acquire))
                except Timeout as error:
                    raise ThreadBusyError(thread_id) from error
            yield
        finally:
            if lock.is_locked:
                # While it is held: who has opened it meanwhile finds out, and opens it anew.
                with suppress(OSError):
                    path.unlink()
                lock.release()


def digest_of(thread_id: str) -> bytes:
    """Name a thread by 16 bytes, whatever its id is."""
    return hashlib.sha256(thread_id.encode("utf-8", "surrogatepass")).digest()[:16]
