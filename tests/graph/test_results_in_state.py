"""Where a result is: whole in the log, an excerpt in the state of a storage, whole for readers."""

import sqlite3
from contextlib import closing

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, Overwrite
from pydantic import BaseModel

from replan import (
    Host,
    Limits,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
)
from replan.prompts.sections import call_of
from replan.storage.databases.serializer import unpack
from replan.testing import ScriptedModel, always
from scripts import THREAD

PLAN = "- [ ] 1. Count @a\n- [ ] 2. Sum @b (after 1)\n"
COMPLETE = "---\nverdict: complete\n---\nAll is counted."
END = "the very last words"
IN_STEPS = RunSettings(round_scope="step")


def long_text(step):
    return f"Result of step {step}: " + "word " * 400 + END


class Series(BaseModel):
    numbers: list[int]


def team_of(model, seen=None, work=None, **options):
    def function(context):
        if seen is not None:
            seen.append((context.plan_step.id, dict(context.inputs)))
        return work(context) if work else long_text(context.plan_step.id)

    specialists = [Specialist(name=n, intended_use="Works.", run=function, **options) for n in "ab"]
    return Team(host=Host(model=model), specialists=specialists, limits=Limits(step_retries=0))


@pytest.fixture
def model():
    with ScriptedModel({"feedback": always(COMPLETE), "final_answer": always("Yes.")}) as scripted:
        yield scripted


def prompt_of(model, node):
    (call,) = [each for each in model.calls if call_of(each.messages).node == node]
    return "\n".join(message.text for message in call.messages)


async def state_of(graph):
    return (await graph.aget_state(THREAD)).values


async def test_a_state_in_a_storage_has_excerpts_that_say_so_and_the_run_has_it_whole(
    model, tmp_path
):
    seen = []
    async with open_runtime(team_of(model, seen), storage=tmp_path / "runs.db") as runtime:
        result = await runtime.run({"plan": PLAN}, thread_id="t")
        state = await state_of(runtime.graph)
        again = await runtime.wait(result.run_id)
    held = state["current_specialist_results"]["1/a"]
    assert (held.excerpt, held.length) == (True, len(long_text(1)))
    assert held.log_key
    assert len(held.text) <= 600
    assert END not in held.marked_text
    assert seen[1] == (2, {1: long_text(1)})
    assert prompt_of(model, "feedback").count(END) == 2
    for values in (result.state, again.state):
        whole = values["current_specialist_results"]["1/a"]
        assert (whole.text, whole.excerpt, whole.log_key) == (long_text(1), False, "")
        digest = values["execution_history"][0].results.results["1/a"]
        assert digest.text.startswith("Result of step 1: word")
        assert "Result of step 2" in values["current_collected_results"].summary
    assert result.results[2].text == long_text(2)


async def test_a_state_that_no_log_outlives_has_results_whole(model):
    graph = build_graph(team_of(model), checkpointer=InMemorySaver())
    await graph.ainvoke({"plan": PLAN}, THREAD)
    held = (await state_of(graph))["current_specialist_results"]["2/b"]
    assert (held.text, held.excerpt, held.length, held.log_key) == (long_text(2), False, 0, "")


async def test_another_process_reads_whole_results_from_the_log(model, tmp_path):
    seen = []
    for stop in (["plan_execution"], ["result_collector"], ["feedback"], ["final_answer"], []):
        # A storage that is opened anew has read nothing yet.
        async with open_storage(tmp_path / "runs.db") as storage:
            graph = build_graph(team_of(model, seen), storage=storage)
            given = {"plan": PLAN} if stop == ["plan_execution"] else None
            await graph.ainvoke(given, THREAD, context=IN_STEPS, interrupt_before=stop)
            while stop and (await graph.aget_state(THREAD)).next != tuple(stop):
                await graph.ainvoke(None, THREAD, interrupt_before=stop)
    async with open_storage(tmp_path / "runs.db") as storage:
        graph = build_graph(team_of(model, seen), storage=storage)
        while (await graph.aget_state(THREAD)).next:
            await graph.ainvoke(None, THREAD)
        state = await state_of(graph)
    assert [step for step, _ in seen] == [1, 2]
    assert seen[1] == (2, {1: long_text(1)})
    assert prompt_of(model, "feedback").count(END) == 2
    assert state["outcome"] == "completed"


