"""All addresses of the server behind its gate, as one ASGI application."""

import asyncio
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from replan.server.answers import EventPage, Health, RunPage, RunTold, TeamList, TeamTold, TextTold
from replan.server.bodies import (
    AnswerBody,
    CorrectionBody,
    EventsQuery,
    GoOnBody,
    RunsQuery,
    StartBody,
    StopBody,
)
from replan.server.doors import chat, figures, lists, runs, sessions, teams
from replan.server.doors.chat_wire import (
    ChatBody,
    ChatCompletion,
    ModelList,
    ModelTold,
    told_as_openai,
)
from replan.server.doors.session_wire import (
    HistoryQuery,
    ImportBody,
    MessagePage,
    SessionKept,
    SessionList,
    SessionsQuery,
    SessionTold,
    TakenBackTold,
    TurnBody,
)
from replan.server.endpoints import Endpoint, told
from replan.server.gate import LOOPBACK, Gate
from replan.server.house import House
from replan.server.openapi import document
from replan.server.problems import RefusedError
from replan.server.reading import too_slow
from replan.state.session.context import AgentResult

_DOORS = {"/mcp/": "mcp", "/ag-ui/": "ag-ui", "/a2a/": "a2a"}
"""The extra that each door needs."""

_RUN, _SESSION = "/runs/{run_id}", "/sessions/{session_id}"
ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/runs",
        does=runs.start,
        says="Start a run",
        role="run",
        takes=StartBody,
        gives={201: RunTold, 200: RunTold},
    ),
    Endpoint(
        method="GET",
        path="/runs",
        does=lists.runs,
        says="List runs",
        asks=RunsQuery,
        gives={200: RunPage},
    ),
    Endpoint(method="GET", path=_RUN, does=runs.look, says="Look at a run", gives={200: RunTold}),
    Endpoint(
        method="GET",
        path=f"{_RUN}/events",
        does=lists.events,
        says="List the events of a run",
        asks=EventsQuery,
        gives={200: EventPage, 204: None},
        streams=True,
    ),
    Endpoint(
        method="GET",
        path=_RUN + "/texts/{ref}",
        does=runs.text,
        says="Return a long text of an event",
        gives={200: TextTold},
    ),
    Endpoint(
        method="POST",
        path=f"{_RUN}/answers",
        does=runs.answer,
        says="Answer questions and decide",
        role="answer",
        takes=AnswerBody,
        gives={202: RunTold},
    ),
    Endpoint(
        method="POST",
        path=f"{_RUN}/stop",
        does=runs.stop,
        says="Stop a run",
        role="run",
        takes=StopBody,
        gives={202: RunTold},
    ),
    Endpoint(
        method="POST",
        path=f"{_RUN}/resume",
        does=runs.resume,
        says="Resume a run",
        role="run",
        takes=GoOnBody,
        gives={202: RunTold},
    ),
    Endpoint(
        method="POST",
        path=f"{_RUN}/retry",
        does=runs.retry,
        says="Do a step again",
        role="operate",
        takes=CorrectionBody,
        gives={202: RunTold},
    ),
    Endpoint(
        method="POST",
        path=f"{_RUN}/skip",
        does=runs.skip,
        says="Skip a step",
        role="operate",
        takes=CorrectionBody,
        gives={202: RunTold},
    ),
    Endpoint(
        method="POST",
        path=f"{_SESSION}/turns",
        does=sessions.turn,
        says="Take a turn of a session",
        role="run",
        takes=TurnBody,
        gives={200: AgentResult},
        streams=True,
    ),
    Endpoint(
        method="GET",
        path="/sessions",
        does=sessions.sessions,
        says="List sessions",
        asks=SessionsQuery,
        gives={200: SessionList},
    ),
    Endpoint(
        method="POST",
        path="/sessions",
        does=sessions.imported,
        says="Import a session",
        role="run",
        takes=ImportBody,
        gives={201: SessionKept},
    ),
    Endpoint(
        method="GET",
        path=_SESSION,
        does=sessions.exported,
        says="Export a session",
        gives={200: SessionTold},
    ),
    Endpoint(
        method="DELETE",
        path=_SESSION,
        does=sessions.delete,
        says="Delete a session",
        role="run",
        gives={204: None},
    ),
    Endpoint(
        method="GET",
        path=f"{_SESSION}/history",
        does=sessions.history,
        says="List the messages of a session",
        asks=HistoryQuery,
        gives={200: MessagePage},
    ),
    Endpoint(
        method="POST",
        path=f"{_SESSION}/undo",
        does=sessions.undo,
        says="Take back a turn of a session",
        role="run",
        gives={200: TakenBackTold},
    ),
    Endpoint(
        method="GET",
        path="/teams",
        does=teams.teams,
        says="List the teams",
        gives={200: TeamList},
    ),
    Endpoint(
        method="GET",
        path="/teams/{team}",
        does=teams.team,
        says="Describe a team",
        gives={200: TeamTold},
    ),
    Endpoint(
        method="GET",
        path="/v1/models",
        does=chat.models,
        says="List the teams as models",
        gives={200: ModelList},
        tells=told_as_openai,
    ),
    Endpoint(
        method="GET",
        path="/v1/models/{model}",
        does=chat.model,
        says="Describe a team as a model",
        gives={200: ModelTold},
        tells=told_as_openai,
    ),
    Endpoint(
        method="POST",
        path="/v1/chat/completions",
        does=chat.complete,
        says="Answer a conversation",
        role="run",
        takes=ChatBody,
        gives={200: ChatCompletion},
        streams=True,
        tells=told_as_openai,
    ),
    Endpoint(
        method="GET",
        path="/health",
        does=teams.health,
        says="Whether the process answers",
        role=None,
        gives={200: Health},
    ),
    Endpoint(
        method="GET",
        path="/ready",
        does=teams.ready,
        says="Whether the storage answers, and the queue if there is one",
        role=None,
        gives={200: Health},
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        does=figures.metrics,
        says="Return the metrics of the process",
        role="watch",
        gives={200: None},
        text="text/plain",
    ),
)
"""What the server answers."""


