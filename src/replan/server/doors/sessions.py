"""Routes of sessions: turns, whole or as they continue, and what is kept of them."""

import re
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing, nullcontext
from dataclasses import replace
from typing import Annotated, TypeVar

from fastapi import Query
from starlette.responses import Response

from replan.base.errors import ContextError, InputError, Mistake, ReplanError
from replan.ports.session_store import HistoryPage, SessionKey
from replan.server.bodies import MOST_ANSWERS, NAME
from replan.server.callers.identity import Identity, check_role
from replan.server.doors.session_wire import (
    HistoryQuery,
    ImportBody,
    ImportedSession,
    Session,
    SessionList,
    SessionsQuery,
    TurnBody,
)
from replan.server.problems import (
    RefusedError,
    as_refusal,
    bad_field,
    bad_request,
)
from replan.server.session_turns import TurnPart, client_of, turn_parts
from replan.server.stream import Stream
from replan.server.web import Call, Called, api_router, needs, streams
from replan.sessions.carried_run import RUN
from replan.sessions.client.kept_turn import UndoneTurn
from replan.sessions.client.user_sessions import UserSessions
from replan.sessions.stateless_agent import read_context
from replan.state.session.context import AgentResult

T = TypeVar("T")


router = api_router()
_SESSION = "/sessions/{session_id}"


@router.post(
    f"{_SESSION}/turns",
    summary="Take a turn of a session",
    response_model=AgentResult,
    responses=streams(),
    **needs("run"),
)
async def turn(call: Called, session_id: str, body: TurnBody) -> AgentResult | Response:
    """Take a turn of a session: its result, or its events with the result at the end."""
    check_session_id(session_id, "session_id")
    check_input(call.who, body)
    team = call.served.team_named(body.team)
    client = client_of(call.served, call.who, team, body.settings)
    parts = turn_parts(
        call.served,
        client,
        session_id,
        body.said,
        has_events=call.wants_events,
        turn_id=body.turn_id,
        new_request=body.new_request,
    )
    seat = call.served.stream_seat(call.who) if call.wants_events else None
    # What cannot be begun is a problem, and no stream.
    first = await anext(parts)
    _raise_if_not_begun(first, body)
    if isinstance(first, AgentResult) and seat is None:
        await parts.aclose()
        return first
    return Stream(_part_lines(first, parts), call.served.beat, seat or nullcontext())


@router.get("/sessions", summary="List sessions")
async def sessions(call: Called, query: Annotated[SessionsQuery, Query()]) -> SessionList:
    """List the sessions of who calls."""
    return SessionList(sessions=tuple(await _sessions(call).sessions(query.limit)))


@router.get(f"{_SESSION}/history", summary="List the messages of a session")
async def history(
    call: Called, session_id: str, query: Annotated[HistoryQuery, Query()]
) -> HistoryPage:
    """List the messages of a session, a page at a time."""
    reading = _sessions(call).history(session_id, before=query.before, limit=query.limit)
    return await _or_unknown_session(call, session_id, reading)


@router.get(_SESSION, summary="Export a session")
async def export_session(call: Called, session_id: str) -> Session:
    """Return a session as a value."""
    context = await _or_unknown_session(call, session_id, _sessions(call).export(session_id))
    return Session(context=context.to_dict())


@router.post("/sessions", summary="Import a session", status_code=201, **needs("run"))
async def import_session(call: Called, body: ImportBody) -> ImportedSession:
    """Adopt an exported session; it must contain no run."""
    try:
        context = await read_context(body.context)
    except ContextError as error:
        raise bad_request([_mistake_in_context(mistake) for mistake in error.mistakes]) from None
    check_session_id(context.session_id, "context.session_id")
    if RUN in context.project_state:
        # It could say that something was approved, or that there are no limits.
        problem = "a run that is open cannot be taken over from outside"
        fix = "Let it end before the export, or leave it out."
        raise bad_field(f"context.project_state.{RUN}", "...", problem, fix)
    version = await _sessions(call).adopt(context)
    return ImportedSession(session_id=context.session_id, version=version)


