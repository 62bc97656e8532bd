"""A run behind which its thread went on: nobody continues it, and nothing of another is in it."""

import pytest

from replan import Host, InputError, Limits, RunSettings, Specialist, Team, ask_user, open_runtime
from replan.testing import ScriptedModel, always
from scripts import COMPLETE

pytestmark = pytest.mark.one_store

FIRST = {"messages": [("user", "Paint.")], "plan": "- [ ] 1. Buy @buyer\n- [ ] 2. Hall @painter\n"}
LATER = {"messages": [("user", "Draw.")], "plan": "- [ ] 1. Sell @buyer\n- [ ] 2. Attic @painter\n"}


class Shop:
    """One who buys, which must not happen twice, and one who asks."""

    def __init__(self):
        self.did = []
        model = ScriptedModel({"feedback": always(COMPLETE)})
        buyer = Specialist("buyer", "Buys.", run=self.buy, effects="unsafe")
        painter = Specialist("painter", "Paints.", run=self.paint, effects="pure")
        self.team = Team(Host(model), [buyer, painter])

    def buy(self, context):
        self.did.append((context.run_id, context.task_description))
        return "bought"

    def paint(self, context):
        return f"{context.task_description} is {ask_user('Which colour?')}"


@pytest.fixture
def shop():
    return Shop()


@pytest.fixture
async def runtime(shop, where):
    async with open_runtime(shop.team, storage=where) as runtime:
        yield runtime


async def told(runtime, run_id):
    return [event.type async for event in runtime.events(run_id)]


DOORS = {
    "resume": lambda runtime: runtime.resume("first"),
    "raise": lambda runtime: runtime.resume(
        "first", settings=RunSettings(limits=Limits(max_steps=9))
    ),
    "answer": lambda runtime: runtime.answer("first", {"2/painter/1": "blue"}),
    "retry": lambda runtime: runtime.retry("first", 1),
    "skip": lambda runtime: runtime.skip("first", 2),
    "start": lambda runtime: runtime.start(FIRST, run_id="first", thread_id="t"),
    "message": lambda runtime: runtime.send_message("first", "Be quick."),
    "edit": lambda runtime: runtime.edit_plan(
        "first", f"{FIRST['plan']}- [ ] 3. Hang @buyer\n", version=1
    ),
}


@pytest.mark.parametrize("door", DOORS)
async def test_no_door_continues_the_later_run_in_its_place(runtime, shop, door):
    for run_id, given in (("first", FIRST), ("later", LATER)):
        result = await runtime.run(given, run_id=run_id, thread_id="t")
        assert result.outcome == "waiting"
    before = await told(runtime, "first")
    with pytest.raises(InputError, match="Another run has begun on the thread of this one"):
        await DOORS[door](runtime)
    assert await told(runtime, "first") == before
    assert await runtime.storage.log.requests(["first"]) == []
    result = await (await runtime.answer("later", "grey"))
    assert (result.outcome, result.results[2].text) == ("completed", "Attic is grey")
    assert shop.did == [("first", "Buy"), ("later", "Sell")]


async def test_one_that_had_not_begun_is_not_mistaken_for_the_later_one(runtime, shop):
    # What is stopped before it begins has its input on the thread, and no state.
    going = await runtime.start(FIRST, run_id="first", thread_id="t")
    await runtime.stop("first", by="anna")
    assert (await going).outcome == "interrupted"
    await runtime.run(LATER, run_id="later", thread_id="t")
    with pytest.raises(InputError, match="Another run has begun"):
        await runtime.resume("first")
    assert "specialist_invoked" not in await told(runtime, "first")
    assert [run_id for run_id, _ in shop.did] == ["later"]


async def test_one_that_is_over_is_not_done_again_when_its_input_comes_again(runtime, shop):
    first = await runtime.run({"plan": "- [ ] 1. Buy @buyer\n"}, run_id="first", thread_id="t")
    await runtime.run(LATER, run_id="later", thread_id="t")
    before = await told(runtime, "first")
    again = await runtime.run({"plan": "- [ ] 1. Buy @buyer\n"}, run_id="first", thread_id="t")
    assert (again.run_id, again.outcome, again.text) == ("first", "completed", first.text)
    assert shop.did == [("first", "Buy"), ("later", "Sell")]
    assert await told(runtime, "first") == before


@pytest.mark.parametrize("is_over", [True, False])
async def test_another_input_under_the_id_of_a_run_is_refused(runtime, shop, is_over):
    await runtime.run(FIRST, run_id="first")
    if is_over:
        await (await runtime.answer("first", "blue"))
    before = await told(runtime, "first")
    with pytest.raises(InputError, match="The run first was begun with another input"):
        await runtime.run(LATER, run_id="first")
    assert (await told(runtime, "first"), shop.did) == (before, [("first", "Buy")])


async def test_an_adopted_run_goes_on_when_its_input_comes_again(runtime, shop):
    await runtime.run(FIRST, run_id="first")
    exported = await runtime.export("first")
    async with open_runtime(shop.team, storage=":memory:") as there:
        await there.adopt(exported)
        again = await there.run(FIRST, run_id="first")
        assert (again.run_id, again.outcome) == ("first", "waiting")
        ended = await (await there.answer("first", "blue"))
        once_more = await there.run(FIRST, run_id="first")
    assert (ended.run_id, ended.outcome, once_more.outcome) == ("first", "completed", "completed")
    assert shop.did == [("first", "Buy")]
