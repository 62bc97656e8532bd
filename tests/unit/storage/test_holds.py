"""Threads are held by one process, and what was held is looked after, in each kind of database."""

import asyncio
import shutil

import psycopg
import pytest

from replan.errors import StorageError, ThreadBusyError, ThreadLostError
from replan.storage import holds as holding
from savers import opened_saver

HELD = """SELECT pid FROM pg_locks WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""


@pytest.fixture(autouse=True)
def times(monkeypatch):
    """Holds are looked after when a test says so, and nobody waits for one to fall."""
    monkeypatch.setattr(holding, "BEAT", 600)
    monkeypatch.setattr(holding, "MOMENT", 0.01)


@pytest.fixture(params=["sqlite", "postgres"])
async def both(request, tmp_path):
    """The holds of two processes with one database."""
    is_postgres = request.param == "postgres"
    address = request.getfixturevalue("empty_database") if is_postgres else ""
    path = tmp_path / "runs.sqlite"
    async with (
        opened_saver(request.param, path, address) as here,
        opened_saver(request.param, path, address) as elsewhere,
    ):
        yield here.holds, elsewhere.holds


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def holds(request, tmp_path):
    is_postgres = request.param == "postgres"
    address = request.getfixturevalue("empty_database") if is_postgres else ""
    async with opened_saver(request.param, tmp_path / "runs.sqlite", address) as saver:
        yield saver.holds


async def cut_off(holds):
    """Let every hold fall, as a restart, a firewall or a cleaner does."""
    if not holds.database.is_postgres:
        shutil.rmtree(f"{holds.where}.held")
        return
    with psycopg.connect(holds.database.address, autocommit=True) as connection:
        for (session,) in connection.execute(HELD).fetchall():
            connection.execute("SELECT pg_terminate_backend(%s, 5000)", [session])


async def epochs(holds):
    return await holds.database.read(
        lambda connection: connection.query("SELECT thread_id, epoch FROM replan_threads")
    )


async def test_a_thread_is_held_once_and_free_again_afterwards(holds):
    numbers = []
    for _ in range(3):
        async with holds.lock("t") as owner:
            assert holds.owner_of("t") is owner
            assert await holds.is_held("t")
            assert not await holds.is_held("other")
            with pytest.raises(ThreadBusyError):
                async with holds.lock("t"):
                    pytest.fail("it is held twice")
            numbers.append(owner.epoch)
        assert holds.owner_of("t") is None
        assert not await holds.is_held("t")
    assert numbers == sorted(set(numbers))
    assert await epochs(holds) == [("t", numbers[-1])]


async def test_another_process_leaves_it_alone(both):
    here, elsewhere = both
    async with here.lock("t"), elsewhere.lock("other"):
        assert await elsewhere.is_held("t")
        assert elsewhere.owner_of("t") is None
        with pytest.raises(ThreadBusyError):
            async with elsewhere.lock("t"):
                pytest.fail("it is held twice")
    async with elsewhere.lock("t"):
        assert await here.is_held("t")


async def test_who_takes_a_thread_waits_a_moment_for_it(holds, monkeypatch):
    monkeypatch.setattr(holding, "MOMENT", 30)

    async def take():
        async with holds.lock("t"):
            pass

    async with holds.lock("t"):
        taking = asyncio.ensure_future(take())
        await asyncio.sleep(0)
    await taking


async def test_who_owns_a_thread_may_do_more_with_it(holds):
    async with holds.lock_or_own("t"):
        owner = holds.owner_of("t")
        async with holds.lock_or_own("t"):
            assert holds.owner_of("t") is owner
    assert holds.owner_of("t") is None


async def test_a_take_that_is_cancelled_leaves_no_hold(holds):
    for turns in range(6):
        entered = asyncio.Event()

        async def hold(entered=entered):
            async with holds.lock("t"):
                entered.set()
                await asyncio.Event().wait()

        taking = asyncio.ensure_future(hold())
        for _ in range(turns):
            await asyncio.sleep(0)
        taking.cancel()
        await asyncio.wait({taking})
        assert taking.cancelled()
        assert not await holds.is_held("t")


async def test_a_hold_that_fell_is_taken_again(both):
    here, elsewhere = both
    async with here.lock("t") as owner:
        await cut_off(here)
        await here._run_look()  # noqa: SLF001 - else only time does it
        assert not owner.is_lost
        with pytest.raises(ThreadBusyError):
            async with elsewhere.lock("t"):
                pytest.fail("it is held twice")


async def test_a_thread_that_cannot_be_held_keeps_no_other_from_being_looked_after(tmp_path):
    (tmp_path / "runs.sqlite.held").write_text("no folder")

    async def take(holds):
        async with holds.lock("t"):
            pytest.fail("it is held")

    async with opened_saver("sqlite", tmp_path / "runs.sqlite") as saver:
        taking = asyncio.ensure_future(take(saver.holds))
        # The take goes first, and fails while the look waits for its turn.
        for _ in range(3):
            await asyncio.sleep(0)
        look = saver.holds._run_look()  # noqa: SLF001 - else only time does it
        taken, looked_after = await asyncio.gather(taking, look, return_exceptions=True)
    assert isinstance(taken, StorageError)
    assert looked_after is None


async def test_whose_thread_was_taken_stops(both):
    here, elsewhere = both
    began = asyncio.Event()

    async def work(owner):
        with owner.at_work():
            began.set()
            await asyncio.Event().wait()

    async with here.lock("t") as owner, here.lock("other") as other:
        working = asyncio.ensure_future(work(owner))
        await began.wait()
        await cut_off(here)
        async with elsewhere.lock("t"):
            await here._run_look()  # noqa: SLF001 - else only time does it
            with pytest.raises(ThreadLostError):
                await working
            assert not other.is_lost
    assert not await elsewhere.is_held("t")


async def test_holds_are_looked_after_by_themselves(both, monkeypatch):
    monkeypatch.setattr(holding, "BEAT", 0.02)
    here, elsewhere = both
    async with here.lock("a") as one, here.lock("b") as two:
        await cut_off(here)
        async with asyncio.timeout(30):
            for thread_id in "ab":
                while not await elsewhere.is_held(thread_id):  # noqa: ASYNC110 - it is elsewhere
                    await asyncio.sleep(0.01)
        assert not any(owner.is_lost for owner in (one, two))


async def test_a_server_that_went_away_costs_no_hold(postgres_server, tmp_path):
    where = postgres_server.dsn
    async with opened_saver("postgres", tmp_path, where) as here, here.lock("t") as owner:
        await asyncio.to_thread(postgres_server.kill)
        await here.holds._run_look()  # noqa: SLF001 - else only time does it
        assert not owner.is_lost
        await asyncio.to_thread(postgres_server.start)
        # Whatever is done next, what was held is taken again.
        async with here.lock("other"), opened_saver("postgres", tmp_path, where) as elsewhere:
            assert await elsewhere.holds.is_held("t")
