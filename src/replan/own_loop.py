"""An event loop of our own, which ends at its time under work that does not want to end."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, TypeVar

from replan.specialists.abandonable_threads import MOMENT, Threads, still_at_work

T = TypeVar("T")

_left_open: list[asyncio.Runner] = []


def completed(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do work in a loop of its own; what ignores its cancellation is not waited for."""
    # LangChain runs in the loop's default executor what is synchronous: functions, tools and models
    # inside of runnables. Here these threads can be given up.
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


def is_work_left() -> bool:
    """Whether a task or a thread is still in foreign code that nobody waits for."""
    return bool(_left_open) or still_at_work()


async def _nothing_left() -> bool:
    """Cancel what is left in the loop, and tell whether all of it ends within a moment."""
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
        self._thread = threading.Thread(target=self._served, name="replan", daemon=True)
        self._thread.start()
        self._loop = self._ready.result()

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something in the loop, and wait for what it gives; from any other thread."""
        # Who is interrupted while it waits cancels what it waits for.
        if not self.is_open:
            raise RuntimeError("This runtime is closed: use it inside of its `with` block.")

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

    def _served(self) -> None:
        completed(self._serve)

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        async with AsyncExitStack() as self._exits:
            self._ready.set_result(asyncio.get_running_loop())
            await self._ended.wait()
