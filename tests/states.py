"""The state of a run that is under way, for tests that look at state."""

from collections.abc import AsyncGenerator, Awaitable

from replan import EnhancedState, RunResult
from replan.events.types import Event


async def state_of(running: Awaitable[RunResult]) -> EnhancedState:
    """Wait for a run, and give its state."""
    return (await running).state


async def read_until_the_answer(events: AsyncGenerator[Event]) -> None:
    """Read events as somebody who leaves with the answer."""
    async for event in events:
        if event.type == "task_completed":
            break
    await events.aclose()
