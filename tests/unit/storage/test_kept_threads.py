"""What every repository of threads must do: in memory, in SQLite and in PostgreSQL."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from replan import StorageError
from replan.errors import StaleThreadError
from replan.state.pipeline.thread_rows import rows_of
from replan.state.pipeline.threads import Thread, ThreadMessage
from replan.storage.databases.database import Database
from unit.storage.conftest import _opener

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def message(name: str, **meta: Any) -> ThreadMessage:
    return ThreadMessage(id=name, sender="bot", text=f"grün {name}", timestamp=NOON, meta=meta)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "encrypted sqlite", "postgres"])
async def test_a_repository_keeps_what_it_was_given(kind, request):
    async with _opener(kind, request)() as storage:
        threads = storage.threads
        main = Thread("r/1.0/writer", [message("a")], {"brief_status": {"phase": "p"}}, run_id="r")
        assert await threads.get_thread(main.id) is None
        await threads.save_thread(main)
        sub = Thread("sub", [message("b", k=[1, {"x": None}])])
        main.add(message("c", _thread=sub))
        await threads.save_thread(main)
        await threads.update_message(main, "b", {"text": "changed", "meta": {"n": 2}})
        await threads.update_thread_settings(main, {"brief_status": {"phase": "q"}})
        read = await threads.get_thread(main.id)
        assert read is not None
        assert (rows_of(read), read.revision, read.run_id) == (rows_of(main), 4, "r")
        assert await threads.get_thread_settings(main.id) == {"brief_status": {"phase": "q"}}


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_a_repository_writes_changes_of_the_newest_copy_only(kind, request):
    async with _opener(kind, request)() as storage:
        threads = storage.threads
        main = Thread("r/1.0/writer", [message("a")], run_id="r")
        main.add(message("c", _thread=Thread("sub", [message("b")])))
        await threads.save_thread(main)
        read = await threads.get_thread(main.id)
        # A retry puts another sub-thread in the place of one, and a message goes.
        await threads.update_message(read, "c", {"meta": {"_thread": Thread("new")}})
        read.messages[1].meta["_thread"].set_status(phase="completed")
        read.remove("a")
        await threads.save_thread(read)
        again = await threads.get_thread(main.id)
        assert again is not None
        assert rows_of(again) == rows_of(read)
        # Who has an old copy is refused, and nothing of it is written.
        main.add(message("late"))
        with pytest.raises(StaleThreadError):
            await threads.save_thread(main)
        both = [await threads.get_thread(read.id) for _ in range(2)]
        for one in both:
            one.add(message("mine"))
        done = await asyncio.gather(*map(threads.save_thread, both), return_exceptions=True)
        assert sorted(type(each).__name__ for each in done) == ["NoneType", "StaleThreadError"]
        # What travels is taken once, and goes with its run.
        rows = await threads.rows("r")
        await threads.forget("r")
        assert await threads.rows("r") == {}
        for _ in range(2):
            await threads.adopt("r", rows)
        assert await threads.rows("r") == rows
        adopted = await threads.get_thread(main.id)
        adopted.add(message("z"))
        await threads.save_thread(adopted)
        await storage.runs.remove("r")
        assert await threads.get_thread(main.id) is None


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_save_that_is_cancelled_is_whole_or_nothing(kind, request):
    async with _opener(kind, request)() as storage:
        for turns in range(6):
            thread = Thread(f"t{turns}", [message("a"), message("b")])
            saving = asyncio.ensure_future(storage.threads.save_thread(thread))
            for _ in range(turns):
                await asyncio.sleep(0)
            saving.cancel()
            await asyncio.wait({saving})
            kept = await storage.threads.get_thread(thread.id)
            assert kept is None or rows_of(kept) == rows_of(thread), turns
            assert kept is not None or turns < 5
            # Whoever was cancelled may go on with the thread.
            thread.add(message("c"))
            await storage.threads.save_thread(thread)
            kept = await storage.threads.get_thread(thread.id)
            assert rows_of(kept) == rows_of(thread), turns
    with pytest.raises(StorageError, match="It is closed"):
        await storage.threads.save_thread(Thread("late"))


@pytest.mark.parametrize(("kind", "levels"), [("sqlite", (2, 1)), ("postgres", ("on", "off"))])
async def test_only_what_must_outlast_the_power_waits_for_the_disk(kind, levels, request):
    """What does not is safe from the end of the process, and seen by others at once."""
    shown = {"sqlite": "PRAGMA synchronous", "postgres": "SHOW synchronous_commit"}
    opened, found, written = _opener(kind, request), [], Database.write

    async def write(self, work, **named):
        def looked(connection):
            found.append(connection.query(shown[kind])[0][0])
            return work(connection)

        return await written(self, looked, **named)

    request.getfixturevalue("monkeypatch").setattr(Database, "write", write)
    async with opened() as storage, opened() as other:
        thread = Thread("t", [message("a")])
        await storage.threads.save_thread(thread)
        thread.set_status(phase="p")
        await storage.threads.save_thread(thread, lasting=False)
        seen = await other.threads.get_thread("t")
        thread.add(message("b"))
        await storage.threads.save_thread(thread)
    lasting, passing = levels
    assert (found[-3:], seen.phase) == ([lasting, passing, lasting], "p")
