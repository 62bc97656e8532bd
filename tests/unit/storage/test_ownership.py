"""Every take of a thread has a number, and what an earlier owner writes is refused."""

import asyncio
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import empty_checkpoint

from replan.errors import ThreadBusyError, ThreadLostError
from replan.log.amounts import Bound, Reservation, Spending
from replan.log.rows import Attempt, KeptText
from replan.ports.run_book import RunRecord
from replan.state.pipeline.threads import Thread
from replan.state.results import ExecutionStatus, SpecialistResult
from stored_tables import changing

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
RESULT = SpecialistResult(specialist_name="a", step_id=1)


def attempt(number=1, at=NOON, key="k"):
    return Attempt(run_id="r", step_id=1, specialist="a", number=number, key=key, started_at=at)


def place(thread="t", checkpoint=None):
    names = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": names | ({"checkpoint_id": checkpoint} if checkpoint else {})}


def log_writes(log):
    """Every write of a log, by its name."""
    reservation = Reservation(id="1", run_id="r", amount=Spending(calls=1))
    return {
        "reserve": lambda: log.reserve(reservation, [Bound(scope="run")]),
        "settle": lambda: log.settle(reservation, Spending(calls=1)),
        "started": lambda: log.started(attempt()),
        "ended": lambda: log.ended(attempt(), "failed", NOON),
        "finished": lambda: log.finished(attempt(), RESULT, NOON),
        "note": lambda: log.note("r", "answer/1", "yes"),
        "strike": lambda: log.strike("r", "answer/"),
        "add_events": lambda: log.add_events("r", ["begun"], [KeptText("ref", "text", NOON)]),
    }


async def put(saver, thread="t"):
    checkpoint = empty_checkpoint()
    return await saver.aput(place(thread), checkpoint, {"source": "loop", "step": 0}, {})


async def kept(log):
    return (
        await log.ledger("r"),
        await log.results("r"),
        await log.notes("r"),
        await log.spent("r"),
    )


async def test_a_log_that_is_begun_again_goes_with_its_thread_again(lasting):
    """Also of a run that is in no list of runs, as LangGraph alone begins one."""
    async with lasting() as storage:
        for _ in range(2):
            async with storage.holds.lock("t") as owner:
                with owner.at_work():
                    await storage.log.note("r", "answer/1", "yes")
            await storage.checkpointer.adelete_thread("t")
            assert await storage.log.rows("r") == []


async def test_an_owner_has_the_results_of_a_run_that_others_began_again(lasting):
    async with lasting() as here, lasting() as elsewhere:
        for storage, text in ((here, "first"), (elsewhere, "second")):
            async with storage.holds.lock("t") as owner:
                with owner.at_work():
                    result = RESULT.model_copy(update={"result": AIMessage(text)})
                    finished = await storage.log.finished(attempt(), result, NOON)
                    read = await storage.log.results_at("r", [finished.log_key])
            assert [each.text for each in read.values()] == [text]
            if storage is here:
                await elsewhere.checkpointer.adelete_thread("t")
        async with here.holds.lock("t") as owner:
            for context in (nullcontext(), owner.at_work()):
                with context:
                    read = await here.log.results_at("r", [finished.log_key])
                assert [each.text for each in read.values()] == ["second"]


async def test_what_a_stale_owner_remembers_is_refused(lasting):
    async with lasting() as storage:
        store = storage.store
        async with storage.checkpointer.lock("t") as owner:
            with owner.at_work():
                await store.aput(("facts",), "k", {"text": "kept"})
                await asyncio.to_thread(store.put, ("facts",), "l", {"text": "kept"})
            with changing(lasting.where) as connection:
                connection.change("UPDATE replan_threads SET epoch = epoch + 1")
            with owner.at_work():
                for key in ("k", "l"):
                    with pytest.raises(ThreadLostError):
                        await store.aput(("facts",), key, {"text": "lost"})
                    with pytest.raises(ThreadLostError):
                        await asyncio.to_thread(store.delete, ("facts",), key)
                found = await store.asearch(("facts",))
        assert [each.value["text"] for each in found] == ["kept", "kept"]
        # Who is at work on no thread owns what is of none.
        await store.aput(("facts",), "k", {"text": "new"})


