"""The doors that need packages of an extra: AG-UI, A2A and MCP."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from replan.server.problems import RefusedError
from replan.server.request_body import read_call, replay
from replan.server.served_teams import ServedTeams

EXTRAS = {"/mcp": "mcp", "/ag-ui": "ag-ui", "/a2a": "a2a"}
"""The extra that each door needs, by the beginning of its addresses."""

_MISTAKES = 422
_PARSE_ERROR = -32_700  # JSON-RPC's code


def ag_ui() -> APIRouter | None:
    """The route of AG-UI, if its package is installed."""
    return _router("ag_ui_routes", "ag_ui")


def a2a() -> APIRouter | None:
    """The routes of A2A, if its packages are installed."""
    return _router("a2a_routes", "a2a", "google", "jsonrpc")


def _router(door: str, *packages: str) -> APIRouter | None:
    try:
        return import_module(f"replan.server.doors.{door}").router
    except ImportError as error:
        _check_missing(error, *packages)
        return None


def _check_missing(error: ImportError, *packages: str) -> None:
    """Let an error of an import pass, unless it is about one of these packages."""
    if (error.name or "").partition(".")[0] not in packages:
        raise error


@asynccontextmanager
async def open_mcp(served: ServedTeams) -> AsyncGenerator[list[Route]]:
    """The door of MCP, if its package is installed."""
    try:
        from replan.server.doors.mcp_door import bind_sessions_to_tokens, manager_of  # noqa: PLC0415 - an extra
    except ImportError as error:
        _check_missing(error, "mcp", "mcp_types")
        yield []
        return
    manager, ready, ended = manager_of(served), asyncio.Event(), asyncio.Event()

    async def run_manager() -> None:
        # In its own task: its group of tasks would wrap what is raised in the block.
        async with manager.run():
            ready.set()
            await ended.wait()

    serving = asyncio.ensure_future(run_manager())
    await ready.wait()
    try:
        yield [
            Route("/mcp", _Bounded(bind_sessions_to_tokens(manager.asgi_app), served.body_seconds))
        ]
    finally:
        ended.set()
        await serving


class _Bounded:
    """An application for which a body has to arrive in time, within the bounds of all requests."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on."""
        try:
            content = await read_call(Request(scope, receive), self._seconds)
        except RefusedError as refusal:
            error = {"code": _PARSE_ERROR, "message": refusal.explained}
            answer = {"jsonrpc": "2.0", "id": None, "error": error}
            # No client by JSON-RPC knows 422.
            status = 400 if refusal.problem.status == _MISTAKES else refusal.problem.status
            await JSONResponse(answer, status)(scope, receive, send)
        else:
            await self._app(scope, replay(content, receive), send)
