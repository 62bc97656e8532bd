"""Routes of runs: begin, get, list with their events, answer, stop, resume, and correct them."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC
from functools import partial
from typing import Annotated, Any, Literal, get_args

from fastapi import Query
from pydantic import JsonValue
from starlette.responses import Response

from replan.base.errors import ReplanError, mistake
from replan.log.kept_events import events_of
from replan.log.labels import OWN_LABELS, PRIORITY, TEAM, TENANT, checked_labels
from replan.ports.run_book import RunRecord
from replan.runs.asked.requests import check_same_answers, digest_of_answers
from replan.runs.reports import read_summary, texts_of
from replan.runs.run_input import stored_input
from replan.runs.statuses import page_of, records_of
from replan.runs.team_on_record import team_name
from replan.server.bodies import (
    AnswerBody,
    CorrectionBody,
    EventsQuery,
    MessageBody,
    PlanBody,
    ResumeBody,
    RunsQuery,
    StartBody,
    StopBody,
)
from replan.server.callers.identity import Identity
from replan.server.problems import RefusedError, bad_field, bad_request
from replan.server.response_schemas import EventPage, Run, RunPage, RunSummary, Text
from replan.server.served_teams import id_for
from replan.server.stream import event_stream
from replan.server.web import Call, Called, api_router, needs, streams
from replan.server.work import (
    answer_run,
    begin_run,
    edit_plan_of,
    reserve_for,
    resume_run,
    settings_for,
    start_with_lease,
)
from replan.state.outcomes import Outcome
from replan.state.questions import Question, fingerprint_of, meant_by
from replan.views.run.evidence import replies_before

Action = Literal["retry", "skip"]
_ASKED = "asked"
"""The field of a run's order that distinguishes requests."""


router = api_router()
_RUN = "/runs/{run_id}"
_AGAIN: dict[int | str, dict[str, Any]] = {200: {"model": Run}}


@router.post("/runs", summary="Start a run", status_code=201, responses=_AGAIN, **needs("run"))
async def start(call: Called, body: StartBody, response: Response) -> Run:
    """Begin a run; the same request with the same name returns the same run."""
    who, served = call.who, call.served
    team = served.team_named(body.team)
    if not body.input.keys() & {"messages", "plan"}:
        raise bad_field("task", body.task, "there is nothing to do", "Give a task or a plan.")
    _check_labels(body.labels)
    run_input = body.input
    fingerprint = fingerprint_of(team, body.model_dump(mode="json", exclude={"team"}))
    key = _name_of_request(call)
    name = body.run_id or (f"key-{key}" if key else "")
    run_id = id_for(name, who) if name else served.new_id()
    earlier = await served.storage.runs.get(run_id) if name else None
    if earlier is not None:
        response.status_code = 200
        return await _start_again(call, earlier, fingerprint)
    await begin_run(
        served,
        who,
        team,
        run_input,
        run_id=run_id,
        settings=body.settings,
        labels=body.labels,
        title=body.title,
        order={**stored_input(run_input), _ASKED: fingerprint},
        tokens=body.tokens,
    )
    record = await served.storage.runs.get(run_id)
    if record is not None and not _is_same_request(record, fingerprint):
        # Another request came at the same moment.
        raise _id_taken(record)
    return await _current_run(call, run_id)


def _name_of_request(call: Call) -> str:
    """What a request is known by, if its client named it."""
    key = call.idempotency_key
    return fingerprint_of(call.who.name, key) if key else ""


def _is_same_request(record: RunRecord, fingerprint: str) -> bool:
    return isinstance(record.order, dict) and record.order.get(_ASKED) == fingerprint


def _id_taken(record: RunRecord) -> RefusedError:
    fix = "Send the same request again, or give the new one another run_id."
    problem = "another request began a run of this name"
    refusal = mistake("run_id", record.run_id, problem, fix)
    return RefusedError(409, "run_id_taken", f"run_id: {problem}. {fix}", [refusal])


async def _start_again(call: Call, record: RunRecord, fingerprint: str) -> Run:
    """What a start that comes again gets: its run, which continues if its process was killed."""
    if not _is_same_request(record, fingerprint) or not call.served.is_seen(record, call.who):
        raise _id_taken(record)
    report = await call.served.runtime_of(record).get(record.run_id)
    if report.is_killed:
        await resume_run(call.served, call.who, record, None)
    return await _current_run(call, record.run_id)


@router.get(_RUN, summary="Get a run")
async def look(call: Called, run_id: str) -> Run:
    """Return the status of a run."""
    record = await call.served.record_of(run_id, call.who)
    return await _shown(call, record)


@router.get(_RUN + "/texts/{ref}", summary="Return a long text of an event")
async def text(call: Called, run_id: str, ref: str) -> Text:
    """Return a long text of an event."""
    record = await call.served.record_of(run_id, call.who)
    stored = await call.served.runtime_of(record).text(record.run_id, ref)
    if stored is None:
        detail = "This text is not there, or it was removed. An event names its texts as `ref`."
        raise RefusedError(404, "unknown_text", detail)
    return Text(ref=ref, text=stored)


