"""A write that is cancelled goes to its end, and leaves no transaction and no task behind."""

import asyncio
import operator
import random
import sqlite3
from contextlib import closing
from typing import Annotated, TypedDict

import psycopg
import pytest
from langgraph.graph import START, StateGraph

from replan import Host, Specialist, StorageError, Team, build_graph, open_storage, run
from replan.log.amounts import Bound, Reservation, Spending
from replan.log.uninterrupted import uninterrupted
from replan.testing import ScriptedModel, always
from states import state_of

COMPLETE = "---\nverdict: complete\n---\nThe answer."
PLAN = (
    "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n- [ ] 3. Three @a\n- [ ] 4. Four @a (after 2, 3)\n"
)
AFTER = {1: (), 2: (1,), 3: (), 4: (2, 3)}


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
            for each in running:
                # The moment of the cancellation, not a wait for something.
                await asyncio.sleep(draw.random() * 0.02)
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


async def test_runs_are_cancelled_at_random_moments(where):
    """Each is cancelled up to twice before it may end; `benchmarks/cancellations.py` has more."""
    draw, effects = random.Random(3), []  # noqa: S311 - no secret

    def work(context):
        effects.append((context.run_id, context.plan_step.id))
        return "done"

    async with open_storage(where) as storage:
        with ScriptedModel({"feedback": always(COMPLETE)}) as model:
            team = [Specialist(name="a", intended_use="Works.", run=work, effects="pure")]
            config = Team(host=Host(model=model), specialists=team)
            graph = build_graph(config, storage=storage)
            given = {"messages": [("user", "Go.")], "plan": PLAN}
            others = tasks()
            for number in range(8):
                run_id, thread = f"r{number}", {"configurable": {"thread_id": f"t{number}"}}
                for _ in range(2):
                    running = asyncio.ensure_future(
                        state_of(run(graph, given, config=thread, run_id=run_id))
                    )
                    # The moment of the cancellation, not a wait for something.
                    await asyncio.sleep(draw.random() * 0.15)
                    running.cancel()
                    await asyncio.wait({running})
                    # LangGraph leaves writes behind, which end by themselves.
                    await storage.checkpointer.at_rest()
                    assert is_free(where)
                results = await storage.log.results(run_id)
                missing = AFTER.keys() - {each.step_id for each in results.values()}
                before = len(effects)
                state = (await run(graph, given, config=thread, run_id=run_id)).state
                assert state["outcome"] == "completed"
                assert {(run_id, step) for step in missing} == set(effects[before:])
                assert len(state["current_specialist_results"]) == len(AFTER)
                assert tasks() == others


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


async def test_a_history_may_be_read_while_it_is_walked(where):
    """LangGraph's own savers would wait for themselves here, forever."""
    async with open_storage(where) as storage:
        with ScriptedModel({"feedback": always(COMPLETE)}) as model:
            team = [Specialist(name="a", intended_use="Works.", run=lambda context: "done")]
            config = Team(host=Host(model=model), specialists=team)
            thread = {"configurable": {"thread_id": "t"}}
            await run(build_graph(config, storage=storage), {"plan": PLAN}, config=thread)
        seen = [
            await storage.checkpointer.aget_tuple(each.config)
            async for each in storage.checkpointer.alist(thread)
        ]
    assert len(seen) > 3


class Counted(TypedDict):
    counted: Annotated[int, operator.add]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_a_node_that_broke_off_before_its_branch_is_done_again(kind, request, tmp_path):
    places = {"memory": ":memory:", "sqlite": str(tmp_path / "runs.sqlite")}
    at = places.get(kind) or request.getfixturevalue("postgres_database")
    graph = StateGraph(Counted)
    graph.add_node("first", lambda _: {"counted": 1})
    graph.add_node("last", lambda _: {"counted": 10})
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", lambda _: "last", ["last"])
    async with open_storage(at) as storage:
        saver, thread = storage.checkpointer, {"configurable": {"thread_id": "t"}}
        compiled = graph.compile(checkpointer=saver)
        await compiled.ainvoke({"counted": 0}, thread, interrupt_before=["first"])
        before = await compiled.aget_state(thread)
        # So LangGraph hands over what a node wrote when it is cancelled.
        writes = [("counted", 1), ("__error__", RuntimeError("cancelled"))]
        async with saver.lock("t"):
            await saver.aput_writes(before.config, writes, before.tasks[0].id)
        assert (await compiled.aget_state(thread)).next == ("first",)
        assert await compiled.ainvoke(None, thread) == {"counted": 11}
