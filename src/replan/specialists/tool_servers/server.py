"""The tools of an MCP server; connected when first needed, and again after it died."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pydantic_core import to_json

from replan.base.declared.part import Effects
from replan.base.errors import ToolCallLostError, ToolServerError
from replan.base.failures import describe
from replan.ports.tool_provider import ToolDefinition, is_granted
from replan.prompts.sections import within_budget
from replan.specialists.tool_servers.http import Way

if TYPE_CHECKING:
    from mcp_types import Tool

    from replan.specialists.tool_servers.connection import Connection

_MOST_PAGES = 100
_MOST_TOOLS = 2_000
_ALL = ("*",)
_LONGEST_PROBLEM = 2_000
_CLIENT = "replan.specialists.tool_servers.connection"


class McpServer:
    """A `SelectiveToolProvider`: one connection in each event loop that needs one."""

    def __init__(self, name: str, way: Way, *, seconds: float, is_trusted: bool = False) -> None:
        self._name = name
        self._way = way
        self._seconds = seconds
        self._is_trusted = is_trusted  # whether what it says about effects counts
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, Connection] = WeakKeyDictionary()

    async def list_tools(self) -> list[ToolDefinition]:
        return await self.find_tools(_ALL)

    async def find_tools(self, grants: Sequence[str]) -> list[ToolDefinition]:
        connection = await self._connection()
        try:
            listed = await self._find(connection, grants)
        except ToolServerError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise
            # Since it was asked last, it died, or forgot its session.
            connection.end()
            listed = await self._find(await self._connection(), grants)
        return [self._definition(tool) for tool in listed]

    async def get_tool(self, name: str) -> ToolDefinition:
        for tool in await self.find_tools([name]):
            if tool.name == name:
                return tool
        raise ToolServerError(self._name, f"it has no tool {name}")

    async def execute(self, name: str, arguments: Mapping[str, Any]) -> str:
        self._check(name, arguments)
        connection = await self._connection_with(name)
        from replan.specialists.tool_servers.asking import Call  # noqa: PLC0415 - the client takes a second
        from replan.specialists.tool_servers.results import text_of  # noqa: PLC0415

        client, call = await connection.client(), Call()
        try:
            with connection.calling(call):
                async with self._awaiting_answer(connection, name, ToolCallLostError):
                    result = await client.call_tool(name, dict(arguments))
        except ToolServerError:
            if call.waiting is None:
                raise
            raise call.waiting from None
        if call.waiting is not None:
            raise call.waiting
        text = text_of(result)
        if result.is_error:
            raise ToolServerError(self._name, f"{name} failed: {text[:_LONGEST_PROBLEM]}")
        return text

    async def aclose(self) -> None:
        """Close the connection of the running loop, if there is one."""
        connection = self._held.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.close()

    async def _connection(self) -> "Connection":
        if _CLIENT not in sys.modules:
            # In a thread: the import takes a second and reads folders, and some servers end what
            # blocks their loop.
            await asyncio.to_thread(import_module, _CLIENT)
        loop = asyncio.get_running_loop()
        connection = self._held.get(loop)
        if connection is None or not connection.is_alive:
            from replan.specialists.tool_servers.connection import Connection  # noqa: PLC0415

            connection = self._held[loop] = Connection(self._name, self._way, self._seconds)
        await connection.client()
        return connection

    def _check(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Refuse what no message can hold: the client would end the connection with it."""
        try:
            to_json({"params": {"arguments": dict(arguments)}})
        except ValueError as error:
            problem = f"{name}: its arguments cannot be sent: {describe(error)}"
            raise ToolServerError(self._name, _cut(problem)) from error

    async def _connection_with(self, name: str) -> "Connection":
        """Return a connection over which a tool was listed."""
        # Otherwise the client lists the tools after the call, to check its outcome: where that
        # fails, the call would seem to have failed.
        connection = await self._connection()
        if name not in connection.names:
            await self._find(connection, [name])
        if name not in connection.names:
            raise ToolServerError(self._name, f"it has no tool {name}")
        return connection

    async def _find(self, connection: "Connection", grants: Sequence[str]) -> "list[Tool]":
        """Read the list until its end, or all that is named was found; keep what is granted."""
        client = await connection.client()
        missing, tools = set(grants), list["Tool"]()
        cursor: str | None = None
        async with self._awaiting_answer(connection, "tools/list", ToolServerError):
            for _ in range(_MOST_PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += [tool for tool in page.tools if is_granted(tool.name, grants)]
                missing -= {tool.name for tool in tools}
                cursor = page.next_cursor
                if not cursor or not missing or len(tools) > _MOST_TOOLS:
                    break
        if len(tools) > _MOST_TOOLS:
            problem = f"more than {_MOST_TOOLS:,} of its tools fit {', '.join(grants)}"
            raise ToolServerError(self._name, _cut(f"{problem}. Grant fewer, by their names"))
        if cursor and missing:
            problem = f"it lists more than {_MOST_PAGES} pages of tools"
            fix = f"Not found so far: {', '.join(sorted(missing))}"
            raise ToolServerError(self._name, _cut(f"{problem}. {fix}"))
        gone = {name for name in connection.names if is_granted(name, grants)}
        connection.names = connection.names - gone | {tool.name for tool in tools}
        return tools

    @asynccontextmanager
    async def _awaiting_answer(
        self, connection: "Connection", name: str, lost: type[ToolServerError]
    ) -> AsyncGenerator[None]:
        """Wait for an answer as long as one may take; `lost` handles a missing one.

        Only an error that the server itself gave as its answer says that the call came to an end:
        all else may have done what it was to do.
        """
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415
        from mcp_types import (  # noqa: PLC0415
            CONNECTION_CLOSED,
            INVALID_REQUEST,
            PARSE_ERROR,
            REQUEST_TIMEOUT,
        )

        try:
            async with asyncio.timeout(self._seconds):
                yield
        except TimeoutError as error:
            problem = f"{name} did not answer within {self._seconds:g} s"
            raise lost(self._name, problem) from error
        except MCPError as error:
            if error.code in (CONNECTION_CLOSED, INVALID_REQUEST):
                # It died, or does not know this session; what needs it next makes another one.
                connection.end()
            is_closed = error.code == CONNECTION_CLOSED
            stderr = await connection.close_and_read_stderr() if is_closed else ""
            problem = f"{name} gave no answer: {connection.problem or error.message}{stderr}"
            if error.code in (CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT):
                raise lost(self._name, _cut(problem)) from error
            raise ToolServerError(self._name, _cut(f"{name}: {error.message}")) from error
        except Exception as error:
            problem = f"{name} gave an answer that cannot be used: {describe(error)}"
            raise lost(self._name, _cut(problem)) from error

    def _definition(self, tool: "Tool") -> ToolDefinition:
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


def _cut(problem: str) -> str:
    return within_budget(problem, _LONGEST_PROBLEM)