@asynccontextmanager
async def open_application(
    house: House, hosts: Collection[str] = LOOPBACK
) -> AsyncGenerator[ASGIApp]:
    """Open the application of a house.

    Args:
        house: The teams and their runs.
        hosts: The names by which the server may be called.
    """
    ag_ui, a2a = _ag_ui(), _a2a(house)
    endpoints = [*ENDPOINTS, *ag_ui]
    described = document(endpoints)

    async def openapi(_: Request) -> Response:
        return JSONResponse(described)

    routes = [*(each.route(house) for each in endpoints), *a2a]
    handlers: Any = {HTTPException: _not_found}
    async with _mcp(house) as more:
        app = Starlette(
            routes=[*routes, Route("/openapi.json", openapi), *more], exception_handlers=handlers
        )
        # An address has one form; a redirect would lose the body of a request on its way.
        app.router.redirect_slashes = False
        doors = {"mcp": more, "ag-ui": ag_ui, "a2a": a2a}
        app.state.doors = [name for name, found in doors.items() if found]
        yield Gate(
            app=app,
            hosts=hosts,
            tokens=house.tokens,
            is_open=[each.path for each in ENDPOINTS if each.role is None],
            tell=_told_at,
        )


def _ag_ui() -> list[Endpoint]:
    """The door of AG-UI, if its package is installed."""
    try:
        from replan.server.doors.ag_ui_door import ENDPOINT  # noqa: PLC0415 - an extra
    except ImportError as error:
        _check_missing(error, "ag_ui")
        return []
    return [ENDPOINT]


def _a2a(house: House) -> list[Route]:
    """The door of A2A, if its packages are installed."""
    try:
        from replan.server.doors.a2a_door import routes  # noqa: PLC0415 - an extra
    except ImportError as error:
        _check_missing(error, "a2a", "google", "jsonrpc")
        return []
    return routes(house)


def _check_missing(error: ImportError, *names: str) -> None:
    """Let an error of an import pass, unless it is about one of these packages."""
    if (error.name or "").partition(".")[0] not in names:
        raise error


@asynccontextmanager
async def _mcp(house: House) -> AsyncGenerator[list[Route]]:
    """The door of MCP, if its package is installed."""
    try:
        from replan.server.doors.mcp_door import manager_of, owned  # noqa: PLC0415 - an extra
    except ImportError as error:
        _check_missing(error, "mcp", "mcp_types")
        yield []
        return
    manager, ready, ended = manager_of(house), asyncio.Event(), asyncio.Event()

    async def served() -> None:
        # In its own task: its group of tasks would wrap what is raised in the block.
        async with manager.run():
            ready.set()
            await ended.wait()

    serving = asyncio.ensure_future(served())
    await ready.wait()
    try:
        yield [Route("/mcp", _Timely(owned(manager.asgi_app), house.body_seconds))]
    finally:
        ended.set()
        await serving


class _Timely:
    """An application for which the body of a request has to arrive in time."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on."""
        loop, is_whole = asyncio.get_running_loop(), False
        until = loop.time() + self._seconds

        async def received() -> Message:
            nonlocal is_whole
            if is_whole:
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise too_slow(self._seconds) from None
            is_whole = not message.get("more_body")
            return message

        await self._app(scope, received, send)


def _told_at(path: str, refusal: RefusedError) -> Response:
    """Why not, in the form of an address."""
    return told_as_openai(refusal) if path.startswith("/v1/") else told(refusal)


def _methods_at(request: Request) -> list[str]:
    """The methods that an address takes, each by its own endpoint."""
    path, found = request.url.path, set[str]()
    for each in request.app.routes:
        if isinstance(each, Route) and each.path_regex.match(path):
            found |= each.methods or set()
    return sorted(found - {"HEAD"})


async def _not_found(request: Request, error: HTTPException) -> Response:
    """What is not an address of the server, or takes another method."""
    if error.status_code == 405:  # noqa: PLR2004 - its method is wrong
        methods = _methods_at(request)
        detail = f"{request.url.path} takes {', '.join(methods)}, not {request.method}."
        return _told_at(request.url.path, RefusedError(405, "wrong_method", detail))
    path = request.url.path[:200]
    detail = f"There is nothing at {path}. GET /openapi.json lists what there is."
    extra = next((each for start, each in _DOORS.items() if f"{path}/".startswith(start)), None)
    if extra is not None and extra not in request.app.state.doors:
        what = f"{path} needs packages that the server does not have."
        detail = f"{what} Install them: pip install 'replan[{extra}]'."
    refusal = RefusedError(error.status_code, "unknown_address", detail)
    return _told_at(request.url.path, refusal)
