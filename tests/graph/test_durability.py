"""Whatever stops a run, going on with it does nothing recorded again, swaps nothing, loses nothing.

Each test stops a run in its way, opens the storage anew with a graph of its own, as another process
would, and goes on.
"""

import asyncio
import sqlite3
import threading
from collections import Counter
from contextlib import asynccontextmanager, closing
from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage

from replan import (
    Host,
    InputError,
    Limits,
    Specialist,
    SpecialistResult,
    StorageError,
    Team,
    build_graph,
    open_storage,
    run,
)
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD
from states import state_of

AFTER = {1: (), 2: (1,), 3: (1,), 4: (), 5: (2, 3), 6: (4, 5)}
NAMES = dict(enumerate(("One", "Two", "Three", "Four", "Five", "Six"), 1))


def plan_of(marks=""):
    lines = [
        f"- [ ] {step}. {NAMES[step]} @a"
        + (f" (after {', '.join(map(str, after))}{marks})" if after else "")
        for step, after in AFTER.items()
    ]
    return "# Work\n\n" + "\n".join(lines) + "\n"


GIVEN = {"messages": [("user", "Go.")], "plan": plan_of()}


def text_of(step):
    """What a step must come to: it holds what it was given, so that a swap shows."""
    return f"text {step} from {[text_of(each) for each in AFTER[step]]}"


def all_before(step):
    """The steps that must be done before a step."""
    return {one for other in AFTER[step] for one in (other, *all_before(other))}


class World:
    """The storage of a run, and the effects of its steps outside of it."""

    def __init__(self, where):
        self.where = where
        self.name = "a"
        self.effects = []
        self.disturb = None
        self.replies = {"feedback": always(COMPLETE)}

    async def work(self, context):
        step = context.plan_step.id
        if self.disturb is not None:
            await self.disturb(step)
        self.effects.append(step)
        return f"text {step} from {list(context.inputs.values())}"

    @asynccontextmanager
    async def opened(self, *, wrap=lambda storage: storage, limits=None, **options):
        """Open all anew; gives the graph and the storage."""
        async with open_storage(self.where, **options) as storage:
            with ScriptedModel(self.replies) as model:
                work = {"run": self.work, "effects": "pure"}
                team = [Specialist(name=self.name, intended_use="Works.", **work)]
                config = Team(
                    host=Host(model=model),
                    specialists=team,
                    limits=limits or Limits(step_retries=0),
                )
                yield build_graph(config, storage=wrap(storage)), storage

    async def recorded(self, run_id="r"):
        async with open_storage(self.where) as storage:
            return {each.step_id for each in (await storage.log.results(run_id)).values()}

    async def is_cancelled_at(self, at, given):
        """Run until a step is reached and all others are on record that do not wait for it."""
        reached = asyncio.Event()
        apart = {step for step in AFTER if at not in (step, *all_before(step))}

        async def disturb(step):
            if step == at:
                while not apart <= await recorded():  # noqa: ASYNC110 - other connections write
                    await asyncio.sleep(0.01)
                reached.set()
                await asyncio.Event().wait()

        self.disturb = disturb
        async with self.opened() as (graph, storage):

            async def recorded():
                results = await storage.log.results("r")
                return {each.step_id for each in results.values()}

            running = asyncio.ensure_future(state_of(run(graph, given, config=THREAD, run_id="r")))
            waiting = asyncio.ensure_future(reached.wait())
            await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    async def goes_on(self, given=None, **options):
        """Go on with the run; nothing that is on record may be done again."""
        self.disturb = None
        recorded, before = await self.recorded(), len(self.effects)
        async with self.opened() as (graph, _):
            state = (await run(graph, given, config=THREAD, run_id="r", **options)).state
            again = Counter(self.effects[before:])
            assert not recorded & again.keys()
            assert set(again.values()) <= {1}
            # On a run that is over, nothing is done at all.
            assert (await run(graph, None, config=THREAD)).state["run_id"] == "r"
            assert len(self.effects) == before + sum(again.values())
            assert (await graph.aget_state(THREAD)).tasks == ()
        return state

    def is_right(self, state, steps=AFTER):
        results = state["current_specialist_results"].values()
        assert {each.step_id: each.text for each in results if not each.is_failed} == {
            step: text_of(step) for step in steps
        }


@pytest.fixture(params=["sqlite", "postgres"])
def world(request, tmp_path):
    if request.param == "postgres":
        return World(request.getfixturevalue("postgres_database"))
    return World(str(tmp_path / "runs.sqlite"))


class SlowToRecord:
    """A log whose writes of results take long, while LangGraph's go on."""

    def __init__(self, log):
        self.log = log

    def __getattr__(self, name):
        return getattr(self.log, name)

    async def finished(self, *args):
        for _ in range(200):
            await asyncio.sleep(0)
        await self.log.finished(*args)


