"""A run that goes back to an older checkpoint: its log says so, and nothing is done twice."""

import re
from datetime import UTC, datetime

import pytest
from langchain_core.messages import AIMessage
from langgraph.types import Command

from replan import (
    Host,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
    waiting_for,
)
from replan.plan.markdown.document import parse_plan_from_markdown
from replan.ports.run_book import RunRecord
from replan.runs.reports import read_report
from replan.runs.travel.exported_run import exported, opened_export
from replan.testing import ScriptedModel, always
from replan.views.run.history import history_lines, time_text
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
        self.team = Team(host=Host(model=model), specialists=[worker])
        self.graph = build_graph(self.team, storage=storage)

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

    async def told(self, run_id):
        """What the history of a run says of where it went back to."""
        at = datetime.now(UTC)
        times = {"started_at": at, "updated_at": at}
        record = RunRecord(run_id=run_id, thread_id="t", outcome="completed", **times)
        lines = history_lines(await read_report(self.graph, self.storage, record, at))
        return [re.sub(r"\S+:\d\d\b", "TIME", line) for line in lines if " to its " in line]

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
    assert await works.told(state["run_id"]) == []


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


@pytest.mark.parametrize("effects", ["pure", "unsafe"])
async def test_a_fork_from_a_question_takes_another_answer_to_it(where, effects):
    did = []

    def paint(_):
        did.append(ask_user("Which colour?"))
        return did[-1]

    painter = Specialist("painter", "Paints.", run=paint, effects=effects)
    async with open_storage(where) as storage:
        graph = build_graph(Team(Host("offline"), [painter]), storage=storage)
        await graph.ainvoke({"plan": "- [ ] 1. Paint @painter\n"}, THREAD)
        await graph.ainvoke(Command(resume="red"), THREAD)
        (asked,) = [each async for each in graph.aget_state_history(THREAD) if each.interrupts]
        for colour in ("blue", "green"):
            state = await graph.ainvoke(Command(resume=colour), asked.config)
            assert state["questions"]["1/painter/1"].answer == colour
            if effects == "unsafe":
                # What it did with the other answer may not be done twice unseen.
                assert [each.kind for each in waiting_for(state)] == ["unknown_outcome"]
            else:
                assert state["current_specialist_results"]["1/painter"].text == colour
        # The branch that was there first keeps its result.
        again = await graph.ainvoke(Command(resume="red"), asked.config)
    assert did == (["red"] if effects == "unsafe" else ["red", "blue", "green", "red"])
    assert again["questions"]["1/painter/1"].answer == "red"


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
    assert (
        await works.told(state["run_id"]) == ["TIME forked to its state of TIME, after step 1"] * 2
    )


async def test_a_rollback_says_where_the_thread_stands_again(works):
    first = await works.run(given={"plan": CHAIN})
    stands = (await works.graph.aget_state(THREAD)).config["configurable"]["checkpoint_id"]
    named = {**THREAD, "metadata": {"run_id": "second"}}
    await works.run(named, {"plan": CHAIN.replace("Count", "Weigh")})
    await works.storage.checkpointer.adelete_for_runs(["second"])
    (back,) = await works.forks(first["run_id"])
    assert back["checkpoint"] == stands
    told = await works.told(first["run_id"])
    assert told == ["TIME rolled back to its state of TIME, after step 3"]
    assert (await works.graph.aget_state(THREAD)).values["run_id"] == first["run_id"]


