"""What every agent of sessions does: it reads a turn, reports its events, and raises nothing."""

import asyncio
from abc import ABC, abstractmethod
from asyncio import AbstractEventLoop
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Unpack
from weakref import WeakKeyDictionary

from replan.events.types import Event
from replan.failures import describe
from replan.ports.agent import TurnOptions, UserInput
from replan.runs.stopping import put_an_end_to
from replan.sessions.request import UserMessage, read_input
from replan.state.session.context import AgentContext, AgentResult
from replan.state.session.context_fields import is_large

Report = Callable[[Event], None]
"""Takes an event immediately."""

_beginnings: WeakKeyDictionary[AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class SessionAgent(ABC):
    """Takes turns of sessions, and stores nothing between two calls."""

    async def process(
        self,
        user_input: UserInput,
        context: AgentContext | Mapping[str, Any],
        **options: Unpack[TurnOptions],
    ) -> AgentResult:
        """Take one turn of a session. The context stays as it is; the result has the updates.

        Args:
            user_input: What the user says, in a form that the agent takes.
            context: The session, or a dictionary that `AgentContext.from_dict` reads.
            options: Those that the agent takes.

        Returns:
            The result. Errors are results without success; only a cancellation passes through.
        """
        return await self._result_of(user_input, context, options, None)

    async def stream(
        self,
        user_input: UserInput,
        context: AgentContext | Mapping[str, Any],
        **options: Unpack[TurnOptions],
    ) -> AsyncGenerator[Event | AgentResult]:
        """Take one turn as `process` does; yields its events as they happen, the result last.

        Closing the iterator before its end cancels the turn.
        """
        parts: asyncio.Queue[Event | AgentResult | None] = asyncio.Queue()

        async def take() -> None:
            report = parts.put_nowait
            report(await self._result_of(user_input, context, options, report))

        task = asyncio.ensure_future(take())
        task.add_done_callback(lambda _: parts.put_nowait(None))
        try:
            while (part := await parts.get()) is not None:
                yield part
            await task
        finally:
            await put_an_end_to(task)

    async def _result_of(
        self,
        user_input: UserInput,
        context: AgentContext | Mapping[str, Any],
        options: TurnOptions,
        report: Report | None,
    ) -> AgentResult:
        await _begin()
        try:
            # A context is checked where it is made, and nothing here changes what is in it.
            is_read = isinstance(context, AgentContext)
            session = context if is_read else await read_context(context)
            return await self._turn(read_input(user_input), session, options, report)
        except Exception as error:  # noqa: BLE001 - whatever happens is the result's to say
            return AgentResult(success=False, response="", error=describe(error))

    @abstractmethod
    async def _turn(
        self,
        message: UserMessage,
        session: AgentContext,
        options: TurnOptions,
        report: Report | None,
    ) -> AgentResult:
        """Take a turn; `report` is None where nobody follows it."""


async def read_context(data: Mapping[str, Any]) -> AgentContext:
    """Read a context, a large one in a thread: the event loop stays free.

    Raises:
        ContextError: Something is wrong; names every bad field.
    """
    if is_large(data):
        return await asyncio.to_thread(AgentContext.from_dict, data)
    return AgentContext.from_dict(data)


async def _begin() -> None:
    """Let turns begin in the order of their arrival, one in each cycle of the event loop."""
    # Each time a loop comes round it does all that can be done: of a thousand turns that began
    # together, a thousand first parts, before anything else.
    async with _beginnings.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        await asyncio.sleep(0)
