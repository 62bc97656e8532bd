"""The journal in memory: what it counts, what it gives back, and what it forgets."""

import asyncio
from datetime import UTC, datetime

from replan import SpecialistResult
from replan.adapters.journal import MemoryJournal
from replan.ports.journal import Attempt

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def attempt(run="r", key="k", number=1):
    return Attempt(run_id=run, step_id=1, specialist="a", number=number, key=key, started_at=NOON)


async def test_of_many_reservations_at_once_exactly_as_many_pass_as_the_limit_says():
    journal = MemoryJournal()
    passed = await asyncio.gather(*(journal.reserve("r", limit=7) for _ in range(200)))
    assert passed.count(True) == 7
    # What was refused was not counted.
    assert await journal.reserve("r", limit=8)
    assert await journal.reserve("another", limit=1)


async def test_a_try_that_only_started_has_no_result():
    journal = MemoryJournal()
    await journal.started(attempt())
    assert await journal.results("r") == {}


async def test_a_result_stands_under_its_key_and_the_later_one_counts():
    journal = MemoryJournal()
    await journal.finished(attempt(number=1), SpecialistResult(error="first"))
    await journal.finished(attempt(number=2), SpecialistResult(error="second"))
    await journal.finished(attempt(key="other"), SpecialistResult())
    results = await journal.results("r")
    assert {key: result.error for key, result in results.items()} == {"k": "second", "other": ""}


async def test_what_is_given_back_is_a_copy():
    journal = MemoryJournal()
    await journal.finished(attempt(), SpecialistResult())
    (await journal.results("r")).clear()
    assert set(await journal.results("r")) == {"k"}


async def test_the_run_that_was_used_longest_ago_is_forgotten_first():
    journal = MemoryJournal(max_runs=2)
    for run in ("old", "new", "old", "newest"):
        await journal.finished(attempt(run), SpecialistResult())
    assert [bool(await journal.results(run)) for run in ("old", "new", "newest")] == [
        True,
        False,
        True,
    ]


async def test_asking_for_a_run_that_is_not_known_makes_none():
    journal = MemoryJournal(max_runs=1)
    await journal.finished(attempt(), SpecialistResult())
    assert await journal.results("stranger") == {}
    assert set(await journal.results("r")) == {"k"}
