"""One run at a time owns a thread, also where its hold falls, and however the graph is called."""

import asyncio
import shutil
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import id as langgraphs_ids
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from replan import (
    Host,
    InputError,
    Limits,
    Specialist,
    SpecialistResult,
    Team,
    build_graph,
    open_runtime,
    open_storage,
    run,
    run_sync,
    stream,
    waiting_for,
)
from replan.errors import ThreadBusyError, ThreadLostError
from replan.events import RunStarted
from replan.log.run_log import RunLog
from replan.ports import ownership
from replan.storage import holds as holding
from replan.storage.holds import FileHolds
from replan.storage.memory_log import MemoryLogs
from replan.testing import ScriptedModel, always
from scripts import THREAD
from states import state_of

DONE = "---\nverdict: complete\n---\nAll is paid."
BILLS = {"plan": "".join(f"- [ ] {number}. Pay bill {number} @clerk\n" for number in range(1, 5))}
HELD = """SELECT pid FROM pg_locks WHERE locktype = 'advisory'
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
"""Other tests have their own databases on the same server."""


class Bank:
    """Who pays bills one by one, and may be held up before one of them."""

    def __init__(self, storage, *, before=0, clock=None):
        self.storage, self.paid = storage, []
        self._before, self.at_work, self.go_on = before, asyncio.Event(), asyncio.Event()
        model = ScriptedModel({"feedback": always(DONE)})
        clerk = Specialist(name="clerk", intended_use="Pays.", run=self._pay, effects="unsafe")
        limits = Limits(max_parallel_steps=1)
        config = Team(host=Host(model=model), specialists=[clerk], limits=limits)
        self.graph = build_graph(config, storage=storage, clock=clock)

    async def _pay(self, context):
        if context.plan_step.id == self._before:
            self.at_work.set()
            await self.go_on.wait()
        self.paid.append(context.plan_step.id)
        return "paid"

    def begin(self):
        """Begin to pay, in the background."""
        return asyncio.ensure_future(state_of(run(self.graph, BILLS, config=THREAD, run_id="r")))


@pytest.fixture(autouse=True)
def times(monkeypatch):
    """Holds are looked after when a test says so, and nobody waits for one to fall."""
    monkeypatch.setattr(holding, "BEAT", 600)
    monkeypatch.setattr(holding, "MOMENT", 0.01)


@asynccontextmanager
async def banks(where, *, before):
    """The owner of the thread, held up before a bill, and one of another process."""
    async with open_storage(where) as here, open_storage(where) as elsewhere:
        yield Bank(here, before=before), Bank(elsewhere)


def cut_off(where):
    """Let the hold of every thread fall, as a restart, a firewall or a cleaner does."""
    if not where.startswith("postgresql"):
        shutil.rmtree(f"{where}.held")
        return
    with psycopg.connect(where, autocommit=True) as connection:
        for (session,) in connection.execute(HELD).fetchall():
            connection.execute("SELECT pg_terminate_backend(%s, 5000)", [session])


async def ledger_of(storage):
    return [(each.step_id, each.number, each.outcome) for each in await storage.log.ledger("r")]


@pytest.mark.parametrize("wakes", [True, False])
async def test_an_owner_whose_thread_was_taken_stops_and_pays_nothing_twice(where, wakes):
    async with banks(where, before=2) as (owner, other):
        first = owner.begin()
        await owner.at_work.wait()
        cut_off(where)
        state = (await run(other.graph, None, config=THREAD)).state
        # Nobody but the first knows whether bill 2 was paid.
        (question,) = waiting_for(state)
        assert (question.kind, other.paid) == ("unknown_outcome", [3, 4])
        if wakes:
            # It finds out when it writes.
            owner.go_on.set()
        else:
            await look_after(owner)
        with pytest.raises(ThreadLostError, match="another run has taken the thread"):
            await first
        assert owner.paid == ([1, 2] if wakes else [1])
        answer = "it is done: by the first" if wakes else "run again"
        resumed = Command(resume={question.key: answer})
        state = (await run(other.graph, resumed, config=THREAD)).state
        assert state["outcome"] == "completed"
        assert sorted(owner.paid + other.paid) == [1, 2, 3, 4]
        ledger = await ledger_of(other.storage)
        assert [each for each in ledger if each[0] != 2] == [
            (1, 1, "done"),
            (3, 1, "done"),
            (4, 1, "done"),
        ]
        assert (await owner.graph.aget_state(THREAD)).values["outcome"] == "completed"


async def test_an_owner_whose_thread_was_taken_adds_no_event_and_no_outcome(where):
    async with (
        banks(where, before=2) as (owner, other),
        open_runtime(owner.graph, storage=owner.storage) as here,
        open_runtime(other.graph, storage=other.storage) as elsewhere,
    ):
        run = await here.start(BILLS, run_id="r")
        async for event in run.events():
            if (event.type, getattr(event, "step_id", None)) == ("specialist_invoked", 2):
                break
        await owner.at_work.wait()
        cut_off(where)
        assert (await elsewhere.resume("r")).outcome == "waiting"
        told = await elsewhere.storage.log.events("r")
        work = here._runs_at_work.begun_run("r")  # noqa: SLF001 - whatever the run does would be refused before
        work.log.take(RunStarted(run_id="r", request="late"))
        with pytest.raises(ThreadLostError, match="another run has taken the thread"):
            await run
        assert await elsewhere.storage.log.events("r") == told
        assert (await elsewhere.get("r")).outcome == "waiting"


async def test_an_owner_whose_thread_nobody_took_goes_on_and_holds_it_again(where):
    async with banks(where, before=2) as (owner, other):
        first = owner.begin()
        await owner.at_work.wait()
        cut_off(where)
        await look_after(owner)
        with pytest.raises(ThreadBusyError):
            await run(other.graph, None, config=THREAD)
        owner.go_on.set()
        assert (await first)["outcome"] == "completed"
        assert owner.paid == [1, 2, 3, 4]
        # It let go.
        assert (await run(other.graph, None, config=THREAD)).state["outcome"] == "completed"
        assert other.paid == []


async def look_after(bank):
    """Let the holds of a process be looked after now, as they are every second."""
    await bank.storage.checkpointer.holds._run_look()  # noqa: SLF001 - else only time does it


async def until_held(holds):
    async with asyncio.timeout(30):
        while True:
            if not await is_free(holds):
                return
            await asyncio.sleep(0.01)


async def is_free(holds):
    """Whether nobody holds the thread, without a take of it."""
    if isinstance(holds, FileHolds):
        return not any(holds._folder.glob("*.lock"))  # noqa: SLF001 - nothing else tells
    with holds.database.connect() as connection:
        return connection.execute(HELD).fetchone() is None


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_of_bare_calls_at_once_one_works_and_the_others_are_refused(kind, request):
    kinds = {"memory": ":memory:", "sqlite": request.getfixturevalue("tmp_path") / "runs.sqlite"}
    where = kinds.get(kind) or request.getfixturevalue("postgres_database")
    async with open_storage(where) as storage:
        bank = Bank(storage, before=2)
        called = {asyncio.ensure_future(bank.graph.ainvoke(BILLS, THREAD)) for _ in range(3)}
        while len(called) > 1:
            refused, called = await asyncio.wait(called, return_when=asyncio.FIRST_COMPLETED)
            for each in refused:
                with pytest.raises(ThreadBusyError):
                    each.result()
        bank.go_on.set()
        state = await called.pop()
        assert (state["outcome"], bank.paid) == ("completed", [1, 2, 3, 4])
        ledger = await storage.log.ledger(state["run_id"])
        assert Counter(each.step_id for each in ledger) == dict.fromkeys((1, 2, 3, 4), 1)


class Meanwhile(RunLog):
    """A log in which somebody else records the result of a step when it is to begin."""

    async def started(self, attempt, key="", announced=None):
        if attempt.step_id == 2:
            message = AIMessage("paid by another")
            result = SpecialistResult(specialist_name="clerk", step_id=2, round=1, result=message)
            await self.finished(attempt, result, attempt.started_at, key)
        return await super().started(attempt, key, announced)


async def test_a_result_that_somebody_recorded_meanwhile_is_taken(tmp_path):
    async with open_storage(tmp_path / "runs.sqlite") as storage:
        bank = Bank(replace(storage, log=Meanwhile(MemoryLogs())))
        events = [event async for event in stream(bank.graph, BILLS, config=THREAD)]
        results = (await bank.graph.aget_state(THREAD)).values["current_specialist_results"]
    assert (events[-1].outcome, bank.paid) == ("completed", [1, 3, 4])
    assert results["2/clerk"].text == "paid by another"
    begun = [event.step_id for event in events if event.type == "specialist_invoked"]
    ended = [event.step_id for event in events if event.type == "specialist_completed"]
    assert begun == ended == [1, 3, 4]


async def test_a_bare_call_holds_its_thread_against_everybody(where):
    async with banks(where, before=2) as (owner, other):
        first = asyncio.ensure_future(owner.graph.ainvoke(BILLS, THREAD))
        await owner.at_work.wait()
        for bank in (owner, other):
            for call in (
                state_of(run(bank.graph, None, config=THREAD)),
                anext(stream(bank.graph, BILLS, config=THREAD)),
                bank.graph.ainvoke(None, THREAD),
                anext(bank.graph.astream(BILLS, THREAD)),
                bank.graph.aupdate_state(THREAD, {"messages": [("user", "Stop.")]}),
            ):
                with pytest.raises(ThreadBusyError):
                    await call
        owner.go_on.set()
        assert (await first)["outcome"] == "completed"
        await other.graph.aupdate_state(THREAD, {"messages": [("user", "Thank you.")]})
        messages = (await owner.graph.aget_state(THREAD)).values["messages"]
        assert messages[-1].text == "Thank you."


async def test_a_bare_call_whose_thread_was_taken_stops(where):
    async with banks(where, before=2) as (owner, other):
        first = asyncio.ensure_future(owner.graph.ainvoke(BILLS, THREAD))
        await owner.at_work.wait()
        cut_off(where)
        assert waiting_for((await run(other.graph, None, config=THREAD)).state)
        await look_after(owner)
        with pytest.raises(ThreadLostError):
            await first
        assert owner.paid + other.paid == [1, 3, 4]


@pytest.mark.one_store
async def test_a_bare_call_has_its_run_on_record_before_a_step_begins(where):
    async with banks(where, before=1) as (owner, other):
        write = owner.storage.checkpointer.aput

        async def late(*checkpoint):
            for _ in range(10_000):
                await asyncio.sleep(0)
            return await write(*checkpoint)

        owner.storage.checkpointer.aput = late
        first = asyncio.ensure_future(owner.graph.ainvoke(BILLS, THREAD))
        await owner.at_work.wait()
        # Whoever continued the thread without it would begin all steps again.
        state = (await other.graph.aget_state(THREAD)).values
        assert [each.step_id for each in await other.storage.log.ledger(state["run_id"])] == [1]
        owner.go_on.set()
        assert (await first)["outcome"] == "completed"


@pytest.mark.one_store
async def test_who_reads_a_stream_is_no_owner(where):
    async with banks(where, before=0) as (bank, _):
        async for _part in bank.graph.astream(BILLS, THREAD):
            with pytest.raises(ThreadBusyError):
                await bank.graph.ainvoke(None, THREAD)
            break
        other = {"configurable": {"thread_id": "other"}}
        events = [event async for event in stream(bank.graph, BILLS, config=other)]
        assert events[-1].outcome == "completed"


@contextmanager
def a_fresh_process(behind):
    """A process that has made no ids of checkpoints, on a host whose clock is off; its clock."""
    with pytest.MonkeyPatch.context() as patch:
        really = langgraphs_ids.time.time_ns
        clock = type("clock", (), {"time_ns": staticmethod(lambda: really() - behind)})
        patch.setattr(langgraphs_ids, "time", clock)
        patch.setattr(langgraphs_ids, "_last_v6_timestamp", None)
        yield lambda: datetime.now(UTC) - timedelta(microseconds=behind // 1000)


HOUR = 3_600 * 10**9


@pytest.mark.one_store
async def test_nothing_is_lost_by_clocks_that_are_behind_or_ahead(where):
    steps = [0, HOUR, -24 * 365 * HOUR, 2 * HOUR]
    for number, behind in enumerate(steps, 1):
        with a_fresh_process(behind) as clock:
            async with open_storage(where) as storage:
                bank = Bank(storage, clock=clock)
                given = {"messages": [("user", f"Message {number}")], **BILLS}
                await run(bank.graph, given, config=THREAD)
                messages = (await bank.graph.aget_state(THREAD)).values["messages"]
        assert [each.text for each in messages if each.type == "human"] == [
            f"Message {each}" for each in range(1, number + 1)
        ]


@pytest.mark.one_store
async def test_a_run_that_was_cut_off_ends_on_a_host_whose_clock_is_behind(where):
    async with open_storage(where) as storage:
        bank = Bank(storage, before=3)
        first = bank.begin()
        await bank.at_work.wait()
        first.cancel()
        await asyncio.wait({first})
    with a_fresh_process(HOUR) as clock:
        async with open_storage(where) as storage:
            late = Bank(storage, clock=clock)
            (question,) = waiting_for((await run(late.graph, None, config=THREAD)).state)
            resumed = Command(resume={question.key: "run again"})
            state = (await run(late.graph, resumed, config=THREAD)).state
            assert (state["outcome"], sorted(bank.paid + late.paid)) == ("completed", [1, 2, 3, 4])
    async with open_storage(where) as storage:
        snapshot = await Bank(storage).graph.aget_state(THREAD)
        assert (snapshot.values["outcome"], snapshot.next) == ("completed", ())


@pytest.mark.one_store
async def test_a_fork_on_a_host_whose_clock_is_behind_is_the_newest(where):
    async with open_storage(where) as storage:
        bank = Bank(storage)
        await run(bank.graph, BILLS, config=THREAD, run_id="r")
        history = [each async for each in bank.graph.aget_state_history(THREAD)]
    older = next(each for each in history if each.next == ("result_collector",))
    with a_fresh_process(HOUR) as clock:
        async with open_storage(where) as storage:
            bank = Bank(storage, clock=clock)
            forked = await bank.graph.aupdate_state(older.config, {"answers": {}})
            newest = await bank.graph.aget_state(THREAD)
    assert newest.config["configurable"]["checkpoint_id"] == forked["configurable"]["checkpoint_id"]


async def test_holds_are_looked_after_by_themselves(where, monkeypatch):
    monkeypatch.setattr(holding, "BEAT", 0.05)
    async with open_storage(where) as storage, AsyncExitStack() as stack:
        holds = storage.checkpointer.holds
        owners = [await stack.enter_async_context(holds.lock(name)) for name in "abc"]
        cut_off(where)
        await until_held(holds)
        assert not any(owner.is_lost for owner in owners)


class OwnSaver(InMemorySaver):
    """A saver of somebody else."""


@asynccontextmanager
async def saver_of(kind, folder):
    match kind:
        case "memory":
            yield InMemorySaver()
        case "own":
            yield OwnSaver()
        case _:
            async with AsyncSqliteSaver.from_conn_string(str(folder / "runs.db")) as saver:
                yield saver


class Desk:
    """Answers requests one after the other; the first one takes as long as a test says."""

    def __init__(self, saver):
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        model = ScriptedModel({"think": always(self._reply)})
        config = Team(
            host=Host(model=model),
            specialists=[
                Specialist(name="clerk", intended_use="Works.", run=lambda context: "done")
            ],
        )
        self.graph = build_graph(config, checkpointer=saver)

    async def _reply(self, messages):
        if not self.begun.is_set():
            self.begun.set()
            await self.go_on.wait()
        return "---\ncomplexity: simple\n---\nHello."


async def by_run(graph, thread=THREAD):
    return (await run(graph, "Hello?", config=thread)).outcome


async def by_stream(graph, thread=THREAD):
    return [event async for event in stream(graph, "Hello?", config=thread)][-1].outcome


@pytest.mark.parametrize("kind", ["memory", "own", "sqlite"])
@pytest.mark.parametrize(
    ("first", "second"), [(by_run, by_run), (by_run, by_stream), (by_stream, by_run)]
)
async def test_with_any_checkpointer_a_second_run_on_a_thread_is_refused(
    kind, first, second, tmp_path, monkeypatch
):
    monkeypatch.setattr(ownership, "MOMENT", 0.01)
    async with saver_of(kind, tmp_path) as saver:
        # Another graph with the same saver is the same thread.
        desk, other = Desk(saver), Desk(saver)
        other.begun.set()
        working = asyncio.ensure_future(first(desk.graph))
        await desk.begun.wait()
        for graph in (desk.graph, other.graph):
            with pytest.raises(ThreadBusyError):
                await second(graph)
            assert await second(graph, {"configurable": {"thread_id": "u"}}) == "answered"
        desk.go_on.set()
        assert await working == "answered"
        assert await second(other.graph) == "answered"
        messages = (await desk.graph.aget_state(THREAD)).values["messages"]
    assert [each.type for each in messages] == ["human", "ai"] * 2


async def test_runs_in_several_python_threads_exclude_each_other_in_memory_too(monkeypatch):
    monkeypatch.setattr(ownership, "MOMENT", 0.01)
    desk = Desk(InMemorySaver())
    working = asyncio.ensure_future(by_run(desk.graph))
    await desk.begun.wait()
    with pytest.raises(ThreadBusyError):
        await asyncio.to_thread(run_sync, desk.graph, "Hello?", config=THREAD)
    desk.go_on.set()
    assert await working == "answered"
    assert (await asyncio.to_thread(run_sync, desk.graph, "Hello?", config=THREAD)).text == "Hello."


@pytest.mark.parametrize("way", [by_run, by_stream])
async def test_a_run_that_fails_or_is_cancelled_leaves_its_thread(way, monkeypatch):
    monkeypatch.setattr(ownership, "MOMENT", 0.01)
    desk = Desk(InMemorySaver())
    working = asyncio.ensure_future(way(desk.graph))
    await desk.begun.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    with pytest.raises(InputError):
        await way(desk.graph, {"configurable": {"thread_id": "t\0"}})
    assert await way(desk.graph) == "answered"
