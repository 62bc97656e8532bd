"""Tools that graphs, runnables and functions call are told like those of our own loops."""

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from replan import Host, MultiAgentCallback, Specialist, Team, build_graph, run, stream
from replan.testing import ScriptedModel, always

PLAN = {"plan": "- [ ] 1. Price of gold @buyer (retries 0)\n"}
DONE = {"feedback": always("---\nverdict: complete\n---\nDone.")}


@tool
async def price(of: str) -> str:
    """Tell a price."""
    return f"42 for {of}"


@tool
def plain_price(of: str) -> str:
    """Tell a price."""
    return f"42 for {of}"


@tool
async def broken(of: str) -> str:
    """Tell no price."""
    raise ValueError(f"no quote for {of}")


@tool
async def through(of: str) -> str:
    """Ask another tool."""
    return await price.ainvoke({"of": of})


async def told_by(specialist):
    """The events of the tools of a run."""
    graph = build_graph(Team(Host(ScriptedModel(DONE)), [specialist]))
    return [each async for each in stream(graph, PLAN) if each.type.startswith("tool_")]


def graph_calling(name, tools):
    """A graph of somebody else, whose tool node calls a tool."""

    def asks(state):
        called = {"name": name, "args": {"of": "gold"}, "id": "c", "type": "tool_call"}
        return {"messages": [AIMessage("", tool_calls=[called])]}

    def says(state):
        return {"messages": [AIMessage(state["messages"][-1].text)]}

    graph = StateGraph(MessagesState)
    graph.add_node("asks", asks)
    graph.add_node("tools", ToolNode(tools, handle_tool_errors=True))
    graph.add_node("says", says)
    graph.add_edge(START, "asks").add_edge("asks", "tools").add_edge("tools", "says")
    return graph.compile()


@pytest.mark.parametrize("called", [price, plain_price])
async def test_the_tools_of_a_graph_are_told_with_step_and_attempt(called):
    graph = graph_calling(called.name, [called])
    begun, ended = await told_by(Specialist("buyer", "Buys.", invokable=graph, effects="pure"))
    assert (begun.type, begun.tool, begun.arguments) == (
        "tool_invoked",
        called.name,
        {"of": "gold"},
    )
    assert (begun.node, begun.step_id, begun.specialist, begun.attempt) == (
        "specialist_buyer",
        1,
        "buyer",
        1,
    )
    assert (begun.effects, begun.approval, begun.call) == ("pure", None, ended.call)
    assert (ended.type, ended.status, ended.result) == ("tool_completed", "success", "42 for gold")


async def test_an_error_of_a_graphs_tool_is_told():
    graph = graph_calling("broken", [broken])
    begun, ended = await told_by(Specialist("buyer", "Buys.", invokable=graph))
    assert (begun.effects, ended.status) == ("unsafe", "failed")
    assert ended.result == "ValueError: no quote for gold"


def calls_plainly(context):
    return plain_price.invoke({"of": "gold"})


async def calls(context):
    return await price.ainvoke({"of": "gold"})


async def calls_from_a_runnable(messages):
    return await price.ainvoke({"of": "gold"})


@pytest.mark.parametrize(
    "specialist",
    [
        Specialist("buyer", "Buys.", run=calls_plainly),
        Specialist("buyer", "Buys.", run=calls),
        Specialist("buyer", "Buys.", invokable=RunnableLambda(calls_from_a_runnable)),
    ],
    ids=["plain function", "function", "runnable"],
)
async def test_tools_that_code_calls_are_told(specialist):
    begun, ended = await told_by(specialist)
    assert (begun.step_id, begun.attempt, begun.arguments) == (1, 1, {"of": "gold"})
    assert (ended.status, ended.result) == ("success", "42 for gold")


async def test_a_tool_of_our_own_loop_is_told_once_and_what_it_calls_too():
    called = {"name": "through", "args": {"of": "gold"}, "id": "c", "type": "tool_call"}
    model = ScriptedModel({"specialist": [AIMessage("", tool_calls=[called]), "Dear."]})
    specialist = Specialist("buyer", "Buys.", chat_model=model, tools=[through])
    told = [(each.type, each.tool, each.call) for each in await told_by(specialist)]
    (_, _, inner) = told[1]
    assert told == [
        ("tool_invoked", "through", "0.0"),
        ("tool_invoked", "price", inner),
        ("tool_completed", "price", inner),
        ("tool_completed", "through", "0.0"),
    ]


async def test_a_tool_that_is_cut_off_by_the_end_of_its_attempt_is_told_as_cancelled():
    @tool
    async def endless(of: str) -> str:
        """Tell nothing."""
        await asyncio.Event().wait()

    async def gives_up(context):
        async with asyncio.timeout(0.01):
            await endless.ainvoke({"of": "gold"})

    _, ended = await told_by(Specialist("buyer", "Buys.", run=gives_up))
    assert (ended.type, ended.status) == ("tool_completed", "cancelled")


async def test_where_nobody_hears_a_tool_is_not_looked_at():
    seen = []

    async def looks(context, config):
        seen.extend(type(each).__name__ for each in config["callbacks"].handlers)
        return await price.ainvoke({"of": "gold"}, config)

    class Hears(MultiAgentCallback):
        async def on_event(self, event):
            """Hear it."""

    team = [Specialist("buyer", "Buys.", run=looks)]
    await run(Team(Host(ScriptedModel(DONE)), team), PLAN)
    assert "ForeignTools" not in seen
    await run(Team(Host(ScriptedModel(DONE)), team, callbacks=[Hears()]), PLAN)
    assert "ForeignTools" in seen


async def test_the_tools_of_an_inner_run_are_told_by_the_run_around_it_too():
    called = {"name": "price", "args": {"of": "gold"}, "id": "c", "type": "tool_call"}
    model = ScriptedModel({"specialist": [AIMessage("", tool_calls=[called]), "Dear."], **DONE})
    inner = build_graph(
        Team(Host(model), [Specialist("asker", "Asks.", chat_model=model, tools=[price])])
    )

    async def runs(context):
        given = {"messages": [HumanMessage("x")], "plan": "- [ ] 1. Ask @asker\n"}
        return (await run(inner, given)).text

    begun, ended = await told_by(Specialist("buyer", "Buys.", run=runs))
    assert (begun.tool, begun.specialist, ended.status) == ("price", "buyer", "success")
    assert begun.tool_call_id == ended.tool_call_id == "c"
