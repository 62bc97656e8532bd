"""Work as a stream: what it reports as it happens, and at the end what it came to.

Whoever follows work in this process reads this one stream, of whatever kind its parts are.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, TypeVar

from replan.runs.stopping import put_an_end_to

E = TypeVar("E")
R = TypeVar("R")


async def stream_of(
    work: Callable[[Callable[[E], None]], Coroutine[Any, Any, R]],
    outliving: set[asyncio.Task[Any]] | None = None,
) -> AsyncGenerator[E | R]:
    """Do work, and yield what it reports as it happens, its result last.

    Args:
        work: Is given what it reports with.
        outliving: The works that go on when their reader leaves; without it the work is cancelled.
    """
    parts: asyncio.Queue[E | None] = asyncio.Queue()
    is_read = True

    def report(part: E) -> None:
        if is_read:
            parts.put_nowait(part)

    task = asyncio.ensure_future(work(report))
    task.add_done_callback(lambda _: parts.put_nowait(None))
    if outliving is not None:
        outliving.add(task)
        task.add_done_callback(outliving.discard)
    try:
        while (part := await parts.get()) is not None:
            yield part
        yield await task
    finally:
        is_read = False
        if outliving is None:
            await put_an_end_to(task)
