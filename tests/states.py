"""The state of a run that is under way, for tests that look at state."""

from collections.abc import Awaitable

from replan import EnhancedState, RunResult


async def state_of(running: Awaitable[RunResult]) -> EnhancedState:
    """Wait for a run, and give its state."""
    return (await running).state
