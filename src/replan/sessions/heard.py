"""A turn as a stream: its events as they happen, the result last."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

from replan.events.types import Event
from replan.runs.stopping import put_an_end_to
from replan.state.session.context import AgentResult

Hear = Callable[[Event], None]
"""Takes an event immediately."""


async def heard(
    take: Callable[[Hear], Awaitable[AgentResult]],
) -> AsyncGenerator[Event | AgentResult]:
    """Take a turn in its own task; closing the iterator before its end cancels it."""
    parts: asyncio.Queue[Event | AgentResult | None] = asyncio.Queue()

    async def taken() -> None:
        parts.put_nowait(await take(parts.put_nowait))

    task = asyncio.ensure_future(taken())
    task.add_done_callback(lambda _: parts.put_nowait(None))
    try:
        while (each := await parts.get()) is not None:
            yield each
        await task
    finally:
        await put_an_end_to(task)
