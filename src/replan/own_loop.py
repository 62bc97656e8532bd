"""An event loop of our own, which ends at its time under work that does not want to end."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from replan.specialists.threads import MOMENT, Threads, still_at_work

T = TypeVar("T")

_left_open: list[asyncio.Runner] = []


def completed(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do work in a loop of its own; what ignores its cancellation is not waited for.

    LangChain runs in the loop's default executor what is synchronous: functions, tools and models
    inside of runnables. Here these threads can be given up.
    """
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
