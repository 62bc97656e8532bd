"""Rows of a log: their numbers among events, what is superseded, and where their long texts are."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from langchain_core.messages import AIMessage

from replan import StorageError
from replan.events import RunStarted, SpecialistInvoked, WarningReported
from replan.log.events.listeners import Announcement
from replan.log.rows import Attempt, KeptText, reference_to
from replan.log.run_log import RunLog
from replan.runs.log.event_log import EventLog
from replan.state.results import SpecialistResult
from replan.storage.databases.database import Database
from stored_tables import changing, rows_of

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
LONG = "A long text. " * 200


def attempt(number=1, key="k", at=NOON):
    return Attempt(run_id="r", step_id=1, specialist="a", number=number, key=key, started_at=at)


def invoked(published, number=1):
    event = SpecialistInvoked(run_id="r", step_id=1, specialist="a", attempt=number, task="t")
    return Announcement(event, published.append)


def warning(text):
    return WarningReported(run_id="r", text=text)


@asynccontextmanager
async def numbered(log):
    """A queue of events of a run, and what its listeners heard."""
    heard = []
    queue = EventLog(log, "r", lambda: NOON, [heard.append])
    with log.numbered_with("r", queue):
        yield queue, heard
        await queue.flush()


def told(events):
    return [(event.seq, getattr(event, "text", event.type)) for event in events]


async def logged(log):
    return [
        (each.seq, each.event.get("text", each.event["type"])) for each in await log.events("r")
    ]


async def test_what_comes_at_once_has_numbers_without_a_gap(storage):
    log, published = storage.log, []

    async def one(queue, number):
        queue.take(warning(f"of {number}"))
        await log.started(attempt(number), announced=invoked(published, number))

    async with numbered(log) as (queue, heard):
        await asyncio.gather(*(one(queue, number) for number in range(1, 9)), queue.flush())
    events = await logged(log)
    assert [seq for seq, _ in events] == [*range(1, 17)]
    assert sorted(told(heard)) == events
    assert sorted(event.seq for event in published) == [
        seq for seq, text in events if text == "specialist_invoked"
    ]


async def test_a_row_that_was_there_has_no_event_and_lets_no_other_event_go(storage):
    """The events that wait keep their order and are written, whatever the row comes to."""
    log, published = storage.log, []
    await log.finished(attempt(), SpecialistResult(result=AIMessage("done")), NOON)
    async with numbered(log) as (queue, heard):
        queue.take(warning("first"))
        known = await log.started(attempt(2), announced=invoked(published, 2))
        queue.take(warning("second"))
        assert known.text == "done"
        assert await log.note("r", "answer", "yes", Announcement(warning("said"), published.append))
        assert await log.note("r", "answer", "no", Announcement(warning("said"), published.append))
        queue.take(warning("third"))
        await log.started(attempt(3, "other"), announced=invoked(published, 3))
        with pytest.raises(StorageError, match="was begun by another run"):
            await log.started(attempt(3, "other", LATER), announced=invoked(published, 3))
    expected = [
        (1, "first"),
        (2, "second"),
        (3, "said"),
        (4, "third"),
        (5, "specialist_invoked"),
    ]
    assert await logged(log) == expected
    assert told(heard) == expected
    assert told(published) == [expected[2], expected[4]]


class Breaks:
    """Transactions whose connection breaks, before the commit or before its receipt."""

    def __init__(self, monkeypatch):
        self.left = []
        submit = Database.write

        async def write(database, work, **options):
            if not self.left:
                return await submit(database, work, **options)
            # The same function is run again, as when a driver reports that a connection broke.
            if self.left.pop() == "before the receipt":
                await submit(database, work, **options)
            else:
                await self._rolled_back(submit, database, work, options)
            return await submit(database, work, **options)

        monkeypatch.setattr(Database, "write", write)

    async def _rolled_back(self, submit, database, work, options):
        def cut(connection):
            work(connection)
            raise ConnectionAbortedError

        with pytest.raises(ConnectionAbortedError):
            await submit(database, cut, **options)


@pytest.mark.parametrize("when", ["before the receipt", "before the commit"])
async def test_a_connection_that_breaks_changes_no_number(when, storage, monkeypatch):
    log, published, breaks = storage.log, [], Breaks(monkeypatch)
    async with numbered(log) as (queue, heard):
        queue.take(warning("before"))
        breaks.left.append(when)
        await log.started(attempt(), announced=invoked(published))
        queue.take(warning("between"))
        breaks.left.append(when)
        await queue.flush()
        breaks.left.append(when)
        # Nothing waits in front of it.
        await log.note("r", "answer", "yes", Announcement(warning("said"), published.append))
        queue.take(warning("late"))
        breaks.left.append(when)
        # The row is there already.
        await log.note("r", "answer", "no", Announcement(warning("said"), published.append))
    expected = [
        (1, "before"),
        (2, "specialist_invoked"),
        (3, "between"),
        (4, "said"),
        (5, "late"),
    ]
    assert await logged(log) == expected
    assert told(heard) == expected
    assert told(published) == [expected[1], expected[3]]


async def test_a_result_that_came_while_a_connection_broke_is_not_announced(storage, monkeypatch):
    """The first try was rolled back; before the second, another process finished the step."""
    log, published, write = storage.log, [], Database.write
    result = SpecialistResult(result=AIMessage("done elsewhere"))

    async def broken(database, work, **options):
        def cut(connection):
            work(connection)
            raise ConnectionAbortedError

        monkeypatch.setattr(Database, "write", write)
        with pytest.raises(ConnectionAbortedError):
            await write(database, cut, **options)
        await RunLog(log._store).finished(attempt(), result, NOON)  # noqa: SLF001 - another process
        return await write(database, work, **options)

    async with numbered(log) as (queue, heard):
        queue.take(warning("before"))
        monkeypatch.setattr(Database, "write", broken)
        known = await log.started(attempt(), announced=invoked(published))
        assert known.text == "done elsewhere"
    assert published == []
    assert told(heard) == await logged(log) == [(1, "before")]


async def test_rows_without_a_queue_publish_what_is_new(storage):
    log, published = storage.log, []
    for _ in range(2):
        await log.started(attempt(), announced=invoked(published))
    assert told(published) == [(None, "specialist_invoked")]
    assert [row.kind for row in await log.rows("r")] == ["specialist_invoked"]


async def test_what_is_superseded_stays_to_be_read_and_counts_no_longer(storage):
    log, published = storage.log, []
    async with numbered(log) as (queue, _):
        await log.note("r", "turn/1", LONG)
        await log.note("r", "turn/2", "b", Announcement(warning("said"), published.append))
        await log.note("r", "other", None)
        await log.strike("r", "turn/")
        await log.note("r", "turn/1", "again")
        queue.take(warning("after"))
    assert await log.notes("r") == {"other": None, "turn/1": "again"}
    rows = await log.rows("r")
    assert [(row.key, row.counts, row.value) for row in rows if row.key.startswith("turn/")] == [
        ("turn/1", False, LONG),
        ("turn/2", False, "b"),
        ("turn/1", True, "again"),
    ]
    assert [row.number for row in rows] == [*range(1, 7)]
    # That it was told stays true.
    assert await logged(log) == [(1, "said"), (2, "after")]
    (gone,) = [row for row in rows if row.kind == "superseded"]
    assert (gone.value, gone.counts) == ("turn/", True)
    # Nothing to supersede leaves no row.
    await log.strike("r", "nothing/")
    assert await log.rows("r") == rows
    assert await log.rows("r", rows[-2].number) == rows[-1:]


def texts_in(where):
    with changing(where) as connection:
        return rows_of(connection, "replan_texts")


async def test_a_long_text_is_stored_once_in_a_run(lasting):
    """As the result of a step, in the state of the next one, in a prompt."""
    async with lasting() as storage:
        log = storage.log
        result = SpecialistResult(result=AIMessage(LONG))
        await log.finished(attempt(), result, NOON)
        await log.finished(attempt(key="same"), result, NOON)
        await log.note("r", "turn/1", [{"text": LONG}, LONG, "short"])
        kept = KeptText(reference_to(LONG), LONG, NOON)
        await log.add_events("r", [{"type": "warning"}], [kept])
        assert len(texts_in(lasting.where)) == 1
        assert await log.text("r", kept.ref) == LONG
        assert [each.text for each in (await log.results("r")).values()] == [LONG, LONG]
        assert await log.notes("r") == {"turn/1": [{"text": LONG}, LONG, "short"]}
        # Another run has its own, which goes with it.
        await log.finished(attempt().replace(run_id="other"), result, NOON)
        assert len(texts_in(lasting.where)) == 2
        await storage.runs.remove("other")
        assert [each.text for each in (await log.results("r")).values()] == [LONG, LONG]


@pytest.mark.parametrize("is_first", ["event", "result"])
async def test_a_text_that_a_result_needs_is_not_forgotten(is_first, storage):
    log, ref = storage.log, reference_to(LONG)

    async def event():
        other = KeptText(reference_to("prompt"), "prompt", NOON)
        await log.add_events("r", [{"type": "warning"}], [KeptText(ref, LONG, NOON), other])

    async def result():
        await log.finished(attempt(), SpecialistResult(result=AIMessage(LONG)), NOON)

    for step in (event, result) if is_first == "event" else (result, event):
        await step()
    await log.forget_texts(datetime.now(UTC) + timedelta(days=1))
    assert (await log.results("r"))["k"].text == LONG
    assert await log.text("r", ref) == LONG
    assert await log.text("r", reference_to("prompt")) is None
    # What was superseded needs its text, too.
    await log.note("r", "turn/1", f"{LONG} of the turn")
    await log.strike("r", "turn/")
    await log.forget_texts(datetime.now(UTC) + timedelta(days=1))
    assert f"{LONG} of the turn" in [row.value for row in await log.rows("r")]


async def test_texts_that_differ_in_half_a_character_are_different(storage):
    log = storage.log
    texts = [f"{LONG}{end}" for end in ("\ud800", "\ud801", "?")]
    for number, text in enumerate(texts):
        await log.note("r", f"turn/{number}", text)
    assert [*(await log.notes("r")).values()] == texts


async def test_a_connection_that_is_cut_by_the_server_changes_no_number(postgres_database):
    """As above, with a driver that reports it."""
    from replan import open_storage  # noqa: PLC0415 - of this test alone

    async with open_storage(postgres_database) as storage:
        log, published = storage.log, []
        async with numbered(log) as (queue, heard):
            await log.note("r", "first", 1)
            with psycopg.connect(postgres_database, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            queue.take(warning("before"))
            await log.started(attempt(), announced=invoked(published))
        assert await logged(log) == told(heard) == [(1, "before"), (2, "specialist_invoked")]


async def test_the_newest_rows_are_looked_through_for_some_kinds_of_events(storage):
    log = storage.log
    for number in range(6):
        events = [warning(f"w{number}"), RunStarted(run_id="r", request=f"q{number}")]
        await log.add_events("r", [each.model_dump(mode="json") for each in events])
    found = await log.recent_events(["r", "none"], ["run_started", "x"], 5)
    assert [each.event["request"] for each in found["r"]] == ["q3", "q4", "q5"]
    assert list(found["none"]) == []
