"""Writes to a SQLite file are committed in groups: each stands or falls for itself."""

import asyncio
import sqlite3
import threading
from contextlib import asynccontextmanager, closing

import pytest

from databases import opened_database
from replan import StorageError

PUT = "INSERT INTO replan_facts (name, value) VALUES (?, ?)"


@asynccontextmanager
async def grouped(path):
    """A database, and what lets work be handed to it that is then written in one group."""
    async with opened_database("sqlite", path) as database:

        @asynccontextmanager
        async def one_group():
            began, goes_on = threading.Event(), threading.Event()

            def waits(_):
                began.set()
                goes_on.wait(10)

            first = asyncio.ensure_future(database.write(waits))
            await asyncio.to_thread(began.wait, 10)
            yield
            # What was handed over in the block is in the queue after the next turn of the loop.
            await asyncio.sleep(0)
            goes_on.set()
            await first

        yield database, one_group


def put(name, value=b"x"):
    return lambda connection: connection.change(PUT, [name, value])


def names_in(path):
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM replan_facts")}


async def test_a_write_that_is_refused_fails_alone(tmp_path):
    path = tmp_path / "runs.sqlite"
    seen = []

    def refused(connection):
        connection.change(PUT, ["half", b"x"])
        connection.change(PUT, ["salt", b"a second one"])

    def wrong(connection):
        connection.change(PUT, ["of wrong", b"x"])
        raise KeyError("a mistake of its own")

    def looks(connection):
        # In the same transaction as the first, which nobody else sees yet.
        seen.append(connection.query("SELECT count(*) FROM replan_facts WHERE name = 'a'"))
        seen.append("a" in names_in(path))

    async with grouped(path) as (database, one_group):
        async with one_group():
            writes = [
                asyncio.ensure_future(database.write(work))
                for work in (put("a"), refused, looks, wrong, put("b"))
            ]
        ends = await asyncio.gather(*writes, return_exceptions=True)
    assert seen == [[(1,)], False]
    assert [type(end) for end in ends] == [int, StorageError, type(None), KeyError, int]
    assert names_in(path) >= {"a", "b"}
    assert not names_in(path) & {"half", "of wrong"}


async def test_a_commit_that_fails_is_told_to_all_who_wait_for_it(tmp_path):
    path = tmp_path / "runs.sqlite"

    def promise(connection):
        # The database looks for the parent when the transaction is committed.
        connection.change("COMMIT")
        connection.change("PRAGMA foreign_keys = ON")
        connection.change("BEGIN IMMEDIATE")
        connection.change(
            "CREATE TABLE children (parent TEXT REFERENCES replan_facts (name)"
            " DEFERRABLE INITIALLY DEFERRED)"
        )
        connection.change("SAVEPOINT one")

    def orphan(connection):
        connection.change("INSERT INTO children VALUES ('nobody')")

    async with grouped(path) as (database, one_group):
        await database.write(promise)
        async with one_group():
            writes = [
                asyncio.ensure_future(database.write(work)) for work in (put("a"), orphan, put("b"))
            ]
        ends = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(end) for end in ends] == [StorageError] * 3
        assert all("FOREIGN KEY" in str(end) for end in ends)
        assert not names_in(path) & {"a", "b"}
        # The next group is another matter.
        await database.write(put("c"))
    assert "c" in names_in(path)


async def test_an_error_that_ends_the_transaction_is_told_to_all_who_wait_for_it(tmp_path):
    """As SQLite ends it when a disk is full."""
    path = tmp_path / "runs.sqlite"

    def ends(connection):
        connection.change(PUT.replace("INSERT", "INSERT OR ROLLBACK"), ["salt", b"a second one"])

    async with grouped(path) as (database, one_group):
        async with one_group():
            writes = [
                asyncio.ensure_future(database.write(work)) for work in (put("a"), ends, put("b"))
            ]
        results = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(each) for each in results] == [StorageError] * 3
        assert not names_in(path) & {"a", "b"}
        await database.write(put("c"))
    assert "c" in names_in(path)


async def test_a_thread_that_waits_is_in_a_group_too(tmp_path):
    path = tmp_path / "runs.sqlite"
    async with grouped(path) as (database, one_group):
        async with one_group():
            here = [
                asyncio.ensure_future(asyncio.to_thread(asyncio.run, database.write(put(name))))
                for name in ("a", "salt")
            ]
        ends = await asyncio.gather(*here, return_exceptions=True)
    assert [type(end) for end in ends] == [int, StorageError]
    assert "a" in names_in(path)


async def test_who_is_cancelled_leaves_the_others_of_the_group_as_they_are(tmp_path):
    path = tmp_path / "runs.sqlite"
    async with grouped(path) as (database, one_group):
        async with one_group():
            first, cancelled = (
                asyncio.ensure_future(database.write(put(name))) for name in ("a", "b")
            )
            await asyncio.sleep(0)
            cancelled.cancel()
        assert await first == 1
        await asyncio.wait([cancelled])
    # What was begun is whole.
    assert names_in(path) >= {"a", "b"}


@pytest.mark.parametrize("count", [1, 99, 350])
async def test_everything_is_written_before_it_is_closed(count, tmp_path):
    path = tmp_path / "runs.sqlite"
    async with grouped(path) as (database, _):
        writes = [asyncio.ensure_future(database.write(put(str(each)))) for each in range(count)]
        await asyncio.sleep(0)
    assert names_in(path) >= {str(each) for each in range(count)}
    await asyncio.gather(*writes)
