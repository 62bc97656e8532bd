"""All addresses of the server behind its gate, as one ASGI application."""

from collections.abc import Collection
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from replan.server import lists, runs, teams
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
from replan.server.endpoints import Endpoint, told
from replan.server.gate import LOOPBACK, Gate
from replan.server.house import House
from replan.server.openapi import document
from replan.server.problems import RefusedError

_RUN = "/runs/{run_id}"
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
        says="Tell the events of a run",
        asks=EventsQuery,
        gives={200: EventPage, 204: None},
        streams=True,
    ),
    Endpoint(
        method="GET",
        path=_RUN + "/texts/{ref}",
        does=runs.text,
        says="Give a long text of an event",
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
        says="Whether the storage answers",
        role=None,
        gives={200: Health},
    ),
)
"""What the server answers."""


def application(house: House, hosts: Collection[str] = LOOPBACK) -> ASGIApp:
    """Make the application of a house.

    Args:
        house: The teams and their runs.
        hosts: The names by which the server may be called.
    """
    described = document(ENDPOINTS)

    async def openapi(_: Request) -> Response:
        return JSONResponse(described)

    routes = [each.route(house) for each in ENDPOINTS]
    handlers: Any = {HTTPException: _not_found}
    return Gate(
        app=Starlette(
            routes=[*routes, Route("/openapi.json", openapi)], exception_handlers=handlers
        ),
        hosts=hosts,
        tokens=house.tokens,
        is_open=[each.path for each in ENDPOINTS if each.role is None],
        tell=lambda _, refusal: told(refusal),
    )


async def _not_found(request: Request, error: HTTPException) -> Response:
    """What is no address of the server, or takes another method."""
    if error.status_code == 405:  # noqa: PLR2004 - its method is wrong
        methods = (error.headers or {}).get("Allow", "")
        detail = f"{request.url.path} takes {methods}, and not {request.method}."
        return told(RefusedError(405, "wrong_method", detail))
    detail = f"There is nothing at {request.url.path[:200]}. GET /openapi.json lists what there is."
    return told(RefusedError(error.status_code, "unknown_address", detail))
