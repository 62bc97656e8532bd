"""The journal in memory: what it counts, what it gives back, and what it forgets."""

import asyncio
from datetime import UTC, datetime

from replan import SpecialistResult
from replan.adapters.journal import MemoryJournal
from replan.ports.journal import Attempt, Bound, Reservation, Spending

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def attempt(run="r", key="k", number=1):
    return Attempt(run_id=run, step_id=1, specialist="a", number=number, key=key, started_at=NOON)


def reserve(journal, number=0, *, run="r", limit):
    reservation = Reservation(id=f"{run}{number}{limit}", run_id=run, amount=Spending(calls=1))
    return journal.reserve(reservation, [Bound(scope="run", calls=limit)])


async def test_of_many_reservations_at_once_exactly_as_many_pass_as_the_limit_says():
    journal = MemoryJournal()
    refused = await asyncio.gather(*(reserve(journal, n, limit=7) for n in range(200)))
    assert refused.count(None) == 7
    # What was refused was not counted.
    assert await reserve(journal, limit=8) is None
    assert await reserve(journal, run="another", limit=1) is None


async def test_a_try_that_only_started_has_no_result():
    journal = MemoryJournal()
    await journal.started(attempt())
    assert await journal.results("r") == {}


async def test_a_result_stands_under_its_key_and_the_first_one_counts():
    journal = MemoryJournal()
    await journal.finished(attempt(number=1), SpecialistResult(error="first"), NOON)
    await journal.finished(attempt(number=2), SpecialistResult(error="second"), NOON)
    await journal.finished(attempt(key="other"), SpecialistResult(), NOON)
    results = await journal.results("r")
    assert {key: result.error for key, result in results.items()} == {"k": "first", "other": ""}


async def test_what_is_given_back_is_a_copy():
    journal = MemoryJournal()
    await journal.finished(attempt(), SpecialistResult(), NOON)
    (await journal.results("r")).clear()
    assert set(await journal.results("r")) == {"k"}


async def test_the_run_that_was_used_longest_ago_is_forgotten_first():
    journal = MemoryJournal(max_runs=2)
    for run in ("old", "new", "old", "newest"):
        await journal.finished(attempt(run), SpecialistResult(), NOON)
    assert [bool(await journal.results(run)) for run in ("old", "new", "newest")] == [
        True,
        False,
        True,
    ]


async def test_asking_for_a_run_that_is_not_known_makes_none():
    journal = MemoryJournal(max_runs=1)
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
