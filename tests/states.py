"""The state of a run that is under way, for tests that look at state."""

from collections.abc import AsyncGenerator, Awaitable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from replan import EnhancedState, RunResult
from replan.events import Event


async def state_of(running: Awaitable[RunResult]) -> EnhancedState:
    """Wait for a run, and give its state."""
    return (await running).state


async def read_until_the_answer(events: AsyncGenerator[Event]) -> None:
    """Read events as somebody who leaves with the answer."""
    async for event in events:
        if event.type == "task_completed":
            break
    await events.aclose()


async def said(graph: Any, answer: object, config: RunnableConfig) -> Command[Any]:
    """What resumes a thread with an answer to the one thing that it asks."""
    asked = (await graph.aget_state(config)).interrupts
    return Command(resume={asked[0].id: answer} if asked else answer)
