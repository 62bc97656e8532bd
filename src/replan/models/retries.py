"""More attempts, by tenacity, for what failed at the first."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying

T = TypeVar("T")


async def with_retries(
    attempt: Callable[[], Awaitable[T]], retrying: Callable[[], AsyncRetrying]
) -> T:
    """Make an attempt; tenacity decides about more of them if it raises.

    Most attempts are the only one, and what tenacity does around one costs more than all that
    Replan does around it.

    Args:
        attempt: Makes one.
        retrying: Gives the loop; it takes the first attempt as its own.

    Raises:
        Exception: What the newest attempt raised.
    """
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
