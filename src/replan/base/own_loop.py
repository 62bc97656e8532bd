"""An event loop of our own, which can close although some work in it does not end."""

import asyncio
import gc
import signal
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent import futures
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from replan.base.user_code import MOMENT, Work, still_at_work

T = TypeVar("T")

MOST = 64
"""Threads that a pool of these has at work at once; one that was abandoned does not count."""

NEW_OBJECTS = 50_000
"""Objects that are new before the garbage collector of a server looks at them; Python: 700."""

_left_open: list[asyncio.Runner] = []


def run_in_own_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do work in its own loop; what ignores its cancellation is not waited for."""
    # LangChain runs in the loop's default executor what is synchronous: functions, tools and models
    # inside runnables. Here these threads can be abandoned.
    runner = asyncio.Runner()
    runner.get_loop().set_default_executor(Threads())
    try:
        return runner.run(work())
    finally:
        if runner.run(_nothing_left()):
            runner.close()
        else:
            # To close it is to wait for them.
            _left_open.append(runner)


def spare_collector() -> None:
    """Let the garbage collector look at less, in a process that does nothing but serve.

    Runs leave hardly any cycles, and what they hold in flight is much, some 4,000 objects each:
    with Python's threshold, a quarter of the CPU time of a hundred runs at once would go into
    looking at it again and again; with a threshold of 5,000, a tenth.
    """
    # What is there by now stays until the end.
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)


async def until_signalled() -> None:
    """Wait for SIGINT or SIGTERM, in a process that does nothing but serve."""
    spare_collector()
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(signal_number, ended.set)
    await ended.wait()


def is_work_left() -> bool:
    """Whether a task or a thread is still in abandoned foreign code."""
    return bool(_left_open) or still_at_work()


# A thread takes the next work when it is done with one, so what is kept for each thread, such as a
# connection, is kept for as many as are at work at once.
class Threads(futures.ThreadPoolExecutor):
    """A pool whose work can be abandoned: a shutdown waits for all work but this."""

    def __init__(self, most: int = MOST) -> None:
        # asyncio takes no other kind of executor. Nothing is submitted to this part of it.
        super().__init__(max_workers=1)
        self._most = most
        self._guard = threading.RLock()
        self._queued: deque[Work] = deque()
        self._at_work: set[Work] = set()
        self._idle: list[_Worker] = []
        self._is_shut = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> futures.Future[T]:
        work = Work(partial(fn, *args, **kwargs), self._give_up)
        with self._guard:
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._queued.append(work)
            self._start_queued()
        return work

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - its base's signature
        """Wait for the work that still has a waiter."""
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

    def after(self, work: "Work", worker: "_Worker") -> "Work | None":
        """Return what a thread does next; None if it rests, or ends because it is not needed."""
        with self._guard:
            self._at_work.discard(work)
            if self._queued and len(self._at_work) < self._most:
                return self._next()
            if self._is_shut or len(self._idle) >= self._most:
                worker.end()
            else:
                self._idle.append(worker)
            return None

    def _give_up(self, work: "Work") -> None:
        with self._guard:
            self._at_work.discard(work)
            self._start_queued()

    def _start_queued(self) -> None:
        while self._queued and len(self._at_work) < self._most:
            worker = self._idle.pop() if self._idle else _Worker(self)
            worker.take(self._next())

    def _next(self) -> "Work":
        work = self._queued.popleft()
        self._at_work.add(work)
        return work


class _Worker:
    """A thread of a pool, which dies with the process."""

    def __init__(self, pool: Threads) -> None:
        self._pool = pool
        self._given: SimpleQueue[Work | None] = SimpleQueue()
        threading.Thread(target=self._run, name="replan-work", daemon=True).start()

    def take(self, work: "Work") -> None:
        self._given.put(work)

    def end(self) -> None:
        self._given.put(None)

    def _run(self) -> None:
        while (work := self._given.get()) is not None:
            while work is not None:
                work.run()
                work = self._pool.after(work, self)


async def _nothing_left() -> bool:
    """Cancel what is left in the loop, and return whether all of it ends within a moment."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=MOMENT)
    return all(task.done() for task in left)


class Portal:
    """A loop of its own in one thread, for callers that are not asynchronous."""

    def __init__(self) -> None:
        """Start the thread."""
        self._ready: Future[asyncio.AbstractEventLoop] = Future()
        self._ended: asyncio.Event
        self._exits: AsyncExitStack
        self._thread = threading.Thread(
            target=run_in_own_loop, args=(self._serve,), name="replan", daemon=True
        )
        self._thread.start()
        self._loop = self._ready.result()

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run something in the loop from another thread, and wait for its result."""
        # Who is interrupted while it waits cancels what it waits for.
        if not self.is_open:
            raise RuntimeError("This runtime is closed: use it inside its `with` block.")

        async def done() -> T:
            return await work()

        future = asyncio.run_coroutine_threadsafe(done(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def is_open(self) -> bool:
        """Whether anything can still be done in the loop."""
        return not self._loop.is_closed()

    def enter(self, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter a context, which is left when this is closed."""
        return self.call(lambda: self._exits.enter_async_context(manager))

    def close(self) -> None:
        """Leave all contexts, and end the thread."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        async with AsyncExitStack() as self._exits:
            self._ready.set_result(asyncio.get_running_loop())
            await self._ended.wait()