@router.post(f"{_SESSION}/undo", summary="Take back a turn of a session", **needs("run"))
async def undo(call: Called, session_id: str) -> UndoneTurn:
    """Take back the newest turn of a session."""
    return await _or_unknown_session(call, session_id, _sessions(call).undo(session_id))


@router.delete(_SESSION, summary="Delete a session", status_code=204, **needs("run"))
async def delete(call: Called, session_id: str) -> Response:
    """Delete a session with all that belongs to it."""
    await _or_unknown_session(call, session_id, _sessions(call).delete(session_id))
    return Response(status_code=204)


def _mistake_in_context(mistake: Mistake) -> Mistake:
    """A mistake of a session, by the path of its field in the request."""
    inner = mistake.field.removeprefix("context")
    sign = "." if inner and not inner.startswith(("[", ".")) else ""
    return replace(mistake, field=f"context{sign}{inner}")


def _sessions(call: Call) -> UserSessions:
    who, served = call.who, call.served
    return UserSessions(
        served.storage, tenant=who.tenant, user=who.person, clock=served.clock, new_id=served.new_id
    )


async def _or_unknown_session(call: Call, session_id: str, doing: Awaitable[T]) -> T:
    """Await what is done with a session; refuse it if there is no such session."""
    try:
        return await doing
    except InputError:
        key = SessionKey(call.who.tenant, call.who.person, session_id)
        if await call.served.storage.sessions.load(key) is not None:
            raise
        detail = f"There is no session '{session_id[:100]}' here. GET /sessions lists yours."
        raise RefusedError(404, "unknown_session", detail) from None


def check_session_id(session_id: str, field: str) -> str:
    """The name of a session.

    Raises:
        RefusedError: No session can have it.
    """
    if not re.fullmatch(NAME, session_id):
        fix = "Begin with a letter or a digit; use letters, digits and . _ : ~ -, 100 at most."
        raise bad_field(field, session_id, "no session can have this name", fix)
    return session_id


def check_input(who: Identity, body: TurnBody) -> None:
    """Refuse a turn that is empty, or decides something that its caller may not.

    Raises:
        RefusedError: It does.
    """
    user_input = body.input
    if isinstance(user_input, str) and not (user_input.strip() or body.files):
        raise bad_field("input", user_input, "it is empty", "Give a text, or answers by key.")
    if body.files and not isinstance(user_input, str):
        raise bad_field("files", len(body.files), "files go with a text", "Give input as a text.")
    if isinstance(user_input, dict):
        check_role(who, "answer")
        if len(user_input) > MOST_ANSWERS:
            problem, fix = "there are too many answers", f"Give {MOST_ANSWERS:,} at most."
            raise bad_field("input", f"{len(user_input):,} answers", problem, fix)


def _raise_if_not_begun(part: TurnPart, body: TurnBody) -> None:
    """Refuse a turn that began no work, since its input has no meaning now."""
    if isinstance(part, ReplanError):
        raise part
    kind = f"{InputError.__name__}: "
    if isinstance(part, AgentResult) and not part.metadata and (part.error or "").startswith(kind):
        problem, _, fix = (part.error or "").removeprefix(kind).partition(". ")
        raise bad_field("input", body.input, problem, fix)


async def _part_lines(first: TurnPart, parts: AsyncGenerator[TurnPart]) -> AsyncGenerator[str]:
    """The events of a stream of a turn."""
    async with aclosing(parts):
        yield _part_line(first)
        async for part in parts:
            yield _part_line(part)


def _part_line(part: TurnPart) -> str:
    if isinstance(part, AgentResult):
        return f"event: result\ndata: {part.model_dump_json()}\n\n"
    if isinstance(part, ReplanError):
        return f"event: problem\ndata: {as_refusal(part).problem.model_dump_json()}\n\n"
    return f"data: {part.written}\n\n"
