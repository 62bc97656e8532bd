"""One look at the queue for all who follow runs in it, however many they are."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping

from replan.errors import StorageError
from replan.runs.work import Stand

_FRESH = 0.25  # seconds for which a look holds for those who only follow
_FORGOTTEN = 5.0  # seconds after which unrequested jobs are no longer followed

Look = Callable[[Collection[str]], Awaitable[Mapping[str, Stand]]]


class Followed:
    """The status of jobs, by their locks."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._asked = dict[str, float]()
        self._found: Mapping[str, Stand] = {}
        self._looked_at = self._failed_at = float("-inf")
        self._failure: StorageError | None = None
        self._guard = asyncio.Lock()

    async def stand(self, lock: str, *, is_followed: bool = False) -> Stand | None:
        """The status of the job of a lock; None: there is none.

        Args:
            lock: The lock.
            is_followed: Whether an answer of a moment ago is good enough, because the next question
                comes soon.

        Raises:
            StorageError: The database cannot be reached.
        """
        asked = self._asked[lock] = time.monotonic()
        if is_followed and lock in self._found and asked - self._looked_at < _FRESH:
            return self._found[lock]
        async with self._guard:
            if self._failure is not None and self._failed_at >= asked:
                # Who waited for a look in vain does not begin to wait again.
                raise self._failure
            if self._looked_at < asked:
                await self._look_at_all()
        return self._found.get(lock)

    async def _look_at_all(self) -> None:
        now = time.monotonic()
        self._asked = {lock: at for lock, at in self._asked.items() if now - at < _FORGOTTEN}
        try:
            found = await self._look([*self._asked])
        except StorageError as error:
            self._failed_at, self._failure = time.monotonic(), error
            raise
        self._found, self._looked_at = found, now
