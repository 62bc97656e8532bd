"""A chat over the sessions that the terminal and the server keep, too."""

import asyncio
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from replan.base.errors import InputError, ReplanError
from replan.cli.page.acts.acting import error_text
from replan.cli.page.acts.answering import LETS_HAPPEN, Asked, confirm_answer, read_answer
from replan.cli.page.forms import read_form, read_upload
from replan.cli.page.shown import ask_fingerprint
from replan.cli.page.site import Site, Talk
from replan.ports.session_store import SessionKey
from replan.runs.team_on_record import team_name
from replan.server.doors.session_wire import TurnBody
from replan.server.doors.sessions import check_input, check_session_id
from replan.server.problems import RefusedError, bad_field
from replan.server.request_body import check_fields
from replan.server.session_turns import client_of
from replan.sessions.client.adapter import ClientAgentAdapter
from replan.sessions.session_runs import run_in
from replan.state.questions import Question, fingerprint_of
from replan.views.run.evidence import evidence_of

_MOST_SHOWN = 50
_MOST_TALKS = 200


async def chats(site: Site, request: Request) -> Response:
    """List the sessions of who looks."""
    sessions = await _client(site, request).sessions(100)
    return site.page(request, "chats", sessions=sessions, new_id=site.served.new_id())


async def chat(site: Site, request: Request) -> Response:
    """Show a session, and where it continues."""
    return await _page(site, request)


async def _page(site: Site, request: Request, problem: str = "", text: str = "") -> Response:
    session_id, client = _session(request), _client(site, request)
    before = request.query_params.get("before", "")
    older = int(before) if before.isascii() and before.isdigit() and len(before) < 12 else None  # noqa: PLR2004 - digits
    messages, earlier = (), None
    try:
        page = await client.history(session_id, before=older, limit=_MOST_SHOWN)
        messages, earlier = page.messages, page.before
    except InputError:
        if await site.served.storage.sessions.load(_key(request)) is not None:
            raise
    run_id, evidence = await _open_run(site, request, client)
    asks = tuple(each.ask for each in evidence)
    return site.page(
        request,
        "chat",
        422 if problem else 200,
        session_id=session_id,
        messages=messages,
        earlier=earlier,
        asks=asks,
        evidence={each.ask.key: each.evidence for each in evidence},
        run_id=run_id,
        talk=site.talks.get(_key(request)),
        teams=list(site.served.runtimes),
        lacking=site.served.lacking,
        problem=problem,
        text=text,
        turn_id=site.served.new_id(),
        seen=_asks_fingerprint(asks),
    )


async def _open_run(
    site: Site, request: Request, client: ClientAgentAdapter
) -> tuple[str, tuple[Asked, ...]]:
    """The open run of a session, and its questions."""
    key, back = _key(request), f"/chat/{_session(request)}"
    if await site.served.storage.sessions.load(key) is None:
        return "", ()
    run_id = run_in(await client.export(key.session_id))
    record = await site.served.storage.runs.get(run_id) if run_id else None
    if record is None or not site.served.is_seen(record, request.state.who):
        return "", ()
    report = await site.served.runtime_of(record).get(run_id)
    asks = report.pending_questions
    return run_id, tuple(Asked(ask, evidence_of(ask, report), back) for ask in asks)


def _asks_fingerprint(asks: tuple[Question, ...]) -> str:
    """Name the question of a session that is answered by a text."""
    return fingerprint_of(*map(ask_fingerprint, asks))


async def changes(site: Site, request: Request) -> Response:
    """Tell an open page whether its turn is over."""
    talk = site.talks.get(_key(request))
    if request.query_params.get("boot") != site.boot or talk is None or not talk.is_at_work:
        return Response(headers={"HX-Refresh": "true"})
    return Response(status_code=204)


async def say(site: Site, request: Request) -> Response:
    """Take a turn with a text and files."""
    fields, files = await read_upload(site, request)
    text = fields.get("text", "")
    _, asked = await _open_run(site, request, _client(site, request))
    if fields.get("seen") != _asks_fingerprint(tuple(each.ask for each in asked)):
        detail = "The question has changed since the page was loaded. Nothing was sent."
        return await _page(site, request, detail, text)
    given = {"input": text, "files": files, "team": fields.get("team", "")}
    return await _take_turn(site, request, fields, given, text)


async def answer(site: Site, request: Request) -> Response:
    """Take a turn that answers a question of a session by its key."""
    fields = await read_form(site, request)
    run_id, asked = await _open_run(site, request, _client(site, request))
    found = next((each for each in asked if each.ask.key == fields.get("key")), None)
    if found is None or fields.get("seen") != ask_fingerprint(found.ask):
        detail = "The question has changed since the page was loaded. Nothing was done."
        return await _page(site, request, detail)
    try:
        value = read_answer(found.ask, fields)
    except InputError as error:
        return await _page(site, request, str(error))
    if fields.get("action") in LETS_HAPPEN and not fields.get("sure"):
        return confirm_answer(site, request, found, fields, value)
    record = await site.served.storage.runs.get(run_id)
    given = {"input": {found.ask.key: value}, "team": team_name(record) if record else ""}
    return await _take_turn(site, request, fields, given)


async def _take_turn(
    site: Site, request: Request, fields: dict[str, str], given: dict[str, Any], typed: str = ""
) -> Response:
    """Take a turn; one that is refused is told, with what was typed."""
    given = {**given, "turn_id": fields.get("turn_id") or None}
    try:
        body = check_fields(TurnBody, lambda: TurnBody.model_validate(given))
        text = fields.get("text") or fields.get("action", "")
        return await _begin_turn(site, request, body, text)
    except ReplanError as error:
        return await _page(site, request, error_text(error), typed)


async def _begin_turn(site: Site, request: Request, body: TurnBody, text: str) -> Response:
    """Begin a turn; it continues if the page is closed."""
    key, served = _key(request), site.served
    check_input(request.state.who, body)
    team = served.team_named(body.team)
    old = site.talks.get(key)
    turn_id = body.turn_id or served.new_id()
    if old is not None and old.turn_id != turn_id and old.is_at_work:
        raise RefusedError(409, "busy", "A turn is being taken. Wait for it, or stop its run.")
    if old is None or old.turn_id != turn_id:
        talk = site.talks[key] = Talk(text=text, turn_id=turn_id)
        client = client_of(served, request.state.who, team, body.settings)

        async def taken() -> None:
            try:
                await client.process(key.session_id, body.said, turn_id=turn_id)
            except ReplanError as error:
                talk.problem = error_text(error)
            if not talk.problem and site.talks.get(key) is talk:
                del site.talks[key]

        talk.task = asyncio.ensure_future(taken())
        served.turns.add(talk.task)
        talk.task.add_done_callback(served.turns.discard)
        while len(site.talks) > _MOST_TALKS:
            site.talks.pop(next(iter(site.talks)))
    there = f"{site.prefix}/chat/{quote(key.session_id, safe='')}#end"
    return RedirectResponse(there, 303)


def _session(request: Request) -> str:
    return check_session_id(request.path_params["session_id"], "session_id")


def _key(request: Request) -> SessionKey:
    who = request.state.who
    return SessionKey(who.tenant, who.person, _session(request))


def _client(site: Site, request: Request) -> ClientAgentAdapter:
    if not site.served.runtimes:
        raise bad_field("team", "", "no team is served", "Start replan ui with a team file.")
    # What is kept is the same for all teams.
    return client_of(site.served, request.state.who, next(iter(site.served.runtimes)))
