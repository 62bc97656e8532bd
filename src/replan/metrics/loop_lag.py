"""How late an event loop wakes: what holds it, holds every run and every stream of its process."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

BEAT = 0.25
"""Seconds between two looks at the clock."""


@asynccontextmanager
async def lag_told(tell: Callable[[float], None]) -> AsyncGenerator[None]:
    """Return how late the loop woke, again and again, for as long as the block."""
    loop = asyncio.get_running_loop()

    def look(due: float) -> None:
        nonlocal handle
        now = loop.time()
        tell(max(0.0, now - due))
        handle = loop.call_at(now + BEAT, look, now + BEAT)

    handle = loop.call_later(BEAT, look, loop.time() + BEAT)
    try:
        yield
    finally:
        handle.cancel()
