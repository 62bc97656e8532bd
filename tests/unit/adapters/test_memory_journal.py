"""The journal in memory: what it counts, what it gives back, and what it forgets."""

from datetime import UTC, datetime

import pytest

from replan import SpecialistResult, StorageError
from replan.adapters.memory_journal import MemoryJournal
from replan.ports.journal import Attempt, Bound, Reservation, Spending

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def attempt(run="r", key="k", number=1):
    return Attempt(run_id=run, step_id=1, specialist="a", number=number, key=key, started_at=NOON)


def reserve(journal, number=0, *, run="r", limit):
    reservation = Reservation(id=f"{run}{number}{limit}", run_id=run, amount=Spending(calls=1))
    return journal.reserve(reservation, [Bound(scope="run", calls=limit)])


async def test_a_try_that_only_started_has_no_result():
    journal = MemoryJournal()
    await journal.started(attempt())
    assert await journal.results("r") == {}


async def test_what_is_given_back_is_a_copy():
    journal = MemoryJournal()
    await journal.finished(attempt(), SpecialistResult(), NOON)
    (await journal.results("r")).clear()
    assert set(await journal.results("r")) == {"k"}


async def test_asking_for_a_run_that_is_not_known_makes_none():
    journal = MemoryJournal(max_open=1)
    await journal.finished(attempt(), SpecialistResult(), NOON)
    assert await journal.results("stranger") == {}
    assert set(await journal.results("r")) == {"k"}


async def test_a_run_that_is_over_leaves_what_it_spent_and_its_tries():
    journal = MemoryJournal()
    await journal.started(attempt())
    await journal.finished(attempt(), SpecialistResult(), NOON)
    await reserve(journal, limit=5)
    await journal.note("r", "answer/1", "yes")
    await journal.note("r", "seconds/run/3.000", 3)
    await journal.closed("r")
    await journal.closed("never begun")
    assert (await journal.spent("r"))["run"] == Spending(calls=1)
    assert await journal.notes("r") == {"seconds/run/3.000": 3}
    assert await journal.results("r") == {}
    assert [entry.outcome for entry in await journal.ledger("r")] == ["done"]


async def begun(journal, run):
    await journal.started(attempt(run))


async def done(journal, run):
    await journal.finished(attempt(run), SpecialistResult(), NOON)
    await journal.closed(run)


async def test_a_run_that_waits_is_kept_however_many_others_are_done():
    journal = MemoryJournal(max_open=2, max_closed=10_000)
    await journal.finished(attempt("waits"), SpecialistResult(error="e"), NOON)
    for number in range(1_000):
        await done(journal, f"other {number}")
    assert {key: result.error for key, result in (await journal.results("waits")).items()} == {
        "k": "e"
    }


async def test_of_runs_that_are_over_the_newest_are_kept_in_a_bounded_number_of_bytes():
    journal = MemoryJournal(max_closed=10_000)
    for number in range(1_000):
        await done(journal, f"{number}")
    kept = [number for number in range(1_000) if await journal.ledger(f"{number}")]
    assert 5 < len(kept) < 100
    assert kept == list(range(1_000 - len(kept), 1_000))


async def test_a_run_that_is_over_goes_on_where_its_limits_are_raised():
    journal = MemoryJournal()
    await reserve(journal, limit=5)
    await done(journal, "r")
    await journal.started(attempt(number=2))
    assert [entry.outcome for entry in await journal.ledger("r")] == ["done", "in doubt"]
    assert (await journal.spent("r"))["run"] == Spending(calls=1)
    await journal.closed("r")
    assert [entry.number for entry in await journal.ledger("r")] == [1, 2]


async def test_a_call_that_answers_when_its_run_is_over_is_charged_with_what_it_used():
    journal = MemoryJournal()
    reservation = Reservation(id="late", run_id="r", amount=Spending(calls=1, tokens=900))
    await journal.reserve(reservation, [Bound(scope="run", tokens=1_000)])
    await journal.closed("r")
    await journal.settle(reservation, Spending(calls=1, tokens=20))
    assert (await journal.spent("r"))["run"] == Spending(calls=1, tokens=20)


async def test_a_run_that_is_not_over_gives_way_aloud_and_never_begins_anew(caplog):
    journal = MemoryJournal(max_open=2)
    for run in ("first", "second", "first", "third"):
        await begun(journal, run)
    assert [record.run_id for record in caplog.records] == ["second"]
    assert len(await journal.ledger("first")) == 1
    for goes_on in (journal.results("second"), begun(journal, "second"), journal.ledger("second")):
        with pytest.raises(StorageError, match="second"):
            await goes_on
    journal.forget("second")
    assert await journal.ledger("second") == []


async def test_what_a_foreign_error_said_survives_the_end_of_its_run():
    journal = MemoryJournal()
    await journal.ended(attempt(), "failed", NOON, "half a character: \ud800")
    await journal.closed("r")
    assert [entry.error for entry in await journal.ledger("r")] == ["half a character: \ud800"]
