"""Bounds the time of work: by its own timeout, and by what the run and its parts have left."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from replan.errors import LimitReachedError
from replan.spending.account import Account
from replan.spending.meter import Meter
from replan.spending.permits import Scope

T = TypeVar("T")

logger = logging.getLogger(__name__)

GRACE = 1.0
"""Seconds that work which ran out of time has to end by itself before it is abandoned."""

_TICK = 1.0


class StepTimeoutError(TimeoutError):
    """Work was stopped when its time was over; how far it had come is not known."""


def was_cut_off(error: BaseException) -> bool:
    """Whether an error says that work was stopped in the middle, since its time was over."""
    return isinstance(error, StepTimeoutError) or isinstance(error.__cause__, StepTimeoutError)


async def in_time(
    work: Callable[[], Awaitable[T]],
    account: Account,
    meter: Meter,
    seconds: float = math.inf,
) -> T:
    """Do work as long as it may take, and not much longer if it will not stop.

    The time in which a call waits for others to make room is not the work's own. It counts for
    the run, and ends if none of the others comes to its end within the work's timeout.

    Raises:
        StepTimeoutError: The work took longer than its own timeout, or waited in vain as long.
        LimitReachedError: The run, the specialist or the step has no time left.
    """
    scopes = meter.scopes
    is_bounded = any(scope.budget.max_seconds is not None for scope in scopes)
    left, scope = account.time_left(scopes)
    if left <= 0:
        raise scope.reached("seconds")
    started, end = time.monotonic(), _End(seconds, TimeoutError)
    task = asyncio.ensure_future(work())
    try:
        with account.at_work(scopes):
            while not task.done():
                end = _next_end(account, meter, seconds, started)
                if end.left <= 0:
                    break
                await asyncio.wait({task}, timeout=_patience(end.left, is_bounded=is_bounded))
                await account.note_time(scopes)
    finally:
        is_late = not task.done()
        if is_late:
            await _stop(task)
    if is_late:
        raise end.error()
    if task.cancelled():
        raise RuntimeError("it cancelled itself")
    return task.result()


class _End(NamedTuple):
    left: float
    error: Callable[[], Exception]


def _next_end(account: Account, meter: Meter, seconds: float, started: float) -> _End:
    """What ends work first, if it does not end by itself."""
    own = started + seconds + meter.waiting.seconds - time.monotonic()
    left, scope = account.time_left(meter.scopes)
    in_vain = "no room for a call: for {:g} s none of those that hold it has ended"
    ends = (
        _End(own, lambda: StepTimeoutError(f"no answer within {seconds:g} s")),
        _End(seconds - meter.stuck, lambda: StepTimeoutError(in_vain.format(seconds))),
        _End(left, lambda: _reached_at_work(scope)),
    )
    return min(ends, key=lambda end: end.left)


def _reached_at_work(scope: Scope) -> LimitReachedError:
    error = scope.reached("seconds")
    error.__cause__ = StepTimeoutError("it was at work")
    return error


def _patience(left: float, *, is_bounded: bool) -> float | None:
    """How long to wait at once: time that is bounded is put on record while it passes."""
    left = min(left, _TICK) if is_bounded else left
    return None if left == math.inf else left


async def _stop(task: asyncio.Future[Any]) -> None:
    """Cancel a task; one that will not stop is abandoned, and what it says later is not heard."""
    task.cancel()
    task.add_done_callback(lambda late: late.cancelled() or late.exception())
    await asyncio.wait({task}, timeout=GRACE)
    if not task.done():
        logger.warning("work that does not stop was left alone", extra={"seconds": GRACE})
