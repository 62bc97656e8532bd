"""One run at a time works on a thread: it holds the thread for as long as its process lives.

Each take of a thread raises its number, its epoch, and what an earlier owner writes is refused. So
a hold that falls unnoticed does no harm; it is looked after all the same, since a run whose thread
was taken should end soon, and one whose thread was not should keep it.
"""

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count

from replan.adapters.uninterrupted import uninterrupted
from replan.errors import StorageError, ThreadBusyError
from replan.ports.ownership import MOMENT, POLL, Owner, owner_in

BEAT = 1.0  # seconds from one look after the holds to the next

logger = logging.getLogger(__name__)


class Holds:
    """Threads that are worked on, all in this process; subclasses hold them against others, too."""

    def __init__(self, where: str = "") -> None:
        self.where = where or f":memory:{id(self)}"
        self._epochs = count(1)
        self._held: dict[str, Owner] = {}
        self._next_look: asyncio.TimerHandle | None = None
        self._look: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def holding(self, thread_id: str) -> AsyncGenerator[Owner]:
        """Hold a thread while this lasts; a process that is killed lets go."""
        owner, latest = Owner(self.where, thread_id), time.monotonic() + MOMENT
        try:
            # Not interrupted: an unknown lock would stay.
            while not await uninterrupted(self._try_take(owner)):
                if time.monotonic() > latest:
                    raise ThreadBusyError(thread_id)
                await asyncio.sleep(POLL)
            yield owner
        finally:
            await uninterrupted(self._release(owner))

    async def is_held(self, thread_id: str) -> bool:
        """Whether any process works on a thread now."""
        return thread_id in self._held or await self._is_taken(thread_id)

    def epoch_of(self, thread_id: str) -> int | None:
        """The number of the take by which a thread is held here; None if it is not."""
        owner = self._held.get(thread_id)
        return (owner and owner.epoch) or None

    async def close(self) -> None:
        """Stop looking after holds."""
        if self._next_look is not None:
            self._next_look.cancel()
        if self._look is not None:
            await asyncio.wait({self._look})

    @asynccontextmanager
    async def owning(self, thread_id: str) -> AsyncGenerator[None]:
        """Do something as the owner of a thread: an existing owner, or one for this work."""
        if owner_in(self.where, thread_id) is not None:
            yield
            return
        async with self.holding(thread_id) as owner:
            with owner.at_work():
                yield

    async def forget(self, thread_id: str) -> None:
        """Forget the number of a thread that is held, and removed."""

    async def _take(self, owner: Owner) -> int:
        """Take the thread, and return the number of this take; 0 if another process has it."""
        return next(self._epochs)

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
            if self._held:
                self._schedule()


def digest_of(thread_id: str) -> bytes:
    """Name a thread by 16 bytes, whatever its id is."""
    return hashlib.sha256(thread_id.encode("utf-8", "surrogatepass")).digest()[:16]


def first_epoch() -> int:
    """The number of the first take of a thread; no other thread of its name ever had it."""
    return secrets.randbits(48)
