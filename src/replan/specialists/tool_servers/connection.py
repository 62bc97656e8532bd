"""One connection to an MCP server, which lives in its own task.

The client is made of anyio's task groups, and only the task that opened one can close it; whoever
calls tools is another one.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncGenerator, Generator, Mapping
from contextvars import Context, ContextVar
from dataclasses import dataclass
from typing import Any, Self, cast

import httpx2
from mcp.client.client import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import ElicitRequestParams, ElicitResult, ErrorData, JSONRPCResponse

from replan.base.errors import ToolServerError
from replan.base.failures import describe
from replan.specialists.tool_servers.asking import Call
from replan.specialists.tool_servers.http import Address, Program, ToolClient, Way
from replan.specialists.tool_servers.results import (
    LINES,
    LONGEST_MESSAGE,
    TOO_LONG,
    bound_result_forms,
    on_long_line,
)

_SILENCE = httpx2.Timeout(30, read=None)
"""Of one request; how long a call may take is bounded where it is made."""

_MOST_UNREAD = 20

_KEPT_BYTES, _READ_AT_ONCE = 500, 65_536
_PARTING = 1.0
"""Seconds to wait for the end of stderr; a program that outlives the server may hold it open."""

_call_at_work: ContextVar[Call | None] = ContextVar("replan_mcp_call", default=None)


class StderrTail:
    """What a server's program says for people: all of it is read, and the end of it kept."""

    def __init__(self) -> None:
        source, sink = os.pipe()
        self.sink = os.fdopen(sink, "w")
        self._kept = b""
        self._reader = threading.Thread(
            target=self._read, args=(source,), name="replan-stderr", daemon=True
        )
        self._reader.start()

    def end(self) -> str:
        """Return the end of what the program said, which has ended."""
        self.sink.close()
        self._reader.join(_PARTING)
        text = self._kept.decode(errors="replace").strip()
        return f"; it said: {text}" if text else ""

    def _read(self, source: int) -> None:
        with os.fdopen(source, "rb", buffering=0) as output:
            while some := output.read(_READ_AT_ONCE):
                self._kept = (self._kept + some)[-_KEPT_BYTES:]


class Connection:
    """A connection that is being made, is there, or has ended."""

    def __init__(self, server: str, way: Way, seconds: float) -> None:
        self.names: frozenset[str] = (
            frozenset()
        )  # of the tools that were listed, and not gone since
        self.problem = ""  # why it ended, where the client does not know
        self._stderr_end = ""  # what its program said last, once it has ended
        self._server = server
        self._seconds = seconds
        self._calls: list[Call] = []
        self._ended = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        # There may be no waiter left.
        self._ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
        # With its own context: it outlives the step that needed it first.
        self._task = asyncio.create_task(self._keep_open(way), context=Context())

    @property
    def is_alive(self) -> bool:
        """Whether it is there, or may come to be."""
        return not self._ended.is_set()

    async def client(self) -> Client:
        """Return the client, once it is connected.

        Raises:
            ToolServerError: It could not be.
        """
        return await asyncio.shield(self._ready)

    def end(self) -> None:
        """Let it end; what needs it next makes another one."""
        self._ended.set()

    async def close(self) -> None:
        """End it, and wait until nothing of it is left."""
        self.end()
        await asyncio.wait({self._task})

    async def close_and_read_stderr(self) -> str:
        """End it, and return the last output of its program, for error messages."""
        await self.close()
        return self._stderr_end

    @contextlib.contextmanager
    def calling(self, call: Call) -> Generator[None]:
        """Know a call while it is under way: what the server asks then is asked for it."""
        self._calls.append(call)
        before = _call_at_work.set(call)
        try:
            yield
        finally:
            _call_at_work.reset(before)
            self._calls.remove(call)

    def _end_at_long_line(self) -> None:
        self.problem = TOO_LONG
        self.end()

    async def _keep_open(self, way: Way) -> None:
        on_long_line.set(self._end_at_long_line)
        stderr: StderrTail | None = None
        try:
            # In a thread, as all work with files: some servers end what blocks their loop.
            stderr = await asyncio.to_thread(StderrTail)
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(self._seconds):
                    transport = self._watched(_transport(way, stderr))
                    client = Client(transport, elicitation_callback=self._ask_server, cache=None)
                    connected = await stack.enter_async_context(client)
                self._ready.set_result(connected)
                await self._ended.wait()
            self._stderr_end = await asyncio.to_thread(stderr.end)
        # The caller learns about a lost connection.
        except Exception as error:  # noqa: BLE001 - foreign code
            problem = _problem_of(way, self.problem or error, self._seconds)
            self._stderr_end = await asyncio.to_thread(stderr.end) if stderr else ""
            self._fail(f"{problem}{self._stderr_end}")
        finally:
            self._ended.set()
            self._fail(self.problem or "its connection was closed")
            if stderr is not None:
                stderr.sink.close()

    def _fail(self, problem: str) -> None:
        if not self._ready.done():
            self._ready.set_exception(ToolServerError(self._server, problem))

    @contextlib.asynccontextmanager
    async def _watched(self, transport: Any) -> AsyncGenerator[Any]:
        async with transport as (read, write):
            yield _Messages(read, self._ended), write

    async def _ask_server(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        """Ask a person what the server wants to know."""
        # Servers of older protocols do not say which call they ask for.
        call = _call_at_work.get() or (self._calls[0] if len(self._calls) == 1 else None)
        return ElicitResult(action="decline") if call is None else call.answer(self._server, params)


@dataclass
class _Messages:
    """The messages of a server; knows when there are no more."""

    stream: Any
    ended: asyncio.Event
    unread: int = 0  # lines that were not messages

    async def __aenter__(self) -> Self:
        await self.stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stream.__aexit__(*error)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            message = await anext(self.stream)
        except BaseException:
            self.ended.set()
            raise
        # Some servers greet before they begin; one that only talks would talk forever.
        self.unread += isinstance(message, Exception)
        if self.unread > _MOST_UNREAD:
            self.ended.set()
            raise StopAsyncIteration
        if isinstance(message, SessionMessage) and isinstance(message.message, JSONRPCResponse):
            bound_result_forms(message.message.result)
        return message

    async def receive(self) -> Any:
        return await self.stream.receive()

    async def aclose(self) -> None:
        await self.stream.aclose()


def _transport(way: Way, stderr: StderrTail) -> Any:
    match way:
        case Program(command, args, env, folder):
            # The client adds the few variables that no program can do without, such as PATH.
            started = StdioServerParameters(
                command=command,
                args=list(args),
                env=dict(env),
                cwd=folder,
                encoding=LINES,
                # What is not text is not a message either; the client would silently read on.
                encoding_error_handler="replace",
            )
            return stdio_client(started, stderr.sink)
        case Address(url, headers):
            return _over_http(url, headers)


@contextlib.asynccontextmanager
async def _over_http(url: str, headers: Mapping[str, str]) -> AsyncGenerator[Any]:
    async with (
        ToolClient(headers=dict(headers), timeout=_SILENCE) as client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=LONGEST_MESSAGE
        ) as streams,
    ):
        yield streams


def _problem_of(way: Way, error: BaseException | str, seconds: float) -> str:
    if isinstance(error, str):
        return f"{way} cannot be used ({error})"
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, TimeoutError):
        return f"{way} did not answer within {seconds:g} s as an MCP server does"
    return f"{way} cannot be used ({describe(error)})"
