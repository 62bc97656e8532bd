"""Lists over HTTP: runs with filters, a page at a time, and the events of a run."""

from collections.abc import Mapping
from datetime import UTC
from functools import partial
from typing import cast, get_args

from starlette.responses import Response

from replan.ports.run_book import RunOutcome, RunRecord
from replan.runs.labels import checked_labels
from replan.runs.log.event_log import run_event
from replan.runs.reading import is_worked_on
from replan.server.answers import TEAM, TENANT, EventPage, RunListed, RunPage
from replan.server.bodies import RunsQuery
from replan.server.callers.identity import Identity
from replan.server.endpoints import EVENTS, Call
from replan.server.problems import RefusedError, bad_field
from replan.server.served_teams import ServedTeams
from replan.server.stream import event_stream
from replan.state.results import Outcome

_SCANNED = 1_000
"""Runs at most that are looked at for one page."""

_BATCH = 100


async def runs(call: Call) -> RunPage:
    """List the runs that the caller may see, the newest first."""
    query: RunsQuery = call.query
    found = list[RunListed]()
    last, scanned, is_more = await _first(call), 0, True
    while is_more and scanned < _SCANNED:
        records = await call.served.storage.runs.recent(
            _BATCH, _labels(query, call.who), behind=last
        )
        is_more = len(records) == _BATCH
        for record in records:
            if len(found) == query.most or _is_before(record, query):
                return _page(found, last if len(found) == query.most else None)
            last, scanned = record, scanned + 1
            if call.served.is_seen(record, call.who):
                listed = await _listed(record, call.served)
                found += [listed] if listed.outcome in (query.outcome or (listed.outcome,)) else []
    return _page(found, last if is_more else None)


async def events(call: Call) -> EventPage | Response:
    """List the events of a run after a number: as JSON, or as they come."""
    record = await call.served.record_of(call.path["run_id"], call.who)
    is_stream = EVENTS in call.request.headers.get("accept", "")
    after = _after(call) if is_stream else call.query.after
    # With the last known one, which has to be there.
    kept = await call.served.storage.runs.events(record.run_id, max(0, after - 1))
    if after and not kept:
        known = len(await call.served.storage.runs.events(record.run_id))
        problem = "the run has no event of this number"
        raise bad_field("after", after, problem, f"Give a number from 0 to {known}.")
    runtime = call.served.runtime_of(record)
    if not is_stream:
        page = [run_event(record.run_id, each) for each in kept if each.seq > after]
        page = page[: call.query.most]
        return EventPage(events=tuple(page), next=after + len(page))
    if record.outcome in get_args(Outcome) and all(each.seq <= after for each in kept):
        # With this status, a browser does not reconnect.
        return Response(status_code=204)
    following = runtime.events(record.run_id, after=after, tokens=call.query.tokens)
    rest = partial(call.served.rest_of, record)
    seat = call.served.seat_of(call.who)
    return event_stream(following, record.run_id, rest, call.served.beat, seat)


def _after(call: Call) -> int:
    """The number after which a stream continues: a browser says which event it had last."""
    given = call.request.headers.get("last-event-id", "")
    if not given:
        return call.query.after
    if not (given.isascii() and given.isdigit() and len(given) < len("9" * 17)):
        fix = "Send the id of the last event, or no such header."
        raise bad_field("Last-Event-ID", given, "this is not the number of an event", fix)
    return int(given)


def _labels(query: RunsQuery, who: Identity) -> Mapping[str, str]:
    """The labels that the listed runs have."""
    labels = {} if query.team is None else {TEAM: query.team}
    labels |= {TENANT: who.tenant} if who.tenant else {}
    for text in query.label:
        name, sign, value = text.partition(":")
        if not sign or labels.setdefault(name, value) != value:
            problem = "it is not a label, or another filter excludes it"
            raise bad_field("label", text, problem, "Write NAME:VALUE, each name once.")
    return checked_labels(labels)


async def _first(call: Call) -> RunRecord | None:
    """The run after which a page begins."""
    if call.query.behind is None:
        return None
    try:
        return await call.served.record_of(call.query.behind, call.who)
    except RefusedError:
        fix = "Give the `next` of the page before, or leave it out."
        raise bad_field("behind", call.query.behind, "there is no such run", fix) from None


def _is_before(record: RunRecord, query: RunsQuery) -> bool:
    if query.since is None:
        return False
    since = query.since if query.since.tzinfo else query.since.replace(tzinfo=UTC)
    return record.started_at < since


async def _listed(record: RunRecord, served: ServedTeams) -> RunListed:
    outcome: RunOutcome = record.outcome
    runtime = served.runtime_of(record)
    if outcome == "running" and not await is_worked_on(
        record.run_id, runtime.bench, is_followed=True
    ):
        # Its process could not say its status.
        view = await runtime.look(record.run_id)
        outcome = cast("RunOutcome", view.outcome)
    return RunListed(
        run_id=record.run_id,
        team=record.labels[TEAM],
        title=record.title,
        outcome=outcome,
        started_at=record.started_at,
        updated_at=record.updated_at,
        labels=record.labels,
    )


def _page(found: list[RunListed], last: RunRecord | None) -> RunPage:
    return RunPage(runs=tuple(found), next=None if last is None else last.run_id)
