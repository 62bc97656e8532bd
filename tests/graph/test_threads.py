"""Runs on a thread: several after each other, interrupted ones, killed ones, edited ones."""

import asyncio

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError

from replan import (
    Host,
    InputError,
    PlanDocumentError,
    Specialist,
    Team,
    build_graph,
    run,
)
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD, given
from states import state_of


def graph_of(work, model, checkpointer):
    team = [Specialist(name="a", intended_use="Works.", run=work, effects="pure")]
    config = Team(host=Host(model=model), specialists=team)
    return build_graph(config, checkpointer=checkpointer)


async def test_a_second_message_on_a_thread_starts_a_fresh_run(team, script):
    second = "---\ncomplexity: simple\n---\nYou asked to compare."
    with ScriptedModel({**script, "think": [script["think"], second]}) as model:
        graph = team(model, checkpointer=InMemorySaver())
        first = (await run(graph, "Compare.", config=THREAD)).state
        state = (await run(graph, "What did I ask?", config=THREAD)).state
    assert state["outcome"] == "answered"
    assert state["run_id"] != first["run_id"]
    assert [message.type for message in state["messages"]] == ["human", "ai", "human", "ai"]
    assert state["current_plan"] is None
    assert state["usage"].calls == 1
    assert len(state["thinking_history"]) == 2
    assert len(state["execution_history"]) == 1
    assert "Compare." in model.calls[-1].messages[1].text


async def test_a_new_message_keeps_what_an_overtaken_run_had_finished():
    blocked = asyncio.Event()

    async def work(context):
        if context.plan_step.id == 2:
            blocked.set()
            await asyncio.Event().wait()
        return "finished text"

    plan = "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n"
    with ScriptedModel({"think": "---\ncomplexity: simple\n---\nYes."}) as model:
        graph = graph_of(work, model, InMemorySaver())
        running = asyncio.ensure_future(state_of(run(graph, given(plan), config=THREAD)))
        await blocked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        state = (await run(graph, "Still there?", config=THREAD)).state
    kept = state["execution_history"][0].results.results
    assert kept["1/a"].text == "finished text"
    system, *others = model.calls[0].messages
    assert "Two" not in system.text
    assert any("Two" in message.text for message in others)


async def test_a_wrong_edit_of_the_state_is_refused_and_a_right_one_is_used():
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        graph = graph_of(lambda c: "done", model, InMemorySaver())
        given = {"messages": [("user", "Go.")], "plan": "- [ ] 1. One @a\n"}
        await run(graph, given, config=THREAD)
        with pytest.raises(InvalidUpdateError, match="current_plan"):
            await graph.aupdate_state(THREAD, {"current_plan": {"steps": "none"}})
        plan = {"title": "Edited", "steps": [{"id": 1, "description": "One"}]}
        await graph.aupdate_state(THREAD, {"current_plan": plan})
        state = (await graph.aget_state(THREAD)).values
    assert state["current_plan"].title == "Edited"


async def test_a_plan_with_mistakes_is_refused_with_their_places():
    with ScriptedModel({}) as model:
        graph = graph_of(lambda c: "done", model, None)
        with pytest.raises(PlanDocumentError, match="line 2"):
            await run(graph, {"plan": "- [ ] 1. One @a\n- [ ] 1. Again @a\n"})


async def test_nothing_to_do_is_refused():
    with ScriptedModel({}) as model:
        graph = graph_of(lambda c: "done", model, None)
        with pytest.raises(InputError, match="give `messages`"):
            await run(graph, {"messages": []})
