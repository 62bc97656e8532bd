"""What LangChain's tools keep to themselves."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool


def with_schema(tool: BaseTool, schema: Any, metadata: dict[str, Any]) -> BaseTool:
    """Return a tool with other arguments for the model to see."""
    twin = tool.model_copy()
    twin.metadata = metadata
    # Assigned, not copied in: LangChain forgets by it what it has computed of the old schema.
    twin.args_schema = schema
    return twin


def runs_in_thread(tool: BaseTool) -> bool:
    """Whether LangChain runs a tool in its own thread, since it has no coroutine."""
    if getattr(tool, "coroutine", None) is not None:
        return False
    owner = next(kind for kind in type(tool).__mro__ if "_arun" in vars(kind))
    return owner in (BaseTool, StructuredTool, Tool)


class _StandIn:
    """A tool in all but how it is called: LangGraph asks for nothing else of the one of a call."""

    def __init__(
        self, tool: BaseTool, work: Callable[[Any, RunnableConfig], Awaitable[Any]]
    ) -> None:
        self._tool = tool
        self._work = work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    async def ainvoke(self, input: Any, config: RunnableConfig, **_: Any) -> Any:  # noqa: A002 - LangChain's name
        return await self._work(input, config)


def called_by(tool: BaseTool, work: Callable[[Any, RunnableConfig], Awaitable[Any]]) -> BaseTool:
    """Return a replacement for a tool in one call, which does `work` with its input instead."""
    return cast("BaseTool", _StandIn(tool, work))


class ServerTool(BaseTool):
    """A tool of a server: a call of it is a call of the server."""

    provider: Any
    tool: str  # its name at the server

    def _run(self, **_: Any) -> Any:
        raise NotImplementedError("the tools of servers are asynchronous")

    # Its arguments may have any names, `self` among them.
    async def _arun(self, /, **arguments: Any) -> Any:
        return await self.provider.execute(self.tool, arguments)
