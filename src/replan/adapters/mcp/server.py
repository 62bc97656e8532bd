"""The tools of an MCP server; connected when first needed, and again after it died."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from replan.adapters.mcp.ways import Way
from replan.errors import ToolCallLostError, ToolServerError
from replan.failures import describe
from replan.ports.tool_provider import ToolDefinition
from replan.state.team import Effects

if TYPE_CHECKING:
    from mcp_types import Tool

    from replan.adapters.mcp.connection import Connection

T = TypeVar("T")

_MOST_PAGES = 100
_MOST_TOOLS = 2_000
_LONGEST_PROBLEM = 2_000


class McpServer:
    """A `ToolProvider`: one connection in each event loop that needs one."""

    def __init__(self, name: str, way: Way, *, seconds: float, is_trusted: bool = False) -> None:
        self._name = name
        self._way = way
        self._seconds = seconds
        self._is_trusted = is_trusted  # whether what it says of effects counts
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, Connection] = WeakKeyDictionary()

    async def list_tools(self) -> list[ToolDefinition]:
        connection = await self._connection()
        try:
            listed = await self._listed(connection)
        except ToolServerError:
            # Since it was asked last, it died, or forgot its session.
            connection.end()
            listed = await self._listed(await self._connection())
        return [self._defined(tool) for tool in listed]

    async def get_tool(self, name: str) -> ToolDefinition:
        for tool in await self.list_tools():
            if tool.name == name:
                return tool
        raise ToolServerError(self._name, f"it has no tool {name}")

    async def execute(self, name: str, arguments: Mapping[str, Any]) -> str:
        from replan.adapters.mcp.asking import Call  # noqa: PLC0415 - the client takes a second
        from replan.adapters.mcp.results import text_of  # noqa: PLC0415

        connection = await self._connection()
        call = Call()
        try:
            with connection.calling(call):
                client = await connection.client()
                work = client.call_tool(name, dict(arguments))
                result = await self._answer(connection, name, work)
        finally:
            if call.waiting is not None:
                raise call.waiting
        text = text_of(result)
        if result.is_error:
            raise ToolServerError(self._name, f"{name} failed: {text[:_LONGEST_PROBLEM]}")
        return text

    async def aclose(self) -> None:
        """Close the connection of the running loop, if there is one."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held.close()

    async def _connection(self) -> "Connection":
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None or not held.is_alive:
            from replan.adapters.mcp.connection import Connection  # noqa: PLC0415

            held = self._held[loop] = Connection(self._name, self._way, self._seconds)
        await held.client()
        return held

    async def _listed(self, connection: "Connection") -> "list[Tool]":
        client = await connection.client()
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._answer(connection, "tools/list", client.list_tools(cursor=cursor))
            tools += page.tools
            cursor = page.next_cursor
            if not cursor or len(tools) > _MOST_TOOLS:
                break
        return tools

    async def _answer(self, connection: "Connection", name: str, work: Coroutine[Any, Any, T]) -> T:
        """Ask within the time of one call; a connection that broke is not used again."""
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415
        from mcp_types import CONNECTION_CLOSED  # noqa: PLC0415

        try:
            async with asyncio.timeout(self._seconds):
                return await work
        except TimeoutError as error:
            problem = f"{name} gave no answer within {self._seconds:g} s"
            raise ToolCallLostError(self._name, problem) from error
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                raise ToolServerError(self._name, f"{name}: {error.message}") from error
            connection.end()
            problem = f"{name} gave no answer: {error.message}"
            raise ToolCallLostError(self._name, problem) from error
        except Exception as error:
            raise ToolServerError(self._name, f"{name}: {describe(error)}") from error

    def _defined(self, tool: "Tool") -> ToolDefinition:
        return ToolDefinition(
            name=tool.name,
            description=tool.description or tool.title or "",
            parameters=tool.input_schema,
            effects=self._effects(tool),
        )

    def _effects(self, tool: "Tool") -> Effects | None:
        """What a second call would do: of a server that is not trusted, the worst."""
        if not self._is_trusted:
            return "unsafe"
        hints = tool.annotations
        if hints is not None and hints.read_only_hint:
            return "pure"
        return "keyed" if hints is not None and hints.idempotent_hint else None
