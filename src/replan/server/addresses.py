"""What the server answers: each address, and what it does."""

from functools import partial

from replan.server.bodies import (
    AnswerBody,
    CorrectionBody,
    EventsQuery,
    GoOnBody,
    RunsQuery,
    StartBody,
    StopBody,
)
from replan.server.doors import openai_chat, runs, sessions, teams
from replan.server.doors.chat_wire import (
    ChatBody,
    ChatCompletion,
    ModelList,
    ModelTold,
    openai_error_response,
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
from replan.server.endpoints import Endpoint
from replan.server.response_schemas import (
    EventPage,
    Health,
    RunPage,
    RunTold,
    TeamList,
    TeamTold,
    TextTold,
)
from replan.state.session.context import AgentResult

_RUN, _SESSION = "/runs/{run_id}", "/sessions/{session_id}"
_get = partial(Endpoint, "GET")
# What changes something needs the role `run`, unless its row names another one.
_post, _delete = (partial(Endpoint, method, role="run") for method in ("POST", "DELETE"))

ENDPOINTS = (
    _post("/runs", runs.start, "Start a run", body=StartBody, returns={201: RunTold, 200: RunTold}),
    _get("/runs", runs.runs, "List runs", query=RunsQuery, returns={200: RunPage}),
    _get(_RUN, runs.look, "Look at a run", returns={200: RunTold}),
    _get(
        f"{_RUN}/events",
        runs.events,
        "List the events of a run",
        query=EventsQuery,
        returns={200: EventPage, 204: None},
        streams=True,
    ),
    _get(
        _RUN + "/texts/{ref}", runs.text, "Return a long text of an event", returns={200: TextTold}
    ),
    _post(
        f"{_RUN}/answers",
        runs.answer,
        "Answer questions and decide",
        role="answer",
        body=AnswerBody,
        returns={202: RunTold},
    ),
    _post(f"{_RUN}/stop", runs.stop, "Stop a run", body=StopBody, returns={202: RunTold}),
    _post(f"{_RUN}/resume", runs.resume, "Resume a run", body=GoOnBody, returns={202: RunTold}),
    _post(
        f"{_RUN}/retry",
        partial(runs.correct, action="retry"),
        "Do a step again",
        role="operate",
        body=CorrectionBody,
        returns={202: RunTold},
    ),
    _post(
        f"{_RUN}/skip",
        partial(runs.correct, action="skip"),
        "Skip a step",
        role="operate",
        body=CorrectionBody,
        returns={202: RunTold},
    ),
    _post(
        f"{_SESSION}/turns",
        sessions.turn,
        "Take a turn of a session",
        body=TurnBody,
        returns={200: AgentResult},
        streams=True,
    ),
    _get(
        "/sessions",
        sessions.sessions,
        "List sessions",
        query=SessionsQuery,
        returns={200: SessionList},
    ),
    _post(
        "/sessions",
        sessions.import_session,
        "Import a session",
        body=ImportBody,
        returns={201: SessionKept},
    ),
    _get(_SESSION, sessions.export_session, "Export a session", returns={200: SessionTold}),
    _delete(_SESSION, sessions.delete, "Delete a session", returns={204: None}),
    _get(
        f"{_SESSION}/history",
        sessions.history,
        "List the messages of a session",
        query=HistoryQuery,
        returns={200: MessagePage},
    ),
    _post(
        f"{_SESSION}/undo",
        sessions.undo,
        "Take back a turn of a session",
        returns={200: TakenBackTold},
    ),
    _get("/teams", teams.teams, "List the teams", returns={200: TeamList}),
    _get("/teams/{team}", teams.team, "Describe a team", returns={200: TeamTold}),
    _get(
        "/v1/models",
        openai_chat.models,
        "List the teams as models",
        returns={200: ModelList},
        error_response=openai_error_response,
    ),
    _get(
        "/v1/models/{model}",
        openai_chat.model,
        "Describe a team as a model",
        returns={200: ModelTold},
        error_response=openai_error_response,
    ),
    _post(
        "/v1/chat/completions",
        openai_chat.complete,
        "Answer a conversation",
        body=ChatBody,
        returns={200: ChatCompletion},
        streams=True,
        error_response=openai_error_response,
    ),
    _get("/health", teams.health, "Whether the process answers", role=None, returns={200: Health}),
    _get(
        "/ready",
        teams.ready,
        "Whether the storage answers, and the queue if there is one",
        role=None,
        returns={200: Health},
    ),
    _get(
        "/metrics",
        teams.metrics,
        "Return the metrics of the process",
        role="watch",
        returns={200: None},
        media_type="text/plain",
    ),
)
"""What the server answers."""