async def test_values_of_types_are_whole_too(model, tmp_path):
    numbers = [*range(500)]
    team = Team(
        host=Host(model=model),
        specialists=[
            Specialist(
                name="a",
                intended_use="Counts.",
                run=lambda _: Series(numbers=numbers),
                output_type=Series,
            )
        ],
    )
    async with open_runtime(team, storage=tmp_path / "runs.db") as runtime:
        result = await runtime.run({"plan": "- [ ] 1. Count @a\n"}, thread_id="t")
        held = (await state_of(runtime.graph))["current_specialist_results"]["1/a"]
    assert (held.excerpt, held.output) == (True, None)
    assert result.results[1].output == Series(numbers=numbers)


def edits_of(result):
    """What people write in the place of a result: a value, what Studio sends, all at once."""
    own = result.replace(result=AIMessage("Seven."))
    yield {"1/a": own}
    yield {"1/a": own.model_dump(mode="json")}
    yield Overwrite({"1/a": own})


@pytest.mark.parametrize("form", range(3))
@pytest.mark.parametrize("way", ["update", "command"])
async def test_an_edited_excerpt_is_the_persons_own_and_wins(model, tmp_path, form, way):
    seen = []
    async with open_storage(tmp_path / "runs.db") as storage:
        graph = build_graph(team_of(model, seen), storage=storage)
        await graph.ainvoke({"plan": PLAN}, THREAD, context=IN_STEPS, interrupt_after=["feedback"])
        state = await state_of(graph)
        edits = [*edits_of(state["current_specialist_results"]["1/a"])]
        update = {"current_specialist_results": edits[form]}
        if way == "update":
            await graph.aupdate_state(THREAD, update)
            await graph.ainvoke(None, THREAD)
        else:
            await graph.ainvoke(Command(update=update), THREAD)
        state = await state_of(graph)
        rows = await storage.log.rows(state["run_id"])
    own = state["current_specialist_results"]["1/a"]
    assert (own.text, own.excerpt, own.length, own.log_key) == ("Seven.", False, 0, "")
    assert seen[1] == (2, {1: "Seven."})
    (row,) = [each for each in rows if each.kind == "edit"]
    assert row.value["by"] == "a person"
    (change,) = row.value["changes"]
    assert (change["key"], change["name"]) == ("current_specialist_results", "1/a")
    assert change["value"]["result"]["content"] == "Seven."
    assert row.event is None


@pytest.mark.parametrize("node", [None, "feedback", "result_collector"])
async def test_a_long_result_that_is_edited_when_all_is_done_is_heard(model, tmp_path, node):
    seen = []
    async with open_storage(tmp_path / "runs.db") as storage:
        graph = build_graph(team_of(model, seen, effects="pure"), storage=storage)
        await graph.ainvoke({"plan": PLAN}, THREAD, interrupt_before=["final_answer"])
        held = (await state_of(graph))["current_specialist_results"]
        assert held["2/b"].excerpt
        seen.clear()
        own = held["1/a"].replace(result=AIMessage("Seven."))
        await graph.aupdate_state(THREAD, {"current_specialist_results": {"1/a": own}}, node)
        state = await graph.ainvoke(None, THREAD)
    assert seen == [(2, {1: "Seven."})]
    assert "done again: 2 (given another result of 1)" in str(state["warnings"])


async def test_an_excerpt_that_is_written_as_it_was_stays_the_whole_result(model, tmp_path):
    seen = []
    async with open_storage(tmp_path / "runs.db") as storage:
        graph = build_graph(team_of(model, seen), storage=storage)
        await graph.ainvoke({"plan": PLAN}, THREAD, context=IN_STEPS, interrupt_after=["feedback"])
        held = (await state_of(graph))["current_specialist_results"]["1/a"]
        written = {"current_specialist_results": {"1/a": held.model_dump(mode="json")}}
        await graph.aupdate_state(THREAD, written)
        await graph.ainvoke(None, THREAD)
    assert seen[1] == (2, {1: long_text(1)})


async def test_a_refused_edit_does_not_count_in_the_log(model, tmp_path):
    async with open_storage(tmp_path / "runs.db") as storage:
        graph = build_graph(team_of(model), storage=storage)
        await graph.ainvoke({"plan": PLAN}, THREAD, interrupt_before=["feedback"])
        state = await state_of(graph)
        edit = {"current_plan": {"content": PLAN.replace("Sum", "Add")}, "current_round": "many"}
        with pytest.raises(Exception, match="current_round"):
            await graph.aupdate_state(THREAD, edit)
        rows = await storage.log.rows(state["run_id"])
    (row,) = [each for each in rows if each.kind == "edit"]
    assert not row.counts


