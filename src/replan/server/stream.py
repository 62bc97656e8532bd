"""Server-sent events: numbered, with signs of life, and never waited for by a run."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from replan.log.events.types import Event
from replan.runs.stopping import put_an_end_to

STUCK = 60.0
"""Seconds for which a reader may take nothing of a stream before it is ended."""

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Stream(StreamingResponse):
    """Texts as they come, until the end, or until the reader is gone or stuck."""

    def __init__(
        self, texts: AsyncGenerator[str], beat: float, seat: AbstractContextManager[None]
    ) -> None:
        """Prepare.

        Args:
            texts: The texts; it is closed at the end, whatever ends it.
            beat: Seconds of silence after which a comment shows that the stream lives.
            seat: Is held for as long as the stream lasts.
        """
        super().__init__(texts, headers=_HEADERS, media_type="text/event-stream")
        self._texts = texts
        self._seat = seat
        self._beat = beat
        self._sent_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        with self._seat:
            await self._send_all(receive, send)

    async def _send_all(self, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        works = [self._send_texts(send), self._send_heartbeats(send), _wait_for_disconnect(receive)]
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Whoever leaves takes nothing from the run.
            for task in tasks:
                await put_an_end_to(task)
        for task in done:
            task.result()

    async def _send_texts(self, send: Send) -> None:
        async with aclosing(self._texts):
            async for text in self._texts:
                if not await self._send_in_time(send, text):
                    return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_heartbeats(self, send: Send) -> None:
        loop = asyncio.get_running_loop()
        self._sent_at = loop.time()
        while True:
            silent = loop.time() - self._sent_at
            if silent >= self._beat and not await self._send_in_time(send, ": still there\n\n"):
                return
            await asyncio.sleep(max(0.0, self._beat - (loop.time() - self._sent_at)))

    async def _send_in_time(self, send: Send, text: str) -> bool:
        """Send a text; whether the reader took it in time."""
        self._sent_at = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(STUCK):
                await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        except TimeoutError:
            return False
        return True


def event_stream(
    events: AsyncGenerator[Event],
    run_id: str,
    rest: Callable[[], Awaitable[str]],
    beat: float,
    seat: AbstractContextManager[None],
) -> Stream:
    """Return the events of a run as they come, and at the end its status.

    Each event has its number as its `id`; a piece of text has none. The run appends its events to
    the storage and to a queue of this stream, so a slow reader keeps nothing but the stream.

    Args:
        events: The events.
        run_id: The run.
        rest: Waits until no process works on the run, and gives its outcome.
        beat: Seconds of silence after which a comment shows that the stream lives.
        seat: Is held for as long as the stream lasts.
    """
    return Stream(_event_lines(events, run_id, rest), beat, seat)


async def _event_lines(
    events: AsyncGenerator[Event], run_id: str, rest: Callable[[], Awaitable[str]]
) -> AsyncGenerator[str]:
    async with aclosing(events):
        async for event in events:
            number = "" if event.seq is None else f"id: {event.seq}\n"
            yield f"{number}data: {event.written}\n\n"
    outcome = json.dumps({"run_id": run_id, "outcome": await rest()})
    yield f"event: idle\ndata: {outcome}\n\n"


async def _wait_for_disconnect(receive: Receive) -> None:
    """Wait until the reader is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
