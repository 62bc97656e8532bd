"""What goes wrong with storage is told as far as it is known, and not for longer than was asked."""

import asyncio
import shutil
import sqlite3
import time
from contextlib import closing

import psycopg
import pytest

from postgres import running_server
from replan import Host, Specialist, StorageError, Team, build_graph, open_storage, run
from replan.storage.databases import database
from replan.storage.databases.database import Retrier
from replan.storage.databases.faults import DAMAGED, fault_of, storage_error
from stored_tables import changing

PLAN = "".join(f"- [ ] {n}. Part {n} @worker (after {n - 1})\n" for n in range(2, 6))
PLAN = f"- [ ] 1. Part 1 @worker\n{PLAN}"


def graph_of(work, storage):
    team = [Specialist(name="worker", intended_use="Works.", run=work)]
    host = Host(model="offline")
    return build_graph(Team(host=host, specialists=team), storage=storage)


@pytest.mark.parametrize("how", ["removed", "replaced"])
async def test_a_file_that_goes_away_in_the_middle_ends_the_run_loudly(how, tmp_path):
    where = tmp_path / "runs.sqlite"
    done = []

    def work(context):
        done.append(context.plan_step.id)
        if context.plan_step.id == 2:
            for each in tmp_path.glob("runs.sqlite*"):
                if each.is_file():
                    each.unlink()
            if how == "replaced":
                sqlite3.connect(where).close()
                where.touch()
        return "done"

    async with open_storage(where) as storage:
        with pytest.raises(StorageError, match="removed or replaced") as caught:
            await run(graph_of(work, storage), {"plan": PLAN}, config=thread("t"), run_id="r")
        assert "no finished step is lost" not in str(caught.value)
        with pytest.raises(StorageError, match="removed or replaced"):
            await storage.runs.recent(1)
    assert done == [1, 2]


def thread(name):
    return {"configurable": {"thread_id": name}}


def test_of_damage_it_is_not_said_that_nothing_is_lost():
    told = str(storage_error("here", DAMAGED))
    assert "lost" not in told
    assert "left as it was" not in told
    unknown = sqlite3.OperationalError("odd")
    assert "lost" not in str(storage_error("here", fault_of(unknown)))


@pytest.mark.parametrize(
    ("error", "told", "is_transient"),
    [
        (psycopg.errors.AdminShutdown(), "cannot be reached", True),
        (psycopg.errors.CannotConnectNow(), "cannot be reached", True),
        (psycopg.errors.SerializationFailure(), "gave way to another write", True),
        (psycopg.errors.DiskFull(), "disk is full", True),
        (psycopg.errors.TooManyConnections(), "has no room for this", True),
        (psycopg.errors.ReadOnlySqlTransaction(), "cannot be written", False),
        (psycopg.errors.DataCorrupted(), "damaged", False),
    ],
)
def test_an_error_of_postgres_is_told_by_its_state_or_the_class_of_it(error, told, is_transient):
    fault = fault_of(error)
    assert told in fault.problem
    assert fault.is_transient is is_transient


def ended(value=None, error=None):
    future = asyncio.get_running_loop().create_future()
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)
    return future


async def test_a_database_that_was_waited_for_in_vain_is_not_waited_for_again(monkeypatch):
    retrier, tried = Retrier("here", 0.3), []

    def away():
        tried.append(1)
        return ended(error=psycopg.OperationalError("connection refused"))

    started = time.monotonic()
    counts = []
    for _ in range(20):
        tried.clear()
        with pytest.raises(StorageError, match="cannot be reached"):
            await retrier.run(away)
        counts.append(len(tried))
    assert counts[0] > 1
    assert max(counts[1:]) <= 1
    assert time.monotonic() - started < 3
    monkeypatch.setattr(database, "_STAYS_GONE", 0.0)
    with pytest.raises(StorageError):
        await retrier.run(away)
    assert await retrier.run(lambda: ended("done")) == "done"
    tried.clear()
    with pytest.raises(StorageError):
        await retrier.run(away)
    assert len(tried) > 1


async def test_what_is_no_fault_of_the_database_is_not_tried_again():
    retrier, tried = Retrier("here", 5.0), []

    def mistaken():
        tried.append(1)
        return ended(error=KeyError("a mistake"))

    with pytest.raises(KeyError):
        await retrier.run(mistaken)
    assert tried == [1]


async def test_a_file_that_another_process_keeps_locked_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr("replan.storage.databases.sqlite.BUSY", 0.02)
    path = tmp_path / "runs.sqlite"
    async with open_storage(path, patience=0.2) as storage:
        await storage.log.note("r", "k", 1)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageError, match=r"keeps it locked.*no finished step is lost"):
                await storage.log.note("r", "l", 1)
            # Who only reads does not wait.
            assert await storage.log.notes("r") == {"k": 1}
            other.execute("ROLLBACK")
        await storage.log.note("r", "m", 1)
        assert await storage.log.notes("r") == {"k": 1, "m": 1}


async def test_a_note_that_was_made_unreadable_is_a_storage_error(tmp_path):
    where = str(tmp_path / "runs.sqlite")
    async with open_storage(where) as storage:
        await storage.log.note("r", "key", "value")
        with changing(where) as connection:
            deep = b"[" * 200_000 + b"]" * 200_000
            assert connection.change("UPDATE replan_log SET value = ?", [deep]) == 1
        with pytest.raises(StorageError, match=r'record of replan_log at \["r", "key", "value"'):
            await storage.log.notes("r")
        with pytest.raises(StorageError, match=r'record of replan_log at \["r", "key", "value"'):
            await storage.log.note("r", "key", "another")


@pytest.mark.parametrize("name", ["token", "version", "release"])
async def test_facts_that_were_changed_are_told_as_damage(name, empty_database):
    async with open_storage(empty_database, key="a key"):
        pass
    with changing(empty_database) as connection:
        statement = "UPDATE replan_facts SET value = ? WHERE name = ?"
        assert connection.change(statement, [b"\xff", name]) == 1
    with pytest.raises(StorageError, match=r"damaged|another key"):
        async with open_storage(empty_database, key="a key"):
            pass


async def test_a_hot_journal_that_is_taken_back_is_not_called_left_as_it_was(tmp_path):
    """As a kill in the first commit leaves a file of another program."""
    made = sqlite3.connect(tmp_path / "made", isolation_level=None)
    made.execute("CREATE TABLE theirs (a)")
    made.execute("PRAGMA cache_size = 1")
    made.execute("BEGIN IMMEDIATE")
    for number in range(60):
        made.execute(f"CREATE TABLE t{number} (a)")
    for end in ("", "-journal"):
        shutil.copy(tmp_path / f"made{end}", tmp_path / f"runs.sqlite{end}")
    made.close()
    with pytest.raises(StorageError, match="another program") as caught:
        async with open_storage(tmp_path / "runs.sqlite"):
            pass
    assert "left as it was" not in str(caught.value)


async def test_a_server_that_goes_away_is_told_and_found_again():
    with running_server() as server:
        async with open_storage(server.dsn, patience=0.5) as storage:
            await storage.log.note("r", "k", 1)
            server.kill()
            with pytest.raises(StorageError, match=r"cannot be reached.*no finished step is lost"):
                await storage.log.note("r", "l", 1)
            with pytest.raises(StorageError, match="cannot be reached"):
                await storage.log.notes("r")
            server.start()
            async with open_storage(server.dsn) as again:
                assert await again.log.notes("r") == {"k": 1}