async def test_a_result_that_the_log_lost_says_that_the_rest_is_missing(model, tmp_path):
    async with open_storage(tmp_path / "runs.db") as storage:
        graph = build_graph(team_of(model), storage=storage)
        await graph.ainvoke({"plan": PLAN}, THREAD, interrupt_before=["feedback"])
        run_id = (await state_of(graph))["run_id"]
    with closing(sqlite3.connect(tmp_path / "runs.db")) as file:
        file.execute("DELETE FROM replan_log WHERE run_id = ? AND key LIKE 'result/%'", [run_id])
        file.commit()
    async with open_storage(tmp_path / "runs.db") as storage:
        graph = build_graph(team_of(model), storage=storage)
        await graph.ainvoke(None, THREAD)
    told = f"The beginning of {len(long_text(1))} characters; the rest is lost."
    assert told in prompt_of(model, "feedback")


async def test_a_run_is_continued_from_a_document_with_the_whole_results(model, tmp_path):
    seen = []
    async with open_runtime(team_of(model, seen), storage=tmp_path / "runs.db") as runtime:
        first = await runtime.run({"plan": "- [ ] 1. Count @a\n"})
        again = await runtime.run({"plan": f"{first.document}\n- [ ] 2. Sum @b (after 1)\n"})
        held = (await runtime.graph.aget_state(thread_of(again))).values["carried_results"]["1/a"]
        assert again.state["carried_results"]["1/a"].text == long_text(1)
    assert (held.excerpt, held.text.startswith("Result of step 1")) == (True, True)
    assert seen[1] == (2, {1: long_text(1)})


async def test_a_document_of_another_tenants_run_brings_no_more_than_it_shows(model, tmp_path):
    seen = []
    mine, other = RunSettings(tenant="mine"), RunSettings(tenant="other")
    async with open_runtime(team_of(model, seen), storage=tmp_path / "runs.db") as runtime:
        first = await runtime.run({"plan": "- [ ] 1. Count @a\n"}, settings=mine)
        more = {"plan": f"{first.document}\n- [ ] 2. Sum @b (after 1)\n"}
        for settings in (other, mine, None):
            await runtime.run(more, settings=settings)
    given = [inputs[1] for step, inputs in seen if step == 2]
    assert [each == long_text(1) for each in given] == [False, True, True]
    assert given[0] == first.plan.step(1).result


def thread_of(result):
    return {"configurable": {"thread_id": result.run_id}}


async def test_a_result_is_stored_whole_once_and_twice_as_an_excerpt(model, tmp_path):
    path = tmp_path / "runs.db"
    async with open_runtime(team_of(model), storage=path) as runtime:
        result = await runtime.run({"plan": PLAN})
        (prompt,) = [
            text
            for each in await runtime.storage.log.rows(result.run_id)
            if each.kind == "model_invoked"
            for part in each.event["prompt"]
            if END in (text := await runtime.storage.log.text(result.run_id, part["ref"]) or "")
        ]
    assert prompt.count(long_text(1).strip()) == 1
    with closing(sqlite3.connect(path)) as file:
        tables = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = [row for (table,) in tables for row in file.execute(f"SELECT * FROM {table}")]  # noqa: S608 - ours
    values = [value for row in rows for value in row if isinstance(value, bytes)]
    stored = [unpack(value) if value.startswith(b"x\x01") else value for value in values]
    whole, any_part = long_text(1).encode(), b"Result of step 1: "
    assert sum(each.count(whole) for each in stored) == 1
    assert sum(each.count(any_part) for each in stored) == 3


async def test_a_run_that_waits_travels_with_whole_results(model, tmp_path):
    def work(context):
        return ask_user("Which?") if context.plan_step.id == 2 else long_text(1)

    async with open_runtime(team_of(model, work=work), storage=tmp_path / "a.db") as runtime:
        result = await runtime.run({"plan": PLAN})
        carried = await runtime.export(result.run_id)
    seen = []
    async with open_runtime(team_of(model, seen), storage=tmp_path / "b.db") as runtime:
        await runtime.adopt(type(carried).of_json(carried.to_json()), thread_id="t")
        await runtime.answer(result.run_id, "The first.")
        done = await runtime.wait(result.run_id)
    assert done.outcome == "completed"
    assert seen == [(2, {1: long_text(1)})]


async def test_a_short_result_of_a_long_one_is_not_made_again(where):
    """The branch after the judgement has the beginning of the long one only."""

    def work(context):
        return "long " * 2_000 if context.plan_step.id == 1 else "short"

    member = Specialist(name="a", intended_use="Works.", run=work, effects="pure")
    judged = "---\nverdict: complete\n---\nThe end."
    with ScriptedModel({"feedback": judged}) as model:
        team = Team(host=Host(model=model), specialists=[member])
        async with open_runtime(team, storage=where) as runtime:
            plan = "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n"
            result = await runtime.run({"plan": plan})
    assert (result.outcome, result.text) == ("completed", "The end.")
