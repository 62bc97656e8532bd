"""How long to wait before another attempt: for a server that is busy, and for nothing else."""

from collections.abc import Callable

from tenacity import RetryCallState
from tenacity.wait import wait_exponential_jitter

from replan.failures import asked_pause, is_busy

LONGEST_ASKED = 60.0
"""Seconds that a server may ask to be left alone for; one that asks for more is not heeded."""


def pause_if_busy(
    cause: Callable[[RetryCallState], BaseException | None], *, first: float, longest: float
) -> Callable[[RetryCallState], float]:
    """Make a wait for tenacity: seconds that double from attempt to attempt.

    What failed by its own word is no better later, so it is attempted again at once.

    Args:
        cause: Gives the error of the newest attempt, or None.
        first: Seconds before the second attempt; up to as many again are added by chance.
        longest: Seconds at most, where the server does not ask for a pause itself.
    """
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
