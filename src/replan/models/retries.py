"""More attempts, by tenacity, for what failed at the first; a pause where a server is busy."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState
from tenacity.wait import wait_exponential_jitter

from replan.failures import asked_pause, is_busy

LONGEST_ASKED = 60.0
"""Seconds that a server may ask to be left alone for; one that asks for more is not heeded."""

T = TypeVar("T")


async def with_retries(
    attempt: Callable[[], Awaitable[T]], retrying: Callable[[], AsyncRetrying]
) -> T:
    """Make an attempt; tenacity decides about more of them if it raises."""
    # Most attempts are the only one, and what tenacity does around one costs more than all that
    # Replan does around it.
    try:
        return await attempt()
    except Exception as error:  # noqa: BLE001 - the loop gets it as its own first attempt's
        failed = error
    return await retrying()(_after_first(attempt, failed))


async def retried(attempt: Callable[[], Awaitable[T]], retrying: AsyncRetrying, first: T) -> T:
    """Let tenacity decide about more attempts, by the result of the one that was made."""
    return await retrying(_after_first(attempt, None, first))


def _after_first(
    attempt: Callable[[], Awaitable[T]], failed: Exception | None, *result: T
) -> Callable[[], Awaitable[T]]:
    """Attempts of which the first one was made: it failed, or it has a result."""
    results = list(result)

    async def once() -> T:
        nonlocal failed
        if failed is not None:
            error, failed = failed, None
            raise error
        return results.pop() if results else await attempt()

    return once


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