async def test_the_history_and_the_export_of_a_run_say_where_it_was_forked(where, tmp_path):
    async with open_storage(where) as storage:
        works = Works(storage)
        async with open_runtime(works.team, storage=storage) as runtime:
            run = await runtime.run({"plan": CHAIN}, run_id="r", settings=IN_STEPS)
            record = await storage.runs.get("r")
            config = {"configurable": {"thread_id": record.thread_id}}
            history = [each async for each in runtime.graph.aget_state_history(config)]
            older = [each for each in history if each.next == ("plan_execution",)]
            for each in older[:2]:
                await runtime.graph.ainvoke(None, each.config, context=IN_STEPS)
            report = await runtime.get("r")
            whole = await read_report(runtime.graph, storage, record, report.last_seen_at)
    assert run.outcome == "completed"
    told = [line for line in history_lines(report) if " forked to its state of " in line]
    assert [line.rpartition(", ")[2] for line in told] == ["after step 2", "after step 1"]
    (tmp_path / "r.json").write_text(exported(whole, report.last_seen_at))
    assert opened_export(tmp_path / "r.json").forks == report.forks


async def test_a_run_that_asks_since_it_went_back_waits_in_every_list(where):
    asks = False

    def work(context):
        return f"{context.task_description}: {ask_user('Which?') if asks else 'done'}"

    model = ScriptedModel({"feedback": always(COMPLETE)})
    worker = Specialist(name="a", intended_use="Works.", run=work, effects="pure")
    team = Team(host=Host(model=model), specialists=[worker])

    async def listed(runtime):
        statuses = ("completed", "waiting")
        return [[one.run_id for one in await runtime.runs(status=each)] for each in statuses]

    async with open_runtime(team, storage=where) as runtime:
        await runtime.run({"plan": "- [ ] 1. Count @a\n"}, run_id="r", thread_id="t")
        await runtime.run({"plan": "- [ ] 1. Count @a\n"}, run_id="other")
        history = runtime.graph.aget_state_history(THREAD)
        async for each in history:
            older = each.config
            if each.next == ("plan_execution",):
                break
        assert await listed(runtime) == [["other", "r"], []]
        asks = True
        edited = parse_plan_from_markdown("- [ ] 1. Sum @a\n")
        there = await runtime.graph.aupdate_state(older, {"current_plan": edited})
        await runtime.graph.ainvoke(None, there)
        assert (await runtime.get("r")).outcome == "waiting"
        assert await listed(runtime) == [["other"], ["r"]]
        result = await (await runtime.answer("r", "blue"))
        assert result.results[1].text == "Sum: blue"
        assert await listed(runtime) == [["other", "r"], []]


async def test_a_thread_that_is_deleted_takes_its_logs_along(works):
    run_id = (await works.run(given={"plan": CHAIN}))["run_id"]
    other = {"configurable": {"thread_id": "other"}}
    kept = (await works.run(other, {"plan": CHAIN}))["run_id"]
    await works.storage.checkpointer.adelete_thread("t")
    assert await works.storage.log.rows(run_id) == []
    assert await works.storage.log.spent(run_id) == {}
    assert len(await works.storage.log.results(kept)) == 3


async def test_the_history_tells_what_a_call_of_the_graph_did_without_events(works):
    async with open_runtime(works.team, storage=works.storage) as runtime:
        done = await runtime.run({"plan": CHAIN}, run_id="r", thread_id="t", settings=IN_STEPS)
        events = [event.seq async for event in runtime.events("r")]
        edited = {"1/a": done.results[1].replace(result=AIMessage("Edited"))}
        there = await works.graph.aupdate_state(
            await works.before_round(2), {"current_specialist_results": edited}
        )
        await works.run(there)
        assert [event.seq async for event in runtime.events("r")] == events
        report = await runtime.get("r")
    tried = [(each.entry.step_id, each.entry.number) for each in report.attempts]
    assert tried == [(1, 1), (2, 1), (3, 1), (2, 2), (3, 2)]
    assert {each.outcome for each in report.attempts} == {"done"}
    assert [len(step.attempts) for step in report.steps] == [1, 2, 2]
    assert [line.partition(" ")[2] for line in history_lines(report)][-3:] == [
        f"forked to its state of {time_text(report.forks[0].state_at, report.began)}, after step 1",
        "step 2 a, attempt 2, in a call of the graph: done",
        "step 3 a, attempt 2, in a call of the graph: done",
    ]
