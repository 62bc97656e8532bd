"""A server takes a run off its thread, which is then as it was before."""

import asyncio

import pytest
from langgraph.types import Command

from replan import Host, Specialist, Team, build_graph, open_runtime, open_storage, run
from replan.ports.ask_user import ask_user
from replan.testing import ScriptedModel, always
from replan.views.run.history import history_lines
from scripts import DONE, THREAD

pytestmark = pytest.mark.one_store


@pytest.fixture(params=["sqlite", "encrypted sqlite", "postgres"])
async def storage(request, tmp_path):
    if request.param == "postgres":
        where = request.getfixturevalue("postgres_database")
    else:
        where = tmp_path / "runs.sqlite"
    key = "a key of the test" if request.param.startswith("encrypted") else None
    async with open_storage(where, key=key) as storage:
        yield storage


class Crew:
    def __init__(self, storage):
        self.at_work = asyncio.Event()
        model = ScriptedModel({"feedback": always(DONE)})
        worker = Specialist(name="worker", intended_use="Works.", run=self._work)
        config = Team(host=Host(model=model), specialists=[worker])
        self.graph = build_graph(config, storage=storage)

    async def _work(self, context):
        if "Wait" in context.task_description:
            self.at_work.set()
            await asyncio.Event().wait()
        if "Ask" in context.task_description:
            return ask_user("How?")
        return f"done: {context.task_description}"

    async def run(self, said, *steps, run_id=None):
        plan = "".join(f"- [ ] {n}. {each} @worker\n" for n, each in enumerate(steps, 1))
        given = {"messages": [("user", said)], "plan": plan}
        return (await run(self.graph, given, config=THREAD, run_id=run_id)).state

    async def values(self):
        values = (await self.graph.aget_state(THREAD)).values
        return {name: repr(value) for name, value in values.items()}


async def cut_off(team, *steps, run_id):
    running = asyncio.ensure_future(team.run("Never said", *steps, run_id=run_id))
    await team.at_work.wait()
    running.cancel()
    await asyncio.wait({running})


async def test_a_thread_is_as_it_was_before_the_run(storage):
    team = Crew(storage)
    await team.run("First", "Begin")
    before = await team.values()
    await cut_off(team, "Go on", "Wait (after 1)", run_id="second")
    assert "Never said" in (await team.values())["messages"]
    for _ in range(2):
        await storage.checkpointer.adelete_for_runs(["second"])
        assert await team.values() == before
    state = await team.run("Third", "End")
    said = [each.text for each in state["messages"] if each.type == "human"]
    assert (state["outcome"], said) == ("completed", ["First", "Third"])
    assert (await team.values())["messages"] == repr(state["messages"])


async def test_the_first_run_of_a_thread_leaves_nothing(storage):
    team = Crew(storage)
    await cut_off(team, "Wait", run_id="first")
    await storage.checkpointer.adelete_for_runs(["first"])
    assert await team.values() == {}
    assert (await team.run("Second", "End"))["outcome"] == "completed"


async def test_what_a_later_run_goes_on_from_stays(storage):
    team = Crew(storage)
    await team.run("First", "Begin", run_id="first")
    await team.run("Second", "End", run_id="second")
    before = await team.values()
    await storage.checkpointer.adelete_for_runs(["first"])
    assert await team.values() == before
    told = [row for run_id in ("first", "second") for row in await storage.log.rows(run_id)]
    assert "forked" not in {row.kind for row in told}


async def test_what_a_bare_call_went_on_with_is_taken_off_too(storage):
    team = Crew(storage)
    await team.run("First", "Begin", "Go on (after 1)", run_id="first")
    history = [each async for each in team.graph.aget_state_history(THREAD)]
    older = next(each for each in history if each.next == ("plan_execution",))
    await team.graph.ainvoke(None, older.config)
    await storage.checkpointer.adelete_for_runs(["first"])
    assert await team.values() == {}


async def test_an_answer_that_is_taken_back_is_asked_for_again(storage):
    team = Crew(storage)
    waiting = await team.run("First", "Ask", run_id="first")
    assert waiting["outcome"] == "waiting"
    config = {**THREAD, "metadata": {"run_id": "answering"}}
    await team.graph.ainvoke(Command(resume="Well."), config)
    await storage.checkpointer.adelete_for_runs(["answering"])
    assert (await team.graph.aget_state(THREAD)).interrupts


async def test_a_run_that_begins_again_behind_a_rollback_is_the_same_run(storage):
    did = []

    def pay(context):
        did.append((context.run_id, context.plan_step.id))
        return "paid"

    payer = Specialist("payer", "Pays.", run=pay, effects="unsafe")
    asker = Specialist("asker", "Asks.", run=lambda _: ask_user("How?"), effects="pure")
    team = Team(Host(ScriptedModel({"feedback": always(DONE)})), [payer, asker])
    given = {"plan": "- [ ] 1. Pay @payer\n- [ ] 2. Ask @asker\n- [ ] 3. Ask @asker (after 2)\n"}
    async with open_runtime(team, storage=storage) as runtime:
        await runtime.run(given, run_id="first")
        await (await runtime.answer("first", "Well."))
        await storage.checkpointer.adelete_for_runs(["first"])
        assert (await runtime.resume("first")).outcome == "waiting"
        assert [ask.key for ask in (await runtime.get("first")).pending_questions] == ["3/asker/1"]
        result = await (await runtime.answer("first", "Badly."))
        report = await runtime.get("first")
    assert (result.run_id, result.outcome, result.results[2].text) == (
        "first",
        "completed",
        "Well.",
    )
    assert did == [("first", 1)]
    assert [line.partition(" ")[2] for line in history_lines(report)].count(
        "rolled back to its beginning"
    ) == 1
