"""LangGraph's store is at hand wherever a specialist or a tool works, and outlives the run."""

from typing import Annotated, Any

import pytest
from langchain.tools import InjectedStore, ToolRuntime
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.config import get_store
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime, get_runtime
from langgraph.store.memory import InMemoryStore

from replan import Host, Specialist, Team, build_graph, open_runtime, open_storage, run
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, SIMPLE, THREAD

PLAN = "- [ ] 1. Remember it @a\n"
OF_ALL = ("notes",)
KEPT = {"text": "The sea is blue."}


def function(context):
    get_store().put(OF_ALL, "k", KEPT)
    return get_store().get(OF_ALL, "k").value["text"]


async def async_function(context):
    await get_store().aput(OF_ALL, "k", KEPT)
    return (await get_store().aget(OF_ALL, "k")).value["text"]


async def function_with_the_runtime(context):
    await get_runtime().store.aput(OF_ALL, "k", KEPT)
    return "done"


def runnable(messages):
    return AIMessage(function(messages))


async def node(state: MessagesState, runtime: Runtime[Any]):
    await runtime.store.aput(OF_ALL, "k", KEPT)
    return {"messages": [AIMessage("done")]}


def plain_node(state: MessagesState, runtime: Runtime[Any]):
    runtime.store.put(OF_ALL, "k", KEPT)
    return {"messages": [AIMessage("done")]}


def graph_with(one):
    return StateGraph(MessagesState).add_node("one", one).add_edge(START, "one").compile()


@tool
def by_injection(said: str, store: Annotated[Any, InjectedStore()]) -> str:
    """Remember it."""
    store.put(OF_ALL, "k", {"text": said})
    return "kept"


@tool
async def by_async_injection(said: str, store: Annotated[Any, InjectedStore()]) -> str:
    """Remember it."""
    await store.aput(OF_ALL, "k", {"text": said})
    return "kept"


@tool
async def by_runtime(said: str, runtime: ToolRuntime) -> str:
    """Remember it."""
    await runtime.store.aput(OF_ALL, "k", {"text": said})
    return "kept"


@tool
def by_asking(said: str) -> str:
    """Remember it."""
    get_store().put(OF_ALL, "k", {"text": said})
    return "kept"


WORKERS = {
    "function": {"run": function},
    "async function": {"run": async_function},
    "function with the runtime": {"run": function_with_the_runtime},
    "runnable": {"invokable": RunnableLambda(runnable)},
    "graph": {"invokable": graph_with(node)},
    "graph with a plain node": {"invokable": graph_with(plain_node)},
}
TOOLS = [by_injection, by_async_injection, by_runtime, by_asking]


@pytest.fixture(params=["memory", "sqlite"])
def where(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "runs.db"


def team_of(model, **worker):
    return Team(host=Host(model=model), specialists=[Specialist("a", "Works.", **worker)])


async def remembered(team, where, given):
    """What the store has after a run of the team."""
    async with open_storage(where) as storage:
        result = await run(build_graph(team, storage=storage), given, config=THREAD)
        assert result.outcome in ("completed", "answered"), result
        return await storage.store.aget(OF_ALL, "k")


@pytest.mark.parametrize("name", WORKERS)
async def test_a_specialist_of_any_kind_has_the_store(name, where):
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        item = await remembered(team_of(model, **WORKERS[name]), where, {"plan": PLAN})
    assert item.value == KEPT


@pytest.mark.parametrize("given", TOOLS, ids=lambda each: each.name)
async def test_a_tool_has_the_store(given, where):
    wish = AIMessage("", tool_calls=[{"name": given.name, "args": {"said": "Hi."}, "id": "1"}])
    script = {"step 1/a": [wish, "Kept."], "feedback": always(COMPLETE)}
    with ScriptedModel(script) as model:
        team = team_of(model, chat_model=model, tools=[given], effects="pure")
        item = await remembered(team, where, {"plan": PLAN})
    assert item.value == {"text": "Hi."}


async def test_a_tool_of_the_host_has_the_store(where):
    wish = AIMessage("", tool_calls=[{"name": "by_asking", "args": {"said": "Hi."}, "id": "1"}])
    with ScriptedModel({"think": SIMPLE, "direct_answer": [wish, "Kept."]}) as model:
        host = Host(model=model, tools=[by_asking])
        team = Team(host=host, specialists=[Specialist("a", "Works.", run=function)])
        item = await remembered(team, where, "Remember it.")
    assert item.value == {"text": "Hi."}


async def test_a_graph_inside_of_another_one_has_the_store_of_that(tmp_path):
    outer = InMemoryStore()
    async with open_storage(tmp_path / "runs.db") as storage:
        think = f"---\ncomplexity: complex\n---\n{PLAN}"
        with ScriptedModel({"think": think, "feedback": always(COMPLETE)}) as model:
            inner = build_graph(team_of(model, run=function), storage=storage)
            around = StateGraph(MessagesState).add_node("ours", inner).add_edge(START, "ours")
            whole = around.compile(store=outer)
            await whole.ainvoke({"messages": [("user", "Go.")]})
        assert await storage.store.aget(OF_ALL, "k") is None
    assert outer.get(OF_ALL, "k").value == KEPT


def test_synchronous_callers_have_the_store_of_a_runtime(tmp_path):
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        for work in (function, lambda _: get_store().get(OF_ALL, "k").value["text"]):
            with open_runtime(team_of(model, run=work), storage=tmp_path / "runs.db") as runtime:
                result = runtime.run({"plan": PLAN})
            assert [each.text for each in result.results.values()] == [KEPT["text"]]


async def test_removing_a_run_leaves_what_it_remembered(where):
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with (
            open_storage(where) as storage,
            open_runtime(team_of(model, run=function), storage=storage) as runtime,
        ):
            result = await runtime.run({"plan": PLAN})
            await storage.runs.remove(result.run_id)
            assert await storage.runs.recent(9) == []
            assert (await storage.store.aget(OF_ALL, "k")).value == KEPT
