"""One look at the queue answers all who follow runs in it."""

import asyncio

import pytest

from replan.errors import StorageError
from replan.workers.queue import JobStatuses


async def test_a_thousand_runs_that_are_followed_cost_a_few_looks_and_an_end_is_never_missed(
    monkeypatch,
):
    # Long enough for any machine: who looks once, or for what is new, has the newest all the same.
    monkeypatch.setattr("replan.workers.queue._FRESH", 60)
    jobs, looks = {f"run:{number}": "waits" for number in range(1000)}, []

    async def look(locks):
        looks.append(len(locks))
        await asyncio.sleep(0)
        return {lock: jobs[lock] for lock in locks if lock in jobs}

    statuses = JobStatuses(look)

    async def all_follow():
        return set(
            await asyncio.gather(*(statuses.status(each, is_followed=True) for each in stands))
        )

    stands = list(jobs)
    assert await all_follow() == {"waits"}
    assert sum(looks) <= 1001
    for _ in range(20):
        assert await all_follow() == {"waits"}
    assert len(looks) < 4
    # Who looks once has the newest; so has who follows what was not there a moment ago.
    jobs["run:1"] = "at work"
    assert await statuses.status("run:1") == "at work"
    del jobs["run:1"]
    assert await statuses.status("run:1") is None
    jobs["run:1"] = "waits"
    assert await statuses.status("run:1", is_followed=True) == "waits"


async def test_all_who_wait_for_a_look_in_vain_are_told_at_once():
    looks = []

    async def look(_):
        looks.append(1)
        await asyncio.sleep(0)
        raise StorageError("db", "It is away.", "Start it.")

    statuses = JobStatuses(look)
    told = await asyncio.gather(
        *(statuses.status(f"{n}") for n in range(50)), return_exceptions=True
    )
    assert {type(each) for each in told} == {StorageError}
    assert looks == [1]
    with pytest.raises(StorageError):
        await statuses.status("0")
    assert looks == [1, 1]
