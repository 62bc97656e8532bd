"""Stop a run gracefully: nothing new starts, running work gets some time, then is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

T = TypeVar("T")

GRACE = 10.0  # seconds for running work to end by itself after a run is stopped


class StopSignal(Exception):  # noqa: N818 - no error, but what was asked for
    """A run was stopped on request before its end."""


async def stoppable(
    work: Callable[[RunControl], Awaitable[T]],
    stop: asyncio.Event,
    grace: float,  # seconds that running steps have once `stop` is set
    at_once: asyncio.Event | None = None,  # set to stop waiting for them
) -> T:
    """Run a graph until it ends. If it is stopped before, it rests and StopSignal is raised."""
    control = RunControl()
    running = asyncio.ensure_future(work(control))
    waiting = asyncio.ensure_future(stop.wait())
    hurrying = asyncio.ensure_future((at_once or asyncio.Event()).wait())
    try:
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            control.request_drain("stopped on request")
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait({running, hurrying}, timeout=grace, return_when=first)
    finally:
        await put_an_end_to(waiting, hurrying, running)
    if running.cancelled() and stop.is_set():
        raise StopSignal
    try:
        return running.result()
    except GraphDrained as error:
        raise StopSignal from error


async def on_its_own(work: Awaitable[T]) -> T:
    """Do work that is cancelled once and then finishes, however often this is called."""
    running = asyncio.ensure_future(work)
    try:
        await asyncio.wait({running})
    finally:
        await put_an_end_to(running)
    return running.result()


async def put_an_end_to(*tasks: "asyncio.Future[Any]") -> None:
    """Cancel tasks and wait until they have really ended."""
    # Who cancels this meanwhile waits, too: what cleans up and is cancelled again leaves tasks and
    # transactions behind.
    again: asyncio.CancelledError | None = None
    for task in tasks:
        task.cancel()
    while not all(task.done() for task in tasks):
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError as error:
            again = error
    if again is not None:
        raise again
