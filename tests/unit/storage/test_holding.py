"""One run at a time works on a thread, whichever process it is in."""

import asyncio
import os
from collections import Counter
from datetime import UTC, datetime

import pytest
from filelock import FileLock

from replan import Host, Specialist, Team, build_graph, open_storage, run, stream
from replan.errors import ThreadBusyError
from replan.ports.run_book import RunRecord
from replan.storage import holds
from states import state_of

PLAN = {"plan": "- [ ] 1. First @worker\n- [ ] 2. Second @worker (after 1)\n"}


def thread(name):
    return {"configurable": {"thread_id": name}}


class Bench:
    """Steps that can be held up, and how often each was done."""

    def __init__(self):
        self.done, self.at_work, self.go_on = Counter(), asyncio.Event(), asyncio.Event()

    async def work(self, context):
        self.done[context.run_id, context.plan_step.id] += 1
        self.at_work.set()
        await self.go_on.wait()
        return "done"

    def graph(self, storage):
        team = [Specialist(name="worker", intended_use="Works.", run=self.work, effects="pure")]
        host = Host(model="offline")
        return build_graph(Team(host=host, specialists=team), storage=storage)


@pytest.fixture(autouse=True)
def no_moment(monkeypatch):
    """Nobody here was killed just now, so that nobody need wait for a hold to fall."""
    monkeypatch.setattr(holds, "MOMENT", 0.01)


@pytest.fixture
def bench():
    return Bench()


async def test_a_thread_that_is_worked_on_is_left_alone(lasting, bench):
    async with lasting() as here, lasting() as elsewhere:
        first = asyncio.ensure_future(
            state_of(run(bench.graph(here), PLAN, config=thread("a"), run_id="mine"))
        )
        await bench.at_work.wait()
        for storage in (here, elsewhere):
            for given in (PLAN, None, "Are you there?"):
                with pytest.raises(ThreadBusyError, match="works on the thread 'a'"):
                    await run(bench.graph(storage), given, config=thread("a"), run_id="mine")
            with pytest.raises(ThreadBusyError):
                await anext(stream(bench.graph(storage), PLAN, config=thread("a")))
        bench.go_on.set()
        other = (await run(bench.graph(elsewhere), PLAN, config=thread("b"), run_id="other")).state
        assert [(await first)["outcome"], other["outcome"]] == ["completed", "completed"]
        # It is free again, and the same input does nothing more.
        state = (await run(bench.graph(elsewhere), PLAN, config=thread("a"), run_id="mine")).state
    assert state["run_id"] == "mine"
    assert bench.done == dict.fromkeys([(name, n) for name in ("mine", "other") for n in (1, 2)], 1)


async def test_a_run_that_was_cancelled_lets_go(lasting, bench):
    async with lasting() as here, lasting() as elsewhere:
        first = asyncio.ensure_future(state_of(run(bench.graph(here), PLAN, config=thread("a"))))
        await bench.at_work.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        bench.go_on.set()
        assert (await run(bench.graph(elsewhere), None, config=thread("a"))).state["outcome"] == (
            "completed"
        )


async def test_threads_are_held_again_after_the_server_came_back(postgres_server, bench):
    where = postgres_server.dsn
    async with open_storage(where) as here, open_storage(where) as elsewhere:
        first = asyncio.ensure_future(state_of(run(bench.graph(here), PLAN, config=thread("a"))))
        await bench.at_work.wait()
        await asyncio.to_thread(postgres_server.kill)
        await asyncio.to_thread(postgres_server.start)
        # Whatever this storage does next, it takes what it held.
        async with here.checkpointer.lock("b"):
            with pytest.raises(ThreadBusyError):
                await run(bench.graph(elsewhere), None, config=thread("a"))
        bench.go_on.set()
        assert (await first)["outcome"] == "completed"


def test_who_opened_a_lock_file_that_went_away_opens_it_anew(tmp_path, monkeypatch):
    path = tmp_path / "thread.lock"
    really_open = os.open

    def open_and_lose(*args, **options):
        monkeypatch.undo()
        file = really_open(*args, **options)
        path.unlink()
        return file

    monkeypatch.setattr(os, "open", open_and_lose)
    with FileLock(path, timeout=10):
        assert path.exists()


def test_who_lets_go_leaves_the_lock_file_of_the_next_one_alone(tmp_path):
    path = tmp_path / "thread.lock"
    first, second = FileLock(path, timeout=10), FileLock(path, timeout=10)
    first.acquire()
    path.unlink()
    with second:
        first.release()

        assert path.exists()


async def test_a_run_at_work_is_not_removed_and_another_leaves_its_thread_usable(lasting, bench):
    now = datetime.now(UTC)
    record = RunRecord(run_id="r", thread_id="a", started_at=now, updated_at=now)
    async with lasting() as here, lasting() as elsewhere:
        await here.runs.begin(record)
        working = asyncio.ensure_future(
            state_of(run(bench.graph(here), PLAN, config=thread("a"), run_id="r"))
        )
        await bench.at_work.wait()
        for storage in (here, elsewhere):
            with pytest.raises(ThreadBusyError):
                await storage.runs.remove("r")
        bench.go_on.set()
        assert (await working)["outcome"] == "completed"
        assert len(await here.log.ledger("r")) == 2
        await elsewhere.runs.remove("r")
        assert (await here.runs.find("r"), await here.log.ledger("r")) == ([], [])
        again = (await run(bench.graph(here), PLAN, config=thread("a"), run_id="again")).state
    assert (again["outcome"], len(again["execution_history"])) == ("completed", 1)