async def test_what_a_stale_owner_writes_is_refused(lasting):
    async with lasting() as storage:
        saver, log = storage.checkpointer, storage.log
        writes = log_writes(log)
        async with saver.lock("t") as owner, saver.lock("other"):
            with owner.at_work():
                at = await put(saver)
                await saver.aput_writes(at, [("messages", "now")], "task")
            before = await kept(log), await saver.aget_tuple(place())
            with changing(lasting.where) as connection:
                connection.change("UPDATE replan_threads SET epoch = epoch + 1")
            with owner.at_work():
                for write in writes.values():
                    with pytest.raises(ThreadLostError, match="another run has taken the thread"):
                        await write()
            # Whatever task it is in: LangGraph writes in the background.
            with pytest.raises(ThreadLostError):
                await put(saver)
            with pytest.raises(ThreadLostError):
                await saver.aput_writes(at, [("messages", "later")], "another task")
            assert (await kept(log), await saver.aget_tuple(place())) == before
        # Nobody of this storage holds it now.
        for write in writes.values():
            await write()
        await put(saver)


async def test_what_a_stale_owner_s_pipeline_says_is_refused(lasting):
    async with lasting() as storage:
        said = Thread("r/1.0/a", run_id="r")
        async with storage.checkpointer.lock("t") as owner:
            with owner.at_work():
                await storage.threads.save_thread(said)
            with changing(lasting.where) as connection:
                connection.change("UPDATE replan_threads SET epoch = epoch + 1")
            said.set_status(phase="late")
            for is_lasting in (True, False):
                with owner.at_work(), pytest.raises(ThreadLostError):
                    await storage.threads.save_thread(said, lasting=is_lasting)
        assert (await storage.threads.get_thread(said.id)).phase == ""
        # What was refused is still to be written.
        await storage.threads.save_thread(said)
        assert (await storage.threads.get_thread(said.id)).phase == "late"


async def test_a_run_that_is_at_work_is_not_removed(opened, monkeypatch):
    monkeypatch.setattr("replan.storage.holds.MOMENT", 0.01)
    record = RunRecord(run_id="r", thread_id="t", started_at=NOON, updated_at=NOON)
    async with opened() as storage:
        await storage.runs.begin(record)
        await storage.log.note("r", "answer/1", "yes")
        async with storage.checkpointer.lock("t"):
            for removal in (storage.runs.remove("r"), storage.checkpointer.adelete_thread("t")):
                with pytest.raises(ThreadBusyError):
                    await removal
            assert await storage.log.notes("r")
        await storage.runs.remove("r")
        assert await storage.runs.get("r") is None
        assert not await storage.log.notes("r")


async def test_a_start_takes_the_result_that_is_on_record(storage):
    log = storage.log
    assert await log.started(attempt(), "what it answers for") is None
    await log.finished(attempt(), RESULT, NOON, "what it answers for")
    assert await log.started(attempt(2, key="of other settings"), "what it answers for") == (RESULT)
    failure = RESULT.replace(status=ExecutionStatus.FAILED, error="no", confidence=0.0)
    await log.started(attempt(key="failed"))
    await log.finished(attempt(key="failed"), failure, NOON)
    assert await log.started(attempt(2, key="failed"), "nothing") == failure
    assert [(each.key, each.number) for each in await log.ledger("r")] == [
        ("k", 1),
        ("failed", 1),
    ]


async def at_work_for_ever(owner):
    """Begin work as the owner of a thread, and give its task once it is at work."""
    began = asyncio.Event()

    async def work():
        with owner.at_work():
            began.set()
            await asyncio.Event().wait()

    working = asyncio.ensure_future(work())
    await began.wait()
    return working


async def test_who_is_cancelled_by_others_too_hears_of_that(storage):
    async with storage.checkpointer.lock("t") as owner:
        working = await at_work_for_ever(owner)
        working.cancel()
        owner.lose()
        with pytest.raises(asyncio.CancelledError):
            await working
