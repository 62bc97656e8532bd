"""Further attempts after a failed one, by tenacity; with a pause if a server is busy."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying, RetryCallState
from tenacity.wait import wait_exponential_jitter

from replan.base.failures import asked_pause, causes_of, is_busy

LONGEST_ASKED = 60.0
"""The longest pause in seconds that a server may ask for; a longer one is ignored."""

T = TypeVar("T")

_TRIES = "replan_tries"


def with_tries(error: Exception, tries: int) -> Exception:
    """Say at an error how many attempts its model call had."""
    # An attribute keeps the class and the words of a foreign error, whoever passes it on.
    setattr(error, _TRIES, tries)
    return error


def tries_of(error: BaseException) -> int:
    """How many attempts the model call had whose error this is; 0 if it is of no model call."""
    return next(
        (
            getattr(exception, _TRIES, 0)
            for exception in causes_of(error)
            if hasattr(exception, _TRIES)
        ),
        0,
    )


async def retried(
    attempt: Callable[[], Awaitable[T]], retrying: AsyncRetrying, first: T | Exception
) -> T:
    """Let tenacity decide about more attempts, by the outcome of the first one."""
    # Most work needs one attempt, and tenacity's work around it costs more than Replan's own. So
    # the caller makes the first attempt, and comes here if it was not enough.
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
    # A result that says it failed is not better later, so the next attempt follows immediately.
    usual = wait_exponential_jitter(multiplier=first, jitter=first, max=longest)

    def pause(state: RetryCallState) -> float:
        error = cause(state)
        if error is None or not is_busy(error):
            return 0.0
        seconds = asked_pause(error)
        return usual(state) if seconds is None or seconds > LONGEST_ASKED else seconds

    return pause


def error_raised(state: RetryCallState) -> BaseException | None:
    return state.outcome and state.outcome.exception()
