"""Have messages answered by a LangChain runnable, a compiled graph, or a function of messages."""

from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig

from replan.langgraph_inside.graphs import is_graph
from replan.ports.specialist_port import show_text
from replan.specialists.function import call, call_in_pieces, joined


@dataclass(frozen=True)
class RunnableAnswer:
    """Passes the messages on; streaming is preferred, and pieces are shown as they come."""

    invokable: Any = None
    streamable: Any = None

    async def __call__(self, messages: list[BaseMessage], config: RunnableConfig) -> Any:
        if self.streamable is None:
            return await _whole(self.invokable, messages, config)
        if is_graph(self.streamable):
            # The pieces of a graph's stream are states.
            return await _whole(self.streamable, messages, config)
        if isinstance(cast("object", self.streamable), Runnable):
            pieces = self.streamable.astream(messages, config)
        else:
            pieces = call_in_pieces(self.streamable, messages, config)
        return await joined(pieces, partial(show_text, config=config))


async def _whole(invokable: Any, messages: list[BaseMessage], config: RunnableConfig) -> Any:
    """Run it on its input: a graph takes a state, everything else takes the messages."""
    if not isinstance(invokable, Runnable):
        return await call(invokable, messages, config)
    runnable = cast("Runnable[Any, Any]", invokable)
    given = {"messages": messages} if is_graph(runnable) else messages
    return await runnable.ainvoke(given, config)