async def test_no_step_starts_before_what_it_waits_for_is_on_record(world):
    async with world.opened(
        wrap=lambda storage: replace(storage, log=SlowToRecord(storage.log))
    ) as (graph, storage):
        seen = {}

        async def disturb(step):
            results = await storage.log.results("r")
            seen[step] = {each.step_id for each in results.values()}

        world.disturb = disturb
        state = (await run(graph, GIVEN, config=THREAD, run_id="r")).state
    world.is_right(state)
    assert seen.keys() == AFTER.keys()
    assert all(set(AFTER[step]) <= seen[step] for step in AFTER)


async def test_another_process_locks_the_file_for_a_while(tmp_path):
    """Both SQLite's own waiting and ours are longer than what the other one takes."""
    world = World(str(tmp_path / "runs.sqlite"))
    released = threading.Event()

    def hold():
        with closing(sqlite3.connect(world.where, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            locked.set()
            released.wait()
            other.execute("ROLLBACK")

    locked = threading.Event()
    other = threading.Thread(target=hold)

    async def disturb(step):
        if step == 2:
            other.start()
            await asyncio.to_thread(locked.wait)
            asyncio.get_running_loop().call_later(0.3, released.set)

    world.disturb = disturb
    async with world.opened() as (graph, _):
        state = (await run(graph, GIVEN, config=THREAD, run_id="r")).state
    other.join()
    world.is_right(state)
    assert Counter(world.effects) == dict.fromkeys(AFTER, 1)


@pytest.mark.parametrize("pages", range(0, 21, 3))
async def test_the_disk_is_full(tmp_path, pages):
    world = World(str(tmp_path / "runs.sqlite"))
    world.replies = {"feedback": always(COMPLETE), "final_answer": always("Partly.")}
    async with world.opened(patience=0.1) as (graph, storage):
        await grow_by(storage, pages)
        with pytest.raises(StorageError, match="disk is full") as caught:
            await run(graph, GIVEN, config=THREAD, run_id="r")
        assert "stays recorded" in caught.value.problem
        assert "continue the run" in caught.value.fix
    state = await world.goes_on(GIVEN)
    assert state["outcome"] == "completed"
    world.is_right(state)


async def grow_by(storage, pages):
    """Let SQLite itself refuse to let the file grow by more, as it does on a full disk."""
    database = storage.log._store._database  # noqa: SLF001 - the connection that writes
    ((count,),) = await database.write(lambda each: each.query("PRAGMA page_count"))
    limit = f"PRAGMA max_page_count = {count + pages}"
    await database.write(lambda each: each.query(limit))


async def test_the_server_is_gone_for_longer_than_one_waits(postgres_server):
    world = World(postgres_server.dsn)

    async def disturb(step):
        if step == 2:
            await asyncio.to_thread(postgres_server.kill)

    world.disturb = disturb
    async with world.opened(patience=0.5) as (graph, _):
        with pytest.raises(StorageError, match="cannot be reached") as caught:
            await run(graph, GIVEN, config=THREAD, run_id="r")
        assert "tester" not in str(caught.value)
    with pytest.raises(StorageError, match="cannot be reached"):
        async with open_storage(world.where, patience=0.2):
            pytest.fail("it was opened")
    await asyncio.to_thread(postgres_server.start)
    state = await world.goes_on()
    assert state["outcome"] == "completed"
    world.is_right(state)


async def test_a_team_that_lacks_who_was_sent_a_step_is_refused(world):
    await world.is_cancelled_at(5, GIVEN)
    before = len(world.effects)
    world.name = "b"
    async with world.opened() as (graph, _):
        with pytest.raises(InputError, match="sent to @a, whom the team does not have"):
            await run(graph, None, config=THREAD, run_id="r")
    assert len(world.effects) == before
    world.name = "a"
    world.is_right(await world.goes_on())
    assert Counter(world.effects) == dict.fromkeys(AFTER, 1)


@pytest.mark.parametrize("world", ["postgres"], indirect=True)
async def test_a_result_that_asks_nothing_is_kept_as_it_was(world):
    """What the log gives back is what the step gave, in every field."""
    given = SpecialistResult(result=AIMessage("x", id="m"), confidence=0.5)

    async def work(context):
        return given

    world.work = work
    async with world.opened() as (graph, storage):
        state = await state_of(
            run(graph, {**GIVEN, "plan": "- [ ] 1. One @a\n"}, config=THREAD, run_id="r")
        )
        (kept,) = (await storage.log.results("r")).values()
    assert state["current_specialist_results"] == {"1/a": kept}
    assert (kept.confidence, kept.result) == (0.5, given.result)
