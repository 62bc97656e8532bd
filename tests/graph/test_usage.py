"""What a run has used is what its models were asked for, also by calls that were cut off."""

import asyncio

import pytest

from replan import (
    Host,
    Price,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
    run,
)
from replan.testing import Reply, ScriptedModel, always
from scripts import COMPLETE, THREAD
from states import state_of

PLAN = "# Work\n\n- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n"
THINK = f"---\ncomplexity: complex\n---\n{PLAN}"


class Server:
    """Cuts off the process that asks it for one of the replies, once."""

    def __init__(self, key):
        self.asked, self.arrived, self.key = 0, asyncio.Event(), key
        replies = {"think": THINK, "step 1": "One.", "step 2": "Two.", "feedback": COMPLETE}
        self.script = {name: always(self.reply(name, text)) for name, text in replies.items()}

    def reply(self, name, text):
        async def given(_):
            self.asked += 1
            if name == self.key and not self.arrived.is_set():
                self.arrived.set()
                await asyncio.Event().wait()
            return Reply(text, usage=(100, 10))

        return given


@pytest.mark.parametrize("key", ["think", "step 1", "feedback"])
async def test_calls_that_were_cut_off_are_counted_and_paid_for(key, tmp_path):
    server = Server(key)
    config = Team(
        host=Host(model=ScriptedModel(server.script)),
        specialists=[
            Specialist(name="a", intended_use="Works.", chat_model=ScriptedModel(server.script))
        ],
        prices={"ScriptedModel": Price(input=1, output=1)},
    )
    async with open_storage(tmp_path / "runs.db") as storage:
        graph = build_graph(config, storage=storage)
        running = asyncio.ensure_future(state_of(run(graph, "Go.", config=THREAD, run_id="r")))
        await server.arrived.wait()
        running.cancel()
        await asyncio.wait({running})
    # All anew, as another process would have it.
    async with open_storage(tmp_path / "runs.db") as storage:
        state = await state_of(
            run(build_graph(config, storage=storage), "Go.", config=THREAD, run_id="r")
        )
    usage = state["usage"]
    assert (state["outcome"], usage.calls, server.asked) == ("completed", 5, 5)
    assert usage.by["(cut off)"].calls == 1
    known = 4 * 110 / 1_000_000
    assert usage.cost == pytest.approx(known + usage.by["(cut off)"].cost)
    assert usage.by["(cut off)"].cost > 0


async def test_where_nothing_was_cut_off_nothing_is_added(tmp_path):
    replies = {"think": THINK, "specialist": always("Done."), "feedback": COMPLETE}
    model = ScriptedModel(replies)
    config = Team(
        host=Host(model=model),
        specialists=[Specialist(name="a", intended_use="Works.", chat_model=model)],
        prices={"ScriptedModel": Price(input=0.1, output=0.7)},
    )
    async with open_storage(tmp_path / "runs.db") as storage:
        state = (await run(build_graph(config, storage=storage), "Go.", config=THREAD)).state
    assert set(state["usage"].by) == {"think", "a", "feedback"}


async def test_a_run_that_is_begun_again_has_used_nothing_of_the_removed_one(tmp_path):
    plan = THINK.replace("2. Two @a (after 1)", "2. Two @asker (after 1)")
    script = {"think": always(plan), "step 1": always("One.")}
    workers = [
        Specialist(name="a", intended_use="Works.", chat_model=ScriptedModel(script)),
        Specialist(name="asker", intended_use="Asks.", run=lambda _: ask_user("Which one?")),
    ]
    team = Team(host=Host(model=ScriptedModel(script)), specialists=workers)
    async with (
        open_storage(tmp_path / "runs.db") as storage,
        open_runtime(team, storage=storage) as runtime,
    ):
        for _ in range(2):
            waiting = await runtime.run("Go.", run_id="r")
            assert (waiting.outcome, waiting.state["usage"].calls) == ("waiting", 2)
            await storage.runs.remove("r")


async def test_the_cost_of_a_run_is_unknown_where_one_of_its_models_has_no_price():
    prices = {"ScriptedModel": Price(input=1, output=1)}

    class Guest(ScriptedModel):
        """A model of another name."""

    host = ScriptedModel({"think": THINK, "feedback": Reply(COMPLETE, usage=(100, 10))})
    guest = Guest({"specialist": always(Reply("Done.", usage=(100, 10)))})
    team = [Specialist(name="a", intended_use="Works.", chat_model=guest)]
    result = await run(Team(host=Host(model=host), specialists=team, prices=prices), "Go.")
    usage = result.usage
    assert (usage.cost, usage.by["a"].cost, usage.unpriced_calls) == (None, None, 2)
    assert usage.by["feedback"].cost == pytest.approx(110 / 1_000_000)
    assert usage.known_cost == pytest.approx(usage.by["think"].cost + usage.by["feedback"].cost)


async def test_the_offline_model_costs_nothing_and_no_price_is_no_zero():
    team = [Specialist(name="a", intended_use="Works.", run=lambda context: "done")]
    free = await run(Team(host=Host(model="offline"), specialists=team), {"plan": PLAN})
    assert (free.usage.cost, free.usage.calls) == (0, 1)
    model = ScriptedModel({"feedback": COMPLETE})
    unpriced = await run(Team(host=Host(model=model), specialists=team), {"plan": PLAN})
    assert (unpriced.usage.cost, unpriced.usage.unpriced_calls) == (None, 1)


async def test_of_calls_that_were_cut_off_the_cost_is_unknown_where_a_model_has_no_price(tmp_path):
    server = Server("step 1")
    config = Team(
        host=Host(model=ScriptedModel(server.script)),
        specialists=[
            Specialist(name="a", intended_use="Works.", chat_model=ScriptedModel(server.script))
        ],
    )
    for is_first in (True, False):
        async with open_storage(tmp_path / "runs.db") as storage:
            graph = build_graph(config, storage=storage)
            running = asyncio.ensure_future(run(graph, "Go.", config=THREAD, run_id="r"))
            await server.arrived.wait()
            if is_first:
                running.cancel()
            await asyncio.wait({running})
    usage = running.result().usage
    assert (usage.by["(cut off)"].calls, usage.by["(cut off)"].cost, usage.cost) == (1, None, None)
