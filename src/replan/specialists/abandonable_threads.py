"""Threads for work that may hang: what nobody waits for keeps no process from ending.

The threads of `concurrent.futures`, of asyncio's default executor and of anyio are waited for when
the process ends, whatever became of those who asked for the work. These get a moment: a thread that
is in foreign code while the interpreter is taken down can crash the process.
"""

import asyncio
import atexit
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent import futures
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")

MOST = 64
"""Threads that a pool of these has at work at once; one that was given up does not count."""

MOMENT = 0.5
"""How long, in seconds, the end of the process waits for all that was given up and still runs."""

_given_up: "WeakSet[_Work]" = WeakSet()


@atexit.register
def still_at_work() -> bool:
    """Give what nobody waits for a moment to end; tell whether some of it still runs."""
    until = time.monotonic() + MOMENT
    return not all(work.ended(until - time.monotonic()) for work in list(_given_up))


async def in_thread(work: Callable[[], T]) -> T:
    """Do the work in a thread of its own; to cancel this is to give the thread up."""
    task = _Work(partial(contextvars.copy_context().run, work))
    threading.Thread(target=task.run, name="replan-work", daemon=True).start()
    return await asyncio.wrap_future(task)


# A thread takes the next work when it is done with one, so what is kept for each thread, such as a
# connection, is kept for as many as are at work at once.
class Threads(futures.ThreadPoolExecutor):
    """A pool whose work can be given up: a shutdown waits for all work but this."""

    def __init__(self, most: int = MOST) -> None:
        # asyncio takes no other kind of executor. Nothing is submitted to this part of it.
        super().__init__(max_workers=1)
        self._most = most
        self._guard = threading.RLock()
        self._queued: deque[_Work] = deque()
        self._at_work: set[_Work] = set()
        self._idle: list[_Worker] = []
        self._is_shut = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> futures.Future[T]:
        work = _Work(partial(fn, *args, **kwargs), self._leave)
        with self._guard:
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._queued.append(work)
            self._fill()
        return work

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - its base's signature
        """Wait for the work that somebody still waits for."""
        with self._guard:
            self._is_shut = True
            if cancel_futures:
                for work in list(self._queued):
                    work.cancel()
            left = [*self._at_work, *self._queued]
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()
        if wait:
            futures.wait(left)

    def after(self, work: "_Work", worker: "_Worker") -> "_Work | None":
        """Say what a thread does next; None: it is to rest, or to end if it is not needed."""
        with self._guard:
            self._at_work.discard(work)
            if self._queued and len(self._at_work) < self._most:
                return self._next()
            if self._is_shut or len(self._idle) >= self._most:
                worker.end()
            else:
                self._idle.append(worker)
            return None

    def _leave(self, work: "_Work") -> None:
        with self._guard:
            self._at_work.discard(work)
            self._fill()

    def _fill(self) -> None:
        while self._queued and len(self._at_work) < self._most:
            worker = self._idle.pop() if self._idle else _Worker(self)
            worker.take(self._next())

    def _next(self) -> "_Work":
        work = self._queued.popleft()
        self._at_work.add(work)
        return work


class _Worker:
    """A thread of a pool, which dies with the process."""

    def __init__(self, pool: Threads) -> None:
        self._pool = pool
        self._given: SimpleQueue[_Work | None] = SimpleQueue()
        threading.Thread(target=self._run, name="replan-work", daemon=True).start()

    def take(self, work: "_Work") -> None:
        self._given.put(work)

    def end(self) -> None:
        self._given.put(None)

    def _run(self) -> None:
        while (work := self._given.get()) is not None:
            while work is not None:
                work.run()
                work = self._pool.after(work, self)


class _Work(futures.Future[Any]):
    """Work in a thread that dies with the process; `leave` hears when its place is free."""

    def __init__(
        self, work: Callable[[], Any], leave: "Callable[[_Work], None]" = lambda _: None
    ) -> None:
        super().__init__()
        self._work = work
        self._leave = leave
        self._is_over = threading.Event()

    def ended(self, within: float) -> bool:
        return self._is_over.wait(max(0.0, within))

    def cancel(self) -> bool:
        """Give up: what has begun goes on, but nobody waits for it any more."""
        if super().cancel():
            return True
        if self.running():
            _given_up.add(self)
            self._leave(self)
        return False

    def run(self) -> None:
        if self.set_running_or_notify_cancel():
            try:
                self.set_result(self._work())
            except (StopIteration, KeyboardInterrupt) as error:
                # A future of asyncio refuses the first, and whoever waits would wait forever. The
                # second is no person's Ctrl-C, which only the main thread gets.
                self.set_exception(RuntimeError(f"it raised {error!r}"))
            except BaseException as error:  # noqa: BLE001 - foreign code; who waits gets it
                self.set_exception(error)
        self._is_over.set()
