"""A graph of ours inside of another graph: as its node, or run by one of its nodes."""

import logging
from dataclasses import dataclass

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde import jsonplus
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command

from replan import (
    Host,
    Limits,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    run,
    stream,
)
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD
from states import state_of

PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Do it @a\n- [ ] 2. Do more @a (after 1)\n"


@dataclass
class Tenant:
    name: str = "acme"


def ours(work=lambda context: "done"):
    model = ScriptedModel(
        {"think": always(PLAN), "feedback": always(COMPLETE), "final_answer": always("Cut.")}
    )
    team = [Specialist(name="a", intended_use="Works.", run=work)]
    return build_graph(Team(host=Host(model=model), specialists=team))


def by_invoking(graph):
    async def node(state, config):
        return {"messages": [(await graph.ainvoke(state, config))["final_answer"]]}

    return node


def by_running(graph):
    async def node(state):
        return {"messages": [(await run(graph, state)).state["final_answer"]]}

    return node


def by_streaming(graph):
    async def node(state):
        events = [event async for event in stream(graph, state)]
        return {"messages": [events[-1].answer]}

    return node


def as_it_is(graph):
    return graph


@pytest.mark.parametrize("way", [as_it_is, by_invoking, by_running, by_streaming])
async def test_a_context_of_the_graph_around_it_is_left_to_those_who_know_it(way):
    seen = []
    graph = ours(lambda context: seen.append(get_runtime(Tenant).context.name) or "done")
    around = StateGraph(MessagesState, context_schema=Tenant)
    whole = around.add_node("ours", way(graph)).add_edge(START, "ours").compile()
    state = await whole.ainvoke({"messages": [("user", "Go.")]}, context=Tenant())
    assert state["messages"][-1].text == "The answer."
    assert seen == ["acme", "acme"]


async def test_a_team_inside_of_a_team_has_its_own_settings():
    inner, seen = ours(), []

    async def delegate(context, config):
        state = await inner.ainvoke({"messages": [("user", "Go.")]}, config)
        seen.append((state["outcome"], state["settings"].limits.max_steps))
        return "done"

    settings = RunSettings(limits=Limits(max_steps=1))
    state = await state_of(
        run(ours(delegate), {"plan": "- [ ] 1. Hand it on @a\n"}, settings=settings)
    )
    assert state["settings"].limits.max_steps == 1
    assert seen == [("completed", 100)]


async def test_a_saver_of_the_graph_around_it_is_no_reason_to_warn(caplog, monkeypatch):
    monkeypatch.setattr(jsonplus, "_warned_unregistered_types", set())
    graph = ours(lambda context: ask_user("Which?"))
    around = StateGraph(MessagesState).add_node("ours", graph).add_edge(START, "ours")
    whole = around.compile(checkpointer=InMemorySaver())
    with caplog.at_level(logging.WARNING):
        await whole.ainvoke({"messages": [("user", "Go.")]}, THREAD)
        await whole.ainvoke(Command(resume="A"), THREAD)
        state = await whole.ainvoke(Command(resume="B"), THREAD)
    assert state["messages"][-1].text == "The answer."
    assert [each.getMessage() for each in caplog.records if "replan" in each.getMessage()] == []


def asking_around():
    """A graph that asks for two colours, called by a node of a graph with a state of its own."""
    model = ScriptedModel({"feedback": always(COMPLETE)})
    team = [Specialist("a", "Asks.", run=lambda context: ask_user("Which?"), effects="pure")]
    graph = build_graph(Team(Host(model), team))

    async def node(state, config):
        given = {"messages": [("user", "Go.")], "plan": "- [ ] 1. One @a\n- [ ] 2. Two @a\n"}
        results = (await graph.ainvoke(given, config))["current_specialist_results"]
        return {"messages": [AIMessage(", ".join(each.text for each in results.values()))]}

    around = StateGraph(MessagesState).add_node("ours", node).add_edge(START, "ours")
    return around.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("first", ["by key", "by interrupt"])
@pytest.mark.parametrize("second", ["by key", "by interrupt", "alone"])
async def test_questions_of_an_inner_run_are_answered_one_by_one_in_any_way(first, second):
    whole, thread = asking_around(), {"configurable": {"thread_id": "t"}}
    state = await whole.ainvoke({"messages": [("user", "Go.")]}, thread)
    for way, answer in ((first, {"1/a/1": "red"}), (second, {"2/a/1": "blue"})):
        (asked,) = state["__interrupt__"]
        forms = {"by key": answer, "by interrupt": {asked.id: answer}, "alone": {asked.id: "blue"}}
        state = await whole.ainvoke(Command(resume=forms[way]), thread)
    assert state["messages"][-1].text == "red, blue"
