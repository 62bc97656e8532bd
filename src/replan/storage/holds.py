"""One run at a time works on a thread: it holds the thread for as long as its process lives.

Each take of a thread raises its number, its epoch, and what an earlier owner writes is refused. So
a hold that falls unnoticed does no harm; it is looked after all the same, since a run whose thread
was taken should end soon, and one whose thread was not should keep it.
"""

import asyncio
import hashlib
import logging
import os
import secrets
import time
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from replan.base.errors import StorageError, ThreadBusyError
from replan.log.uninterrupted import to_its_end
from replan.ports.ownership import MOMENT, POLL, Owner, owner_in
from replan.storage.databases.database import EPOCH, Connection, Database, first
from replan.storage.databases.sqlite_file import file_errors

T = TypeVar("T")

BEAT = 1.0  # seconds from one look after the holds to the next

_TAKE = (
    "INSERT INTO replan_threads (thread_id, epoch) VALUES (?, ?)"
    " ON CONFLICT (thread_id) DO UPDATE SET epoch = replan_threads.epoch + 1 RETURNING epoch"
)

logger = logging.getLogger(__name__)


class ThreadLocks:
    """Threads that are worked on, all in this process; subclasses hold them against others, too."""

    def __init__(self, database: Database) -> None:
        self.database = database  # where the numbers of the takes are
        self.where = database.where
        self._held: dict[str, Owner] = {}
        self._next_look: asyncio.TimerHandle | None = None
        self._look: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def lock(self, thread_id: str) -> AsyncGenerator[Owner]:
        """Hold a thread while this lasts; a process that is killed lets go."""
        owner, latest = Owner(self.where, thread_id), time.monotonic() + MOMENT
        try:
            # Not interrupted: an unknown lock would stay.
            while not await _whole(self._try_take(owner)):
                if time.monotonic() > latest:
                    raise ThreadBusyError(thread_id)
                await asyncio.sleep(POLL)
            yield owner
        finally:
            await _whole(self._release(owner))

    async def is_held(self, thread_id: str) -> bool:
        """Whether any process works on a thread now."""
        return thread_id in self._held or await self._is_taken(thread_id)

    def owner_of(self, thread_id: str) -> Owner | None:
        """Who holds a thread here; None if nobody in this process does."""
        owner = self._held.get(thread_id)
        return owner if owner is not None and owner.epoch else None

    async def close(self) -> None:
        """Stop looking after holds."""
        if self._next_look is not None:
            self._next_look.cancel()
        if self._look is not None:
            await asyncio.wait({self._look})

    @asynccontextmanager
    async def lock_or_own(self, thread_id: str) -> AsyncGenerator[None]:
        """Do something as the owner of a thread: an existing owner, or one for this work."""
        if owner_in(self.where, thread_id) is not None:
            yield
            return
        async with self.lock(thread_id) as owner:
            with owner.at_work():
                yield

    async def _take(self, owner: Owner) -> int:
        """Take the thread, and return the number of this take; 0 if another process has it."""

        def work(connection: Connection) -> int:
            return first(connection.query(_TAKE, [owner.thread_id, first_epoch()]))

        return await self.database.write(work)

    async def _is_taken(self, thread_id: str) -> bool:
        """Whether another process has the thread."""
        return False

    async def _leave(self, owner: Owner) -> None:
        """Give the thread back; one that was lost stays lost."""

    async def _look_after(self) -> None:
        """Check that the holds are still held: one that was lost is taken again, if possible."""

    async def _try_take(self, owner: Owner) -> bool:
        async with self._turn:
            if owner.thread_id in self._held:
                return False
            self._held[owner.thread_id] = owner
            owner.epoch = await self._take(owner)
            if not owner.epoch:
                del self._held[owner.thread_id]
            elif self._next_look is None:
                self._schedule()
            return bool(owner.epoch)

    async def _release(self, owner: Owner) -> None:
        async with self._turn:
            if self._held.get(owner.thread_id) is not owner:
                return
            try:
                await self._leave(owner)
            finally:
                del self._held[owner.thread_id]
            if self._next_look is not None and not self._held:
                self._next_look.cancel()
                self._next_look = None

    def _schedule(self) -> None:
        self._next_look = asyncio.get_running_loop().call_later(BEAT, self._begin_look)

    def _begin_look(self) -> None:
        self._look = asyncio.ensure_future(self._run_look())

    async def _run_look(self) -> None:
        async with self._turn:
            self._next_look = None
            try:
                await self._look_after()
            except StorageError as error:
                # Whose a thread is cannot be said now, so what is written fails by itself.
                logger.warning("holds cannot be looked after", extra={"error": str(error)})
            finally:
                if self._held:
                    self._schedule()


class FileHolds(ThreadLocks):
    """A lock file for each thread that is worked on, in a folder next to the SQLite file."""

    def __init__(self, path: Path, database: Database) -> None:
        super().__init__(database)
        self._path = path
        self._folder = Path(f"{path}.held")
        self._locks: dict[str, tuple[FileLock, os.stat_result | None]] = {}

    async def _take(self, owner: Owner) -> int:
        is_locked = await asyncio.to_thread(self._try_lock, owner.thread_id)
        return await super()._take(owner) if is_locked else 0

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
        # A thread that could not be locked is held for a moment more, until it is released.
        for thread_id, (lock, file) in [*self._locks.items()]:
            owner = self._held[thread_id]
            if owner.is_lost or await asyncio.to_thread(_is_there, lock, file):
                continue
            # Somebody has cleaned up. Who came since then has taken the thread.
            lock.release()
            is_locked = await asyncio.to_thread(self._try_lock, thread_id)
            if not is_locked or await self._newest_epoch(thread_id) != owner.epoch:
                owner.lose()

    async def _newest_epoch(self, thread_id: str) -> int | None:
        return await self.database.read(
            lambda connection: first(connection.query(EPOCH, [thread_id]))
        )

    def _is_locked(self, thread_id: str) -> bool:
        lock = self._lock_of(thread_id)
        if not Path(lock.lock_file).exists():
            return False
        with file_errors(self._path):
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
        with file_errors(self._path):
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


async def _whole(work: Coroutine[Any, Any, T]) -> T:
    return await to_its_end(asyncio.ensure_future(work))


def digest_of(thread_id: str) -> bytes:
    """Name a thread by 16 bytes, whatever its id is."""
    return hashlib.sha256(thread_id.encode("utf-8", "surrogatepass")).digest()[:16]


def lock_number(thread_id: str) -> int:
    """The advisory lock of PostgreSQL that holds a thread."""
    return int.from_bytes(digest_of(thread_id)[:8], "big", signed=True)


def first_epoch() -> int:
    """The number of the first take of a thread; no other thread of its name ever had it."""
    return secrets.randbits(48)
