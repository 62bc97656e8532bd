"""A stream whose parts are worked out in a block."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, aclosing
from typing import TypeVar

T = TypeVar("T")


async def in_each(
    enter: Callable[[], AbstractContextManager[object]], parts: AsyncGenerator[T]
) -> AsyncGenerator[T]:
    """Give the parts of a stream; each is worked out in a block, and read outside it."""
    async with aclosing(parts):
        while True:
            with enter():
                try:
                    part = await anext(parts)
                except StopAsyncIteration:
                    return
            yield part
