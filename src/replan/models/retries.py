"""More attempts, by tenacity, for what failed at the first."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import AsyncRetrying

T = TypeVar("T")


async def with_retries(
    attempt: Callable[[], Awaitable[T]],
    retrying: Callable[[], AsyncRetrying],
    *,
    is_wanted: Callable[[T], bool] = lambda _: True,
) -> T:
    """Make an attempt; tenacity decides about more of them if it fails.

    Most attempts are the only one, and what tenacity does around one costs more than all that
    Replan does around it.

    Args:
        attempt: Makes one.
        retrying: Gives the loop; it takes the first attempt as its own.
        is_wanted: Whether a result of the first attempt can stay.

    Raises:
        Exception: What the newest attempt raised.
    """
    failed, results = None, list[T]()
    try:
        result = await attempt()
    except Exception as error:  # noqa: BLE001 - the loop gets it as its own first attempt's
        failed = error
    else:
        if is_wanted(result):
            return result
        results.append(result)
    return await retrying()(_after_first(attempt, failed, results))


def _after_first(
    attempt: Callable[[], Awaitable[T]], failed: Exception | None, results: list[T]
) -> Callable[[], Awaitable[T]]:
    """Attempts of which the first one was made: it failed, or it has a result."""

    async def once() -> T:
        nonlocal failed
        if failed is not None:
            error, failed = failed, None
            raise error
        return results.pop() if results else await attempt()

    return once
