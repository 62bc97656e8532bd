"""A write that is cancelled goes to its end, and leaves no transaction and no task behind."""

import asyncio
import random
import sqlite3
from contextlib import closing

import psycopg
import pytest

from replan import StorageError, open_storage
from replan.log.amounts import Bound, Reservation, Spending
from replan.log.uninterrupted import uninterrupted


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("postgres_database")
    return str(tmp_path / "runs.sqlite")


def is_free(where):
    """Whether nobody holds a transaction, as another process sees it."""
    if where.startswith("postgresql"):
        with psycopg.connect(where) as other:
            found = other.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND state LIKE 'idle in transaction%'"
            )
            return found.fetchone() == (0,)
    with closing(sqlite3.connect(where, timeout=0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
        return True


async def ticks(number):
    for _ in range(number):
        await asyncio.sleep(0)


def tasks():
    """The tasks that are neither the pool's of the driver nor a look at the holds."""
    return {
        task
        for task in asyncio.all_tasks()
        if not task.get_name().startswith("pool-")
        and getattr(task.get_coro(), "__name__", "") != "_run_look"
    }


async def test_single_writes_are_cancelled_at_random_moments(where):
    draw = random.Random(11)  # noqa: S311 - no secret
    async with open_storage(where) as storage:
        log, others = storage.log, tasks()

        async def one(number):
            call = Reservation(id=str(number), run_id="r", amount=Spending(calls=1))
            await log.note("r", str(number), number)
            await log.reserve(call, [Bound(scope="run"), Bound(scope="step/1")])
            await log.settle(call, Spending(calls=1, tokens=1))

        cancelled = 0
        for batch in range(15):
            running = [asyncio.ensure_future(one(batch * 10 + each)) for each in range(10)]
            for place, each in enumerate(running):
                # The moment of the cancellation, not a wait for something. The first has only begun
                # then, however fast the machine is.
                await asyncio.sleep(draw.random() * 0.02 if place else 0)
                each.cancel()
            ends = await asyncio.gather(*running, return_exceptions=True)
            cancelled += sum(isinstance(end, asyncio.CancelledError) for end in ends)
            assert tasks() == others
            assert is_free(where)
        assert cancelled > 10
        # Every scope was charged with all of a reservation or with none of it.
        spent = await log.spent("r")
        assert spent["run"] == spent["step/1"]
        assert spent["run"].calls > 10
        notes = await log.notes("r")
        assert all(notes[key] == int(key) for key in notes)


async def test_a_cancellation_comes_after_the_end_of_the_work():
    steps, may_end = [], asyncio.Event()

    async def work():
        steps.append("begun")
        await may_end.wait()
        steps.append("ended")

    running = asyncio.ensure_future(uninterrupted(work()))
    await ticks(3)
    running.cancel()
    await ticks(3)
    running.cancel()
    await ticks(3)
    assert not running.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert steps == ["begun", "ended"]


async def test_work_that_fails_after_a_cancellation_is_a_cancellation():
    may_end = asyncio.Event()

    async def work():
        await may_end.wait()
        raise ValueError("nobody hears this")

    running = asyncio.ensure_future(uninterrupted(work()))
    await ticks(3)
    running.cancel()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_work_that_is_itself_cancelled_says_so():
    async def work():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await uninterrupted(work())


async def test_closed_storage_says_so(where):
    async with open_storage(where) as storage:
        pass
    with pytest.raises(StorageError, match="It is closed"):
        await storage.log.notes("r")
    with pytest.raises(StorageError, match="It is closed"):
        await storage.checkpointer.aget_tuple({"configurable": {"thread_id": "t"}})


async def test_closing_waits_for_what_is_being_written(where):
    async with open_storage(where) as storage:
        writing = [asyncio.ensure_future(storage.log.note("r", str(n), n)) for n in range(9)]
        await ticks(2)
    await asyncio.gather(*writing)
    async with open_storage(where) as storage:
        assert len(await storage.log.notes("r")) == 9