@router.post(
    f"{_RUN}/answers",
    summary="Answer questions and decide",
    status_code=202,
    **needs("answer"),
)
async def answer(call: Called, run_id: str, body: AnswerBody) -> Run:
    """Answer the questions of a run, which then continues."""
    report = await call.served.report_of(run_id, call.who)
    name, log = _name_of_request(call), call.served.storage.log
    earlier, asks = await log.request(report.run_id, name), report.pending_questions
    if earlier is not None and (not asks or await log.is_taken(report.run_id, name)):
        check_same_answers(digest_of_answers(body.answers), earlier)
        return await _current_run(call, report.run_id)
    if earlier is None:
        if not asks:
            detail = f"This run waits for no answer: it is {report.outcome}."
            shown = f"GET /runs/{report.run_id} shows it."
            raise RefusedError(409, "nothing_asked", f"{detail} {shown}")
        _check_keys(body.answers, asks)
    await answer_run(call.served, call.who, report, body.answers, name=name)
    return await _current_run(call, report.run_id)


@router.post(f"{_RUN}/stop", summary="Stop a run", status_code=202, **needs("run"))
async def stop(call: Called, run_id: str, body: StopBody) -> Run:
    """Stop a run; it can be resumed."""
    record = await call.served.record_of(run_id, call.who)
    await call.served.stop(record, call.who, force=body.force)
    return await _current_run(call, record.run_id)


@router.put(f"{_RUN}/plan", summary="Edit the plan", status_code=202, **needs("operate"))
async def edit_plan(call: Called, run_id: str, body: PlanBody) -> Run:
    """Edit the plan of a run that is not over; steps that have not begun follow it."""
    record = await call.served.record_of(run_id, call.who)
    await edit_plan_of(call.served, call.who, record, body.plan, body.version)
    return await _current_run(call, record.run_id)


@router.post(
    f"{_RUN}/messages", summary="Tell the host of a run something", status_code=202, **needs("run")
)
async def send_message(call: Called, run_id: str, body: MessageBody) -> Run:
    """Tell the host of a run that is not over something; it can revise the plan for it."""
    record = await call.served.record_of(run_id, call.who)
    runtime, by = call.served.runtime_of(record), call.who.person
    await runtime.send_message(record.run_id, body.text, by=by, name=_name_of_request(call))
    return await _current_run(call, record.run_id)


@router.post(f"{_RUN}/resume", summary="Resume a run", status_code=202, **needs("run"))
async def resume(call: Called, run_id: str, body: ResumeBody) -> Run:
    """Resume a run that was stopped or killed, or that a limit ended."""
    served, who = call.served, call.who
    record = await served.record_of(run_id, who)
    settings = settings_for(served, who, team_name(record), body.settings)
    await resume_run(served, who, record, settings)
    return await _current_run(call, record.run_id)


@router.post(f"{_RUN}/retry", summary="Do a step again", status_code=202, **needs("operate"))
async def retry(call: Called, run_id: str, body: CorrectionBody) -> Run:
    """Do a step again, and what depends on it."""
    return await correct(call, run_id, body, "retry")


@router.post(f"{_RUN}/skip", summary="Skip a step", status_code=202, **needs("operate"))
async def skip(call: Called, run_id: str, body: CorrectionBody) -> Run:
    """Leave a step out, and continue."""
    return await correct(call, run_id, body, "skip")


async def correct(call: Call, run_id: str, body: CorrectionBody, action: Action) -> Run:
    """Do a step again, and what depends on it; or leave it out, and continue."""
    record = await call.served.record_of(run_id, call.who)
    runtime = call.served.runtime_of(record)
    new_id = id_for(body.run_id, call.who) if body.run_id else call.served.new_id()
    if await call.served.storage.runs.get(new_id) is not None:
        fix = f"GET /runs/{body.run_id} shows it. Give another one, or none."
        raise bad_field("run_id", body.run_id, "there is a run of this name", fix)
    asked_for = settings_for(call.served, call.who, team_name(record), body.settings)
    lease, settings = await reserve_for(call.served, call.who, record, asked_for, new_id)
    options: Any = {
        "by": call.who.person,
        "settings": settings,
        "allow_repeat": body.allow_repeat,
        "run_id": new_id,
    }
    do = runtime.retry if action == "retry" else runtime.skip
    run = await start_with_lease(
        call.served, lease, lambda: do(record.run_id, body.step, **options)
    )
    return await _current_run(call, run.run_id)


async def _current_run(call: Call, run_id: str) -> Run:
    record = await call.served.storage.runs.get(run_id)
    if record is None:
        raise ReplanError(f"The run {run_id} was removed while it began. Start it again.")
    return await _shown(call, record)


async def _shown(call: Call, record: RunRecord) -> Run:
    report = await call.served.runtime_of(record).get(record.run_id)
    replies = replies_before(report)
    return Run.of(report, await texts_of(record.run_id, call.served.storage, replies))


