"""Says which step blocked the event loop: nothing else in the loop ran meanwhile."""

import logging
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")

LONGEST = 1.0  # seconds that a step may keep the loop before it is named

logger = logging.getLogger(__name__)


async def watched(work: Coroutine[Any, Any, T], about: Mapping[str, object]) -> T:
    """Await work, and log each time that it blocks the loop for over a second.

    Work that it starts as other tasks is not watched.

    Args:
        work: The work.
        about: Whose work it is, for the log.
    """
    return await _Watched(work, about)


@dataclass(frozen=True)
class _Watched(Generic[T]):
    work: Coroutine[Any, Any, T]
    about: Mapping[str, object]

    def __await__(self) -> Generator[Any, Any, T]:
        proceed: Callable[[Any], Any] = self.work.send
        given: Any = None
        while True:
            began = time.monotonic()
            try:
                awaited = proceed(given)
            except StopIteration as end:
                return end.value
            finally:
                self._check(time.monotonic() - began)
            try:
                given, proceed = (yield awaited), self.work.send
            except BaseException as error:  # noqa: BLE001 - it is raised where the work waits
                given, proceed = error, self.work.throw

    def _check(self, seconds: float) -> None:
        if seconds > LONGEST:
            about = {**self.about, "seconds": round(seconds, 1)}
            logger.warning(
                "a step blocked the event loop; let it await, or run in a thread", extra=about
            )
