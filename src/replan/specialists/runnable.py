"""A specialist that is a LangChain runnable, a compiled graph, or a function of messages."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.pregel.protocol import PregelProtocol

from replan.prompts.specialist import build_specialist_prompt
from replan.specialists.foreign import (
    arguments_of,
    call,
    last_of,
    message_of,
    result_of,
    with_message,
)
from replan.state.results import ExecutionContext, SpecialistResult
from replan.state.team import SpecialistCard


@dataclass(frozen=True)
class RunnableSpecialist:
    """Hands its messages on, and takes the last message that comes back."""

    card: SpecialistCard
    invokable: Any = None
    streamable: Any = None
    system_prompt: str = ""
    input_processor: Callable[[ExecutionContext], Sequence[BaseMessage]] | None = None
    output_processor: Callable[[BaseMessage], SpecialistResult] | None = None

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Run it on the messages of the step."""
        if self.input_processor is not None:
            messages = list(self.input_processor(context))
        else:
            messages = build_specialist_prompt(self.card, context, system_prompt=self.system_prompt)
        message = message_of(await self._answer(messages, config))
        if self.output_processor is not None:
            return with_message(self.output_processor(message), message)
        return result_of(message)

    async def _answer(self, messages: list[BaseMessage], config: RunnableConfig) -> Any:
        """Prefer the one that streams: its pieces are shown as they come."""
        chosen = self.invokable if self.streamable is None else self.streamable
        if isinstance(chosen, Runnable):
            return await _of_runnable(cast("Runnable[Any, Any]", chosen), messages, config)
        if self.streamable is None:
            return await call(chosen, messages, config)
        pieces = chosen(*arguments_of(chosen, messages, config))
        if inspect.isawaitable(pieces):
            pieces = await pieces
        return await last_of(pieces)


async def _of_runnable(
    runnable: Runnable[Any, Any], messages: list[BaseMessage], config: RunnableConfig
) -> Any:
    """Run it on what it takes: a graph takes a state, every other runnable the messages."""
    is_graph = isinstance(cast("object", runnable), PregelProtocol)
    return await runnable.ainvoke({"messages": messages} if is_graph else messages, config)
