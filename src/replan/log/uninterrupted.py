"""Work that a cancellation must not stop in the middle, such as a transaction."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Await work to its end; a cancellation that comes meanwhile is raised after it."""
    return await to_its_end(asyncio.ensure_future(work))


async def to_its_end(future: "asyncio.Future[T]") -> T:
    """Await a future that a cancellation must not stop; the cancellation is raised after it."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.shield(future)
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:  # noqa: BLE001 - raised below
            break
    if cancelled is not None:
        if not future.cancelled():
            # Retrieved, so that asyncio does not complain.
            future.exception()
        raise cancelled
    return future.result()
