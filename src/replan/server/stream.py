"""Server-sent events: numbered, with signs of life, and never waited for by a run."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from replan.runs.looking import RunView
from replan.runs.run_event import RunEvent
from replan.runs.stopping import put_an_end_to

T = TypeVar("T")

STUCK = 60.0
"""Seconds for which a reader may take nothing of a stream before it is ended."""

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """The events of a run as they come, and at the end how it stands.

    Each event has its number as its `id`; a piece of text has none. The run appends its events to
    the storage and to a queue of this stream, so a slow reader keeps nothing but the stream.
    """

    def __init__(
        self,
        events: AsyncGenerator[RunEvent],
        look: Callable[[], Awaitable[RunView]],
        beat: float,
    ) -> None:
        told = _told(events, look, beat)
        super().__init__(told, headers=_HEADERS, media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream, until nothing more comes or the reader is gone or stuck."""
        await super().__call__(scope, receive, patient(send))


def patient(send: Send) -> Send:
    """Send, and break off where a reader takes nothing for long; he can come back."""

    async def sent(message: object) -> None:
        try:
            async with asyncio.timeout(STUCK):
                await send(message)  # pyright: ignore[reportArgumentType]
        except TimeoutError:
            raise OSError("the reader takes nothing") from None

    return sent


async def _told(
    events: AsyncGenerator[RunEvent], look: Callable[[], Awaitable[RunView]], beat: float
) -> AsyncGenerator[str]:
    async with aclosing(with_beats(events, beat)) as coming:
        async for event in coming:
            yield ": still there\n\n" if event is None else _written(event)
    view = await look()
    outcome = json.dumps({"run_id": view.run_id, "outcome": view.outcome})
    yield f"event: rest\ndata: {outcome}\n\n"


def _written(event: RunEvent) -> str:
    number = "" if event.seq is None else f"id: {event.seq}\n"
    return f"{number}data: {event.model_dump_json()}\n\n"


async def with_beats(coming: AsyncGenerator[T], beat: float) -> AsyncGenerator[T | None]:
    """Give what comes, and None whenever nothing came for a while."""
    async with aclosing(coming):
        while True:
            following = asyncio.ensure_future(anext(coming))
            try:
                while not (await asyncio.wait({following}, timeout=beat))[0]:
                    yield None
            finally:
                # Who leaves takes nothing from the run.
                if not following.done():
                    await put_an_end_to(following)
            try:
                event = following.result()
            except StopAsyncIteration:
                return
            yield event
