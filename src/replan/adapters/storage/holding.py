"""One run at a time works on a thread: it holds the thread for as long as its process lives.

Each take of a thread raises its number, its epoch, and what an earlier owner writes is refused. So
a hold that falls unnoticed does no harm; it is looked after all the same, since a run whose thread
was taken should end soon, and one whose thread was not should keep it.
"""

import asyncio
import hashlib
import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from replan.adapters.storage.epochs import Epochs
from replan.adapters.storage.sqlite_file import file_errors
from replan.adapters.storage.uninterrupted import uninterrupted
from replan.errors import StorageError, ThreadBusyError
from replan.ports.ownership import Owner, owner_in

MOMENT = 1.0
"""Seconds: longer than the hold of a process takes to fall that was killed just now."""

BEAT = 1.0
"""Seconds from one look after the holds to the next."""

_POLL = 0.05

logger = logging.getLogger(__name__)


class Holds(ABC):
    """Threads that are worked on, by whatever process that has the same storage open.

    Attributes:
        where: The storage.
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self._held: dict[str, Owner] = {}
        self._next_look: asyncio.TimerHandle | None = None
        self._look: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def holding(self, thread_id: str) -> AsyncGenerator[Owner]:
        """Hold a thread while this lasts; a process that is killed lets go.

        Raises:
            ThreadBusyError: Another run holds it.
            StorageError: Nobody can say.
        """
        owner, latest = Owner(self.where, thread_id), time.monotonic() + MOMENT
        try:
            # Not stopped in the middle: a lock that nobody knows of would stay.
            while not await uninterrupted(self._taken(owner)):
                if time.monotonic() > latest:
                    raise ThreadBusyError(thread_id)
                await asyncio.sleep(_POLL)
            yield owner
        finally:
            await uninterrupted(self._let_go(owner))

    async def is_held(self, thread_id: str) -> bool:
        """Whether somebody works on a thread now, in whatever process.

        Raises:
            StorageError: Nobody can say.
        """
        return thread_id in self._held or await self._is_taken(thread_id)

    def epoch_of(self, thread_id: str) -> int | None:
        """The number of the take by which a thread is held here; None if it is not."""
        owner = self._held.get(thread_id)
        return (owner and owner.epoch) or None

    async def close(self) -> None:
        """Look after nothing any more."""
        if self._next_look is not None:
            self._next_look.cancel()
        if self._look is not None:
            await asyncio.wait({self._look})

    @asynccontextmanager
    async def owning(self, thread_id: str) -> AsyncGenerator[None]:
        """Do something as the owner of a thread: who is it already, or else who holds it for this.

        Raises:
            ThreadBusyError: Another run holds it.
            StorageError: Nobody can say.
        """
        if owner_in(self.where, thread_id) is not None:
            yield
            return
        async with self.holding(thread_id) as owner:
            with owner.at_work():
                yield

    @abstractmethod
    async def forget(self, thread_id: str) -> None:
        """Forget the number of a thread that is held, and removed."""

    @abstractmethod
    async def _take(self, owner: Owner) -> int:
        """Take the thread, and give the number of this take; 0 if another process has it."""

    @abstractmethod
    async def _is_taken(self, thread_id: str) -> bool:
        """Whether another process has the thread."""

    @abstractmethod
    async def _leave(self, owner: Owner) -> None:
        """Give the thread back; one that fell is none any more."""

    @abstractmethod
    async def _look_after(self) -> None:
        """See that the holds still stand: what fell is taken again, or is lost."""

    async def _taken(self, owner: Owner) -> bool:
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

    async def _let_go(self, owner: Owner) -> None:
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
        self._look = asyncio.ensure_future(self._looked())

    async def _looked(self) -> None:
        async with self._turn:
            self._next_look = None
            try:
                await self._look_after()
            except StorageError as error:
                # Whose a thread is cannot be said now, so what is written fails by itself.
                logger.warning("holds cannot be looked after", extra={"error": str(error)})
            if self._held:
                self._schedule()


class MemoryHolds(Holds):
    """The threads of one process, whose holds cannot fall."""

    def __init__(self) -> None:
        super().__init__(f":memory:{id(self)}")
        self._epochs = 0

    async def forget(self, thread_id: str) -> None:
        """Nothing is kept of a thread that nobody holds."""

    async def _take(self, owner: Owner) -> int:
        self._epochs += 1
        return self._epochs

    async def _is_taken(self, thread_id: str) -> bool:
        return False

    async def _leave(self, owner: Owner) -> None:
        pass

    async def _look_after(self) -> None:
        pass


class FileHolds(Holds):
    """A lock file for each thread that is worked on, in a folder beside the SQLite file."""

    def __init__(self, path: Path, epochs: Epochs) -> None:
        super().__init__(str(path))
        self._folder = Path(f"{path}.held")
        self._epochs = epochs
        self._locks: dict[str, tuple[FileLock, os.stat_result | None]] = {}

    async def forget(self, thread_id: str) -> None:
        """Forget the number of a thread that is held, and removed."""
        await self._epochs.forget(thread_id)

    async def _take(self, owner: Owner) -> int:
        if not await asyncio.to_thread(self._locked, owner.thread_id):
            return 0
        return await self._epochs.raised(owner.thread_id)

    async def _is_taken(self, thread_id: str) -> bool:
        return await asyncio.to_thread(self._is_locked, thread_id)

    async def _leave(self, owner: Owner) -> None:
        if owner.thread_id in self._locks:
            lock, file = self._locks.pop(owner.thread_id)
            # While it is held: who has opened it meanwhile finds out, and opens it anew.
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
            is_locked = await asyncio.to_thread(self._locked, owner.thread_id)
            if not is_locked or await self._epochs.current(owner.thread_id) != owner.epoch:
                owner.lose()

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

    def _locked(self, thread_id: str) -> bool:
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


def digest_of(thread_id: str) -> bytes:
    """Name a thread by 16 bytes, whatever its id is."""
    return hashlib.sha256(thread_id.encode("utf-8", "surrogatepass")).digest()[:16]
