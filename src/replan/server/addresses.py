"""What the server answers: each address, and what it does."""

from functools import partial

from replan.server.bodies import (
    AnswerBody,
    CorrectionBody,
    EventsQuery,
    ResumeBody,
    RunsQuery,
    StartBody,
    StopBody,
)
from replan.server.doors import openai_chat, runs, sessions, teams
from replan.server.doors.chat_wire import (
    ChatBody,
    openai_error_response,
)
from replan.server.doors.session_wire import (
    HistoryQuery,
    ImportBody,
    SessionsQuery,
    TurnBody,
)
from replan.server.endpoints import Endpoint

_RUN, _SESSION = "/runs/{run_id}", "/sessions/{session_id}"
_get = partial(Endpoint, "GET")
# What changes something needs the role `run`, unless its row names another one.
_post, _delete = (partial(Endpoint, method, role="run") for method in ("POST", "DELETE"))

ENDPOINTS = (
    _post("/runs", runs.start, "Start a run", body=StartBody, status=201, further=(200,)),
    _get("/runs", runs.runs, "List runs", query=RunsQuery),
    _get(_RUN, runs.look, "Get a run"),
    _get(
        f"{_RUN}/events",
        runs.events,
        "List the events of a run",
        query=EventsQuery,
        further=(204,),
        streams=True,
    ),
    _get(_RUN + "/texts/{ref}", runs.text, "Return a long text of an event"),
    _post(
        f"{_RUN}/answers",
        runs.answer,
        "Answer questions and decide",
        role="answer",
        body=AnswerBody,
        status=202,
    ),
    _post(f"{_RUN}/stop", runs.stop, "Stop a run", body=StopBody, status=202),
    _post(f"{_RUN}/resume", runs.resume, "Resume a run", body=ResumeBody, status=202),
    _post(
        f"{_RUN}/retry",
        partial(runs.correct, action="retry"),
        "Do a step again",
        role="operate",
        body=CorrectionBody,
        status=202,
    ),
    _post(
        f"{_RUN}/skip",
        partial(runs.correct, action="skip"),
        "Skip a step",
        role="operate",
        body=CorrectionBody,
        status=202,
    ),
    _post(
        f"{_SESSION}/turns", sessions.turn, "Take a turn of a session", body=TurnBody, streams=True
    ),
    _get("/sessions", sessions.sessions, "List sessions", query=SessionsQuery),
    _post("/sessions", sessions.import_session, "Import a session", body=ImportBody, status=201),
    _get(_SESSION, sessions.export_session, "Export a session"),
    _delete(_SESSION, sessions.delete, "Delete a session", status=204),
    _get(
        f"{_SESSION}/history",
        sessions.history,
        "List the messages of a session",
        query=HistoryQuery,
    ),
    _post(f"{_SESSION}/undo", sessions.undo, "Take back a turn of a session"),
    _get("/teams", teams.teams, "List the teams"),
    _get("/teams/{team}", teams.team, "Describe a team"),
    _get(
        "/v1/models",
        openai_chat.models,
        "List the teams as models",
        error_response=openai_error_response,
    ),
    _get(
        "/v1/models/{model}",
        openai_chat.model,
        "Describe a team as a model",
        error_response=openai_error_response,
    ),
    _post(
        "/v1/chat/completions",
        openai_chat.complete,
        "Answer a conversation",
        body=ChatBody,
        streams=True,
        error_response=openai_error_response,
    ),
    _get("/health", teams.health, "Whether the process answers", role=None),
    _get(
        "/ready",
        teams.ready,
        "Whether the storage answers, and the queue if there is one",
        role=None,
    ),
    _get(
        "/metrics",
        teams.metrics,
        "Return the metrics of the process",
        role="watch",
        media_type="text/plain",
    ),
)
"""What the server answers."""
