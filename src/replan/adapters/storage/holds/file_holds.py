"""Threads that are worked on, as locked files next to a SQLite file."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout
from sqlalchemy import delete, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.database import Database
from replan.adapters.storage.sqlite_file import file_errors
from replan.adapters.storage.tables.schema import threads
from replan.adapters.thread_holds import Holds, digest_of, first_epoch
from replan.ports.ownership import Owner


class FileHolds(Holds):
    """A lock file for each thread that is worked on, in a folder next to the SQLite file.

    How often each thread was taken is in the file.
    """

    def __init__(self, path: Path, database: Database) -> None:
        super().__init__(str(path))
        self._folder = Path(f"{path}.held")
        self._database = database
        self._locks: dict[str, tuple[FileLock, os.stat_result | None]] = {}

    async def forget(self, thread_id: str) -> None:
        statement = delete(threads).where(threads.c.thread_id == thread_id)
        await self._database.write(lambda connection: connection.execute(statement))

    async def _take(self, owner: Owner) -> int:
        if not await asyncio.to_thread(self._try_lock, owner.thread_id):
            return 0
        first = sqlite.insert(threads).values(thread_id=owner.thread_id, epoch=first_epoch())
        statement = first.on_conflict_do_update(
            index_elements=["thread_id"], set_={"epoch": threads.c.epoch + 1}
        ).returning(threads.c.epoch)

        async def work(connection: AsyncConnection) -> int:
            return (await connection.execute(statement)).scalar_one()

        return await self._database.write(work)

    async def _is_taken(self, thread_id: str) -> bool:
        return await asyncio.to_thread(self._is_locked, thread_id)

    async def _leave(self, owner: Owner) -> None:
        if owner.thread_id in self._locks:
            lock, file = self._locks.pop(owner.thread_id)
            # While it is held: whoever has opened it meanwhile finds out, and opens it again.
            if _is_there(lock, file):
                with suppress(OSError):
                    await asyncio.to_thread(Path(lock.lock_file).unlink)
            lock.release()

    async def _look_after(self) -> None:
        for owner in self._held.values():
            lock, file = self._locks[owner.thread_id]
            if owner.is_lost or await asyncio.to_thread(_is_there, lock, file):
                continue
            # Somebody has cleaned up. Who came since then has taken the thread.
            lock.release()
            is_locked = await asyncio.to_thread(self._try_lock, owner.thread_id)
            if not is_locked or await self._newest_epoch(owner.thread_id) != owner.epoch:
                owner.lose()

    async def _newest_epoch(self, thread_id: str) -> int | None:
        query = select(threads.c.epoch).where(threads.c.thread_id == thread_id)
        return await self._database.read(lambda connection: connection.scalar(query))

    def _is_locked(self, thread_id: str) -> bool:
        lock = self._lock_of(thread_id)
        if not Path(lock.lock_file).exists():
            return False
        with file_errors(Path(self.where)):
            try:
                lock.acquire()
            except Timeout:
                return True
        lock.release()
        return False

    def _lock_of(self, thread_id: str) -> FileLock:
        path = self._folder / f"{digest_of(thread_id).hex()}.lock"
        return FileLock(path, timeout=0, mode=0o600, thread_local=False)

    def _try_lock(self, thread_id: str) -> bool:
        lock = self._lock_of(thread_id)
        with file_errors(Path(self.where)):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            try:
                lock.acquire()
            except Timeout:
                return False
        self._locks[thread_id] = lock, _file_at(lock)
        return True


def _is_there(lock: FileLock, file: os.stat_result | None) -> bool:
    """Whether the file that is locked is the one that others find."""
    found = _file_at(lock)
    return file is not None and found is not None and os.path.samestat(file, found)


def _file_at(lock: FileLock) -> os.stat_result | None:
    try:
        return Path(lock.lock_file).stat()
    except OSError:
        return None
