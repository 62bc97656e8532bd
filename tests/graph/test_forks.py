"""A run that goes back to an older checkpoint: its log says so, and nothing is done twice."""

import pytest
from langchain_core.messages import AIMessage

from replan import Host, RunSettings, Specialist, Team, build_graph, open_storage
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD

pytestmark = pytest.mark.one_store

CHAIN = "- [ ] 1. Count @a\n- [ ] 2. Sum @a (after 1)\n- [ ] 3. Draw @a (after 2)\n"
IN_STEPS = RunSettings(round_scope="step")


class Works:
    """A graph whose steps say what they were given, and how often they were done."""

    def __init__(self, storage):
        self.storage, self.did = storage, []
        model = ScriptedModel({"feedback": always(COMPLETE)})
        worker = Specialist(name="a", intended_use="Works.", run=self.work, effects="keyed")
        self.graph = build_graph(
            Team(host=Host(model=model), specialists=[worker]), storage=storage
        )

    def work(self, context):
        step = context.plan_step
        self.did.append(step.id)
        return f"{step.description}({', '.join(context.inputs.values())})"

    async def run(self, config=THREAD, given=None):
        return await self.graph.ainvoke(given, config, context=IN_STEPS)

    async def before_round(self, number):
        """The configuration of the newest checkpoint before a round was sent."""
        async for each in self.graph.aget_state_history(THREAD):
            is_next = each.next == ("plan_execution",)
            if is_next and each.values.get("current_round") == number:
                return each.config
        raise AssertionError(number)

    async def forks(self, run_id):
        rows = await self.storage.log.rows(run_id)
        return [each.value for each in rows if each.kind == "forked"]


@pytest.fixture
async def works(where):
    async with open_storage(where) as storage:
        yield Works(storage)


def text_of(state, step):
    return state["current_specialist_results"][f"{step}/a"].text


async def test_a_run_that_only_goes_on_forks_nowhere(works):
    state = await works.run(given={"plan": CHAIN})
    assert (state["outcome"], works.did) == ("completed", [1, 2, 3])
    assert await works.forks(state["run_id"]) == []


async def test_a_fork_without_an_edit_uses_what_is_on_record(works):
    state = await works.run(given={"plan": CHAIN})
    older = await works.before_round(2)
    again = await works.run(older)
    assert (again["outcome"], works.did) == ("completed", [1, 2, 3])
    assert text_of(again, 3) == text_of(state, 3) == "Draw(Sum(Count()))"
    (fork,) = await works.forks(state["run_id"])
    assert fork["checkpoint"] == older["configurable"]["checkpoint_id"]
    seen = [each.kind for each in (await works.storage.log.rows(state["run_id"]))[: fork["row"]]]
    assert seen.count("specialist_completed") == 1


async def test_two_forks_of_one_run_do_each_work_once(works):
    state = await works.run(given={"plan": CHAIN})
    older = await works.before_round(2)
    result = state["current_specialist_results"]["1/a"]
    for number in (1, 2):
        edited = {"1/a": result.replace(result=AIMessage(f"Edited {number}"))}
        there = await works.graph.aupdate_state(older, {"current_specialist_results": edited})
        fork = await works.run(there)
        assert text_of(fork, 3) == f"Draw(Sum(Edited {number}))"
        # What was made of another result answers for other work.
        assert works.did == [1, 2, 3, *[2, 3] * number]
    assert [each["checkpoint"] for each in await works.forks(state["run_id"])] == [
        older["configurable"]["checkpoint_id"]
    ] * 2


async def test_a_rollback_says_where_the_thread_stands_again(works):
    first = await works.run(given={"plan": CHAIN})
    stands = (await works.graph.aget_state(THREAD)).config["configurable"]["checkpoint_id"]
    named = {**THREAD, "metadata": {"run_id": "second"}}
    await works.run(named, {"plan": CHAIN.replace("Count", "Weigh")})
    await works.storage.checkpointer.adelete_for_runs(["second"])
    (back,) = await works.forks(first["run_id"])
    assert back["checkpoint"] == stands
    assert (await works.graph.aget_state(THREAD)).values["run_id"] == first["run_id"]


async def test_a_thread_that_is_deleted_takes_its_logs_along(works):
    run_id = (await works.run(given={"plan": CHAIN}))["run_id"]
    other = {"configurable": {"thread_id": "other"}}
    kept = (await works.run(other, {"plan": CHAIN}))["run_id"]
    await works.storage.checkpointer.adelete_thread("t")
    assert await works.storage.log.rows(run_id) == []
    assert await works.storage.log.spent(run_id) == {}
    assert len(await works.storage.log.results(kept)) == 3
