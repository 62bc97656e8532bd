"""The log in memory: what it counts, what it gives back, and what it forgets."""

from datetime import UTC, datetime

import pytest

from replan import SpecialistResult, StorageError
from replan.log.amounts import Bound, Reservation, Spending
from replan.log.rows import Attempt
from replan.log.run_log import RunLog
from replan.storage.memory_log import MemoryLogs, memory_log

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def attempt(run="r", key="k", number=1):
    return Attempt(run_id=run, step_id=1, specialist="a", number=number, key=key, started_at=NOON)


def reserve(log, number=0, *, run="r", limit):
    reservation = Reservation(id=f"{run}{number}{limit}", run_id=run, amount=Spending(calls=1))
    return log.reserve(reservation, [Bound(scope="run", calls=limit)])


async def test_asking_for_a_run_that_is_not_known_makes_none():
    log = memory_log(max_open=1)
    await log.finished(attempt(), SpecialistResult(), NOON)
    assert await log.results("stranger") == {}
    assert set(await log.results("r")) == {"k"}


async def test_a_run_that_is_over_leaves_what_it_spent_and_its_attempts():
    log = memory_log()
    await log.started(attempt())
    await log.finished(attempt(), SpecialistResult(), NOON)
    await reserve(log, limit=5)
    await log.note("r", "answer/1", "yes")
    await log.note("r", "seconds/run/3.000", 3)
    await log.closed("r")
    await log.closed("never begun")
    assert (await log.spent("r"))["run"] == Spending(calls=1)
    assert await log.notes("r") == {"seconds/run/3.000": 3}
    assert await log.results("r") == {}
    assert [entry.outcome for entry in await log.ledger("r")] == ["done"]


async def begun(log, run):
    await log.started(attempt(run))


async def done(log, run):
    await begun(log, run)
    await log.finished(attempt(run), SpecialistResult(), NOON)
    await log.closed(run)


async def test_a_run_that_waits_is_kept_however_many_others_are_done():
    log = memory_log(max_open=2, max_closed=10_000)
    await log.finished(attempt("waits"), SpecialistResult(error="e"), NOON)
    for number in range(1_000):
        await done(log, f"other {number}")
    assert {key: result.error for key, result in (await log.results("waits")).items()} == {"k": "e"}


async def test_of_runs_that_are_over_the_newest_are_kept():
    log = memory_log(max_closed=3)
    for number in range(10):
        await done(log, f"{number}")
    assert [number for number in range(10) if await log.ledger(f"{number}")] == [7, 8, 9]


async def test_a_run_that_goes_on_is_not_among_those_that_are_over():
    log = memory_log(max_closed=2)
    await done(log, "goes on")
    await log.started(attempt("goes on", number=2))
    for number in range(10):
        await done(log, f"{number}")
    assert [entry.number for entry in await log.ledger("goes on")] == [1, 2]


async def test_a_run_that_is_over_goes_on_where_its_limits_are_raised():
    log = memory_log()
    await reserve(log, limit=5)
    await done(log, "r")
    await log.started(attempt(number=2))
    assert [entry.outcome for entry in await log.ledger("r")] == ["done", "unknown_outcome"]
    assert (await log.spent("r"))["run"] == Spending(calls=1)
    await log.closed("r")
    assert [entry.number for entry in await log.ledger("r")] == [1, 2]


async def test_a_call_that_answers_when_its_run_is_over_is_charged_with_what_it_used():
    log = memory_log()
    reservation = Reservation(id="late", run_id="r", amount=Spending(calls=1, tokens=900))
    await log.reserve(reservation, [Bound(scope="run", tokens=1_000)])
    await log.closed("r")
    await log.settle(reservation, Spending(calls=1, tokens=20))
    assert (await log.spent("r"))["run"] == Spending(calls=1, tokens=20)


async def test_a_run_that_is_not_over_gives_way_aloud_and_never_begins_anew(caplog):
    logs = MemoryLogs(max_open=2)
    log = RunLog(logs)
    for run in ("first", "second", "first", "third"):
        await begun(log, run)
    assert [record.run_id for record in caplog.records] == ["second"]
    assert len(await log.ledger("first")) == 1
    for goes_on in (log.results("second"), begun(log, "second"), log.ledger("second")):
        with pytest.raises(StorageError, match="second"):
            await goes_on
    logs.forget("second")
    assert await log.ledger("second") == []
