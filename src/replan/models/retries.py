"""More attempts, by tenacity, for what failed at the first; a pause where a server is busy."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState
from tenacity.wait import wait_exponential_jitter

from replan.failures import asked_pause, is_busy

LONGEST_ASKED = 60.0
"""Seconds that a server may ask to be left alone for; one that asks for more is not heeded."""

T = TypeVar("T")


async def retried(
    attempt: Callable[[], Awaitable[T]], retrying: AsyncRetrying, first: T | Exception
) -> T:
    """Let tenacity decide about more attempts, by what came of the first one."""
    # Most attempts are the only one, and what tenacity does around one costs more than all that
    # Replan does around it. So who calls makes the first one, and comes here if it was not enough.
    made = [first]

    async def once() -> T:
        came = made.pop() if made else await attempt()
        if isinstance(came, Exception):
            raise came
        return came

    return await retrying(once)


def pause_if_busy(
    cause: Callable[[RetryCallState], BaseException | None], *, first: float, longest: float
) -> Callable[[RetryCallState], float]:
    """Make a wait for tenacity: seconds that double from attempt to attempt, with some chance."""
    # What failed by its own word is no better later, so it is attempted again at once.
    usual = wait_exponential_jitter(multiplier=first, jitter=first, max=longest)

    def pause(state: RetryCallState) -> float:
        error = cause(state)
        if error is None or not is_busy(error):
            return 0.0
        asked = asked_pause(error)
        return usual(state) if asked is None or asked > LONGEST_ASKED else asked

    return pause


def error_raised(state: RetryCallState) -> BaseException | None:
    return state.outcome and state.outcome.exception()
