"""Work that a cancellation must not stop in the middle, such as a transaction."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def uninterrupted(
    work: Coroutine[Any, Any, T], running: set[asyncio.Task[Any]] | None = None
) -> T:
    """Await work to its end; a cancellation that comes meanwhile is raised after it."""
    task = asyncio.ensure_future(work)
    if running is not None:
        running.add(task)
        task.add_done_callback(running.discard)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            # Retrieved, so that asyncio does not complain.
            task.exception()
        raise cancelled
    return task.result()