def _check_labels(labels: Mapping[str, str]) -> None:
    if not re.fullmatch(r"0|-[1-9]", labels.get(PRIORITY, "0")):
        fix = "Give a number from -9 to 0: a caller can only lower the priority."
        problem = "a caller may not set this priority"
        raise bad_field(f"labels.{PRIORITY}", labels[PRIORITY], problem, fix)
    for name in OWN_LABELS:
        if name in labels:
            fix = "Give the label another name."
            raise bad_field(f"labels.{name}", labels[name], "the server sets this label", fix)


def _check_keys(answers: Mapping[str, JsonValue], questions: Sequence[Question]) -> None:
    """Refuse answers to questions that are not open, before any is taken."""
    mistakes = [
        mistake(
            f"answers.{name}",
            answer,
            "the run does not wait for this answer",
            f"Give one of: {', '.join(question.key for question in questions)}.",
            "unknown_key",
        )
        for name, answer in answers.items()
        if not meant_by(name, questions)
    ]
    if mistakes:
        raise bad_request(mistakes)


_BATCH = 100


@router.get("/runs", summary="List runs")
async def runs(call: Called, query: Annotated[RunsQuery, Query()]) -> RunPage:
    """List the runs that the caller may see, the newest first."""
    since = query.since
    records = records_of(
        call.served.storage.runs,
        labels=_labels(query, call.who),
        statuses=query.outcome,
        page=_BATCH,
        behind=await _page_start(call, query),
        since=since if since is None or since.tzinfo else since.replace(tzinfo=UTC),
    )
    entries, last = await page_of(records, query.limit, partial(_list_entry, call, query))
    return RunPage(runs=tuple(entries), next=last or None)


_NO_MORE: Any = {"204": {"description": "The run is over, and has no further event"}}


@router.get(
    f"{_RUN}/events",
    summary="List the events of a run",
    response_model=EventPage,
    responses=streams(**_NO_MORE),
)
async def events(
    call: Called, run_id: str, query: Annotated[EventsQuery, Query()]
) -> EventPage | Response:
    """List the events of a run after a number: as JSON, or as they come."""
    record = await call.served.record_of(run_id, call.who)
    is_stream = call.wants_events
    after = _stream_start(call, query) if is_stream else query.after
    # With the last known one, which has to be there.
    kept = await call.served.storage.log.events(record.run_id, max(0, after - 1))
    if after and not kept:
        seen_events = len(await call.served.storage.log.events(record.run_id))
        problem = "the run has no event of this number"
        raise bad_field("after", after, problem, f"Give a number from 0 to {seen_events}.")
    runtime = call.served.runtime_of(record)
    if not is_stream:
        coming = [event for event in kept if event.seq > after]
        page = events_of(record.run_id, coming[: query.limit])
        return EventPage(events=tuple(page), next=after + len(page))
    if record.outcome in get_args(Outcome) and all(event.seq <= after for event in kept):
        # With this status, a browser does not reconnect.
        return Response(status_code=204)
    following = runtime.events(record.run_id, after=after, tokens=query.tokens)
    rest = partial(call.served.wait_for_rest, record)
    seat = call.served.stream_seat(call.who)
    return event_stream(following, record.run_id, rest, call.served.beat, seat)


def _stream_start(call: Call, query: EventsQuery) -> int:
    """The number after which a stream continues: a browser says which event it had last."""
    last_id = call.request.headers.get("last-event-id", "")
    if not last_id:
        return query.after
    if not (last_id.isascii() and last_id.isdigit() and len(last_id) < len("9" * 17)):
        fix = "Send the id of the last event, or no such header."
        raise bad_field("Last-Event-ID", last_id, "this is not the number of an event", fix)
    return int(last_id)


def _labels(query: RunsQuery, who: Identity) -> Mapping[str, str]:
    """The labels that the listed runs have."""
    # An operator sees runs of other programs, too, which have no label of their team.
    labels = {} if query.team is None or who.is_operator else {TEAM: query.team}
    labels |= {TENANT: who.tenant} if who.tenant else {}
    for text in query.label:
        name, sign, value = text.partition(":")
        if not sign or labels.setdefault(name, value) != value:
            problem = "it is not a label, or another filter excludes it"
            raise bad_field("label", text, problem, "Write NAME:VALUE, each name once.")
    return checked_labels(labels)


async def _page_start(call: Call, query: RunsQuery) -> RunRecord | None:
    """The run after which a page begins."""
    if query.cursor is None:
        return None
    try:
        return await call.served.record_of(query.cursor, call.who)
    except RefusedError:
        fix = "Give the `next` of the page before, or leave it out."
        raise bad_field("cursor", query.cursor, "there is no such run", fix) from None


async def _list_entry(call: Call, query: RunsQuery, record: RunRecord) -> RunSummary | None:
    """The entry of a run, if it is one of those that are asked for."""
    served = call.served
    is_of_team = query.team in (None, team_name(record))
    if not (is_of_team and served.is_seen(record, call.who)):
        return None
    runtime = served.runtime_of(record)
    if record.outcome == "running":
        # Its process may have been killed, or its work waits in a queue.
        report = await runtime.get(record.run_id)
    else:
        report = await read_summary(runtime.graph, served.storage, record, served.clock())
    is_listed = not query.outcome or report.outcome in query.outcome
    return RunSummary.of(record, report) if is_listed else None
