"""A result that a person edits in the state: what was made of it before is done again."""

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from replan import (
    Host,
    Limits,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_storage,
    waiting_for,
)
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD

CHAIN = (
    "- [ ] 1. Count @a\n- [ ] 2. Sum @b (after 1)\n- [ ] 3. Draw @b (after 2)\n"
    "- [ ] 4. Look @a\n- [ ] 5. Write @a (after 3, 4)\n"
)
IN_STEPS = RunSettings(round_scope="step")


@pytest.fixture(params=["memory", "file"])
async def saver(request, tmp_path):
    if request.param == "memory":
        yield InMemorySaver()
    else:
        async with open_storage(tmp_path / "runs.db") as storage:
            yield storage.checkpointer


def graph_of(saver, seen, effects="keyed", **special):
    def work(context):
        step = context.plan_step
        if step.description in special:
            return special[step.description](context)
        seen.append((step.id, dict(context.inputs)))
        return f"{step.description}({', '.join(context.inputs.values())})"

    model = ScriptedModel({"feedback": always(COMPLETE), "final_answer": always("Answer.")})
    team = [Specialist(name=n, intended_use="Works.", run=work, effects=effects) for n in "ab"]
    config = Team(host=Host(model=model), specialists=team, limits=Limits(step_retries=0))
    return build_graph(config, checkpointer=saver)


async def stopped(graph, rounds, plan=CHAIN, **settings):
    """A run that stands before the round after so many."""
    given, context = {"plan": plan}, IN_STEPS.model_copy(update=settings)
    for _ in range(rounds + 1):
        await graph.ainvoke(given, THREAD, context=context, interrupt_before=["plan_execution"])
        given = None
    return (await graph.aget_state(THREAD)).values


async def edit(graph, state, texts):
    """Put other texts into results, as a person does."""
    old = state["current_specialist_results"]
    new = {key: old[key].replace(result=AIMessage(text)) for key, text in texts.items()}
    await graph.aupdate_state(THREAD, {"current_specialist_results": new})


async def test_what_was_made_of_an_edited_result_is_done_again_in_its_order(saver):
    seen = []
    graph = graph_of(saver, seen)
    held = await stopped(graph, 3)
    seen.clear()
    await edit(graph, held, {"1/a": "Seven"})
    state = await graph.ainvoke(None, THREAD)
    assert seen == [
        (2, {1: "Seven"}),
        (3, {2: "Sum(Seven)"}),
        (4, {}),
        (5, {3: "Draw(Sum(Seven))", 4: "Look()"}),
    ]
    assert state["outcome"] == "completed"
    (told,) = state["warnings"]
    assert "2 (given another result of 1), 3 (after 2)" in told


async def test_a_result_that_is_edited_when_all_is_done_is_still_heard(saver):
    seen = []
    graph = graph_of(saver, seen)
    await graph.ainvoke({"plan": CHAIN}, THREAD, interrupt_before=["final_answer"])
    seen.clear()
    await edit(graph, (await graph.aget_state(THREAD)).values, {"2/b": "Nine"})
    state = await graph.ainvoke(None, THREAD)
    assert seen == [(3, {2: "Nine"}), (5, {3: "Draw(Nine)", 4: "Look()"})]
    assert state["outcome"] == "completed"
    assert state["current_round"] == 2


async def test_the_same_text_written_again_changes_nothing(saver):
    seen = []
    graph = graph_of(saver, seen)
    await edit(graph, await stopped(graph, 3), {"1/a": "Count()"})
    state = await graph.ainvoke(None, THREAD)
    assert [step for step, _ in seen] == [1, 2, 3, 4, 5]
    assert state["warnings"] == []


async def test_a_result_that_a_person_wrote_is_not_written_over(saver):
    seen = []
    graph = graph_of(saver, seen)
    held = await stopped(graph, 3)
    seen.clear()
    await edit(graph, held, {"1/a": "Seven", "2/b": "Mine"})
    await graph.ainvoke(None, THREAD)
    assert [step for step, _ in seen] == [3, 4, 5]
    assert seen[0] == (3, {2: "Mine"})


async def test_a_result_of_an_earlier_version_is_not_done_again_by_a_guess(saver):
    seen = []
    graph = graph_of(saver, seen)
    held = await stopped(graph, 2)
    seen.clear()
    old = held["current_specialist_results"]
    unknown = {"2/b": old["2/b"].replace(made_of=None)}
    await graph.aupdate_state(THREAD, {"current_specialist_results": unknown})
    await edit(graph, held, {"1/a": "Seven"})
    await graph.ainvoke(None, THREAD)
    assert [step for step, _ in seen] == [3, 4, 5]


@pytest.mark.parametrize("effects", ["unsafe", None])
async def test_unsafe_work_asks_before_an_edited_result_has_it_done_again(saver, effects):
    seen = []
    graph = graph_of(saver, seen, effects)
    held = await stopped(graph, 2)
    seen.clear()
    await edit(graph, held, {"1/a": "Seven"})
    state = await graph.ainvoke(None, THREAD)
    (question,) = waiting_for(state)
    assert (question.step_id, "was done in attempt 1" in question.text) == (2, True)
    # What does not lean on the answer goes on meanwhile.
    assert seen == [(4, {})]
    state = await graph.ainvoke(Command(resume={question.key: "run again"}), THREAD)
    assert seen[1] == (2, {1: "Seven"})
    assert state["outcome"] == "completed"


async def test_a_failure_that_a_person_makes_a_result_reaches_what_was_done_without_it(saver):
    seen = []

    def fail(context):
        raise ValueError("broken")

    plan = "- [ ] 1. Count @a (optional)\n- [ ] 2. Sum @b (after 1)\n- [ ] 3. Draw @b (after 2)\n"
    graph = graph_of(saver, seen, Count=fail)
    held = await stopped(graph, 2, plan)
    assert seen == [(2, {})]
    found = held["current_plan"]
    first = found.step(1).replace(status="completed", result="Seven", feedback="")
    await graph.aupdate_state(THREAD, {"current_plan": found.with_steps(first)})
    state = await graph.ainvoke(None, THREAD)
    assert seen[1:] == [(2, {1: "Seven"}), (3, {2: "Sum(Seven)"})]
    assert state["outcome"] == "completed"


async def test_an_edit_while_a_step_waits_for_an_answer_is_heard_when_it_comes(saver):
    seen = []

    def draw(context):
        seen.append((ask_user("Which colour?"), dict(context.inputs)))
        return "Drawn"

    graph = graph_of(saver, seen, Draw=draw)
    plan = "- [ ] 1. Count @a\n- [ ] 2. Sum @b (after 1)\n- [ ] 3. Draw @b (after 2)\n"
    await graph.ainvoke({"plan": plan}, THREAD)
    seen.clear()
    await edit(graph, (await graph.aget_state(THREAD)).values, {"1/a": "Seven"})
    state = await graph.ainvoke(None, THREAD)
    (question,) = waiting_for(state)
    state = await graph.ainvoke(Command(resume={question.key: "Red"}), THREAD)
    assert seen == [(2, {1: "Seven"}), ("Red", {2: "Sum(Seven)"})]
    assert state["outcome"] == "completed"


async def test_what_happened_before_a_new_request_is_closed(saver):
    seen = []
    graph = graph_of(saver, seen)
    state = await graph.ainvoke({"plan": CHAIN}, THREAD)
    seen.clear()
    await edit(graph, state, {"1/a": "Seven"})
    await graph.ainvoke(None, THREAD)
    assert seen == []
    await graph.ainvoke({"plan": "- [ ] 1. Other @a\n"}, THREAD)
    assert seen == [(1, {})]
