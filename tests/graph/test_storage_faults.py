"""Each write of a run fails once: nothing recorded is done again, swapped or lost."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from replan import Host, Specialist, StorageError, Team, build_graph, open_storage, run
from replan.testing import ScriptedModel, always
from scripts import COMPLETE

PLAN = "# Work\n\n- [ ] 1. One @a\n- [ ] 2. Two @a\n- [ ] 3. Three @a (after 1, 2)\n"
AFTER = {1: (), 2: (), 3: (1, 2)}
GIVEN = {"messages": [("user", "Go.")], "plan": PLAN}
# In turns of a few, so that they run side by side. The faults are above the store, so some of the
# writes are enough to see that PostgreSQL is no other.
TURNS = [*(("sqlite", first, 4) for first in range(1, 5)), ("postgres", 3, 6)]
LOG_WRITES = ("reserve", "settle", "started", "ended", "finished", "note", "strike")
SAVER_WRITES = ("aput", "aput_writes")


def text_of(step):
    """What a step must come to: it holds what it was given, so that a swap shows."""
    return f"text {step} from {[text_of(each) for each in AFTER[step]]}"


class World:
    """What is outside of the run: the effects of its steps."""

    def __init__(self):
        self.effects = []

    def work(self, context):
        step = context.plan_step.id
        self.effects.append(step)
        return f"text {step} from {list(context.inputs.values())}"

    def graph(self, storage, model):
        work = {"run": self.work, "effects": "pure"}
        team = [Specialist(name="a", intended_use="Works.", **work)]
        config = Team(host=Host(model=model), specialists=team)
        return build_graph(config, storage=storage)


class Faults:
    """Lets one write of a storage fail, before it was done or after."""

    def __init__(self, nth, *, is_done):
        self.left, self.is_done = nth, is_done

    def into(self, storage):
        for name in SAVER_WRITES:
            setattr(storage.checkpointer, name, self.failing(getattr(storage.checkpointer, name)))
        return replace(storage, log=FaultyLog(storage.log, self))

    def failing(self, write):
        async def faulty(*arguments: Any, **named: Any) -> Any:
            self.left -= 1
            is_mine = self.left == 0
            if is_mine and not self.is_done:
                raise StorageError("here", "It failed.", "Try again.")
            done = await write(*arguments, **named)
            if is_mine:
                raise StorageError("here", "Its receipt was lost.", "Try again.")
            return done

        return faulty


class FaultyLog:
    def __init__(self, log, faults):
        self.log, self.faults = log, faults

    def __getattr__(self, name):
        method = getattr(self.log, name)
        return self.faults.failing(method) if name in LOG_WRITES else method


async def first_try(world, faults, where, thread, run_id):
    """Run until the write fails; says whether it did, and the steps on record by then."""
    async with open_storage(where) as storage:
        with ScriptedModel({"feedback": always(COMPLETE)}) as model:
            graph = world.graph(faults.into(storage), model)
            with suppress(StorageError):
                await run(graph, GIVEN, config=thread, run_id=run_id)
                # A write that fails ends the run loudly, so this run had fewer of them.
                assert faults.left > 0
        results = await storage.log.results(run_id)
    return faults.left <= 0, {each.step_id for each in results.values()}


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("kind", "first", "turns"), TURNS)
async def test_every_write_fails_once(kind, first, turns, is_done, tmp_path, request):
    where = request.getfixturevalue("postgres_database") if kind == "postgres" else None
    for nth in count(first, turns):
        place, run_id = where or tmp_path / "runs.sqlite", f"r{nth}"
        thread = {"configurable": {"thread_id": f"t{nth}"}}
        world = World()
        has_failed, recorded = await first_try(
            world, Faults(nth, is_done=is_done), place, thread, run_id
        )
        before = len(world.effects)
        # All anew, as another process would have it; the input is delivered a second time.
        async with open_storage(place) as storage:
            with ScriptedModel({"feedback": always(COMPLETE)}) as model:
                graph = world.graph(storage, model)
                state = (await run(graph, GIVEN, config=thread, run_id=run_id)).state
        assert (state["run_id"], state["outcome"]) == (run_id, "completed"), nth
        results = state["current_specialist_results"].values()
        assert {each.step_id: each.text for each in results} == {
            step: text_of(step) for step in AFTER
        }, nth
        assert Counter(world.effects[before:]) == Counter(AFTER.keys() - recorded), nth
        if not has_failed:  # there were fewer writes
            break
    assert nth > 20
