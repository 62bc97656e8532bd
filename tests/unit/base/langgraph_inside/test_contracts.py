"""What Replan needs of LangGraph and LangChain beyond what they promise, each thing by itself."""

import asyncio
import inspect
import logging
import operator
from datetime import UTC, datetime
from typing import Annotated, Any, TypedDict

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, tool
from langchain_openai import ChatOpenAI
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Overwrite, Send, interrupt
from pydantic import BaseModel

from replan.base.langgraph_inside import (
    callbacks,
    checkpoints,
    langchain,
    langgraph_channels,
    lean_branches,
    tasks,
)


def appended(old, new):
    return [*old, *(number for numbers in new for number in numbers)]


class Numbers(TypedDict):
    numbers: Annotated[list[int], langgraph_channels.Delta(appended, list[int])]
    seen: Any


def graph_of(node, saver=None, state=Numbers):
    graph = StateGraph(state)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph.compile(checkpointer=saver)


def test_a_delta_channel_has_no_slots_but_those_that_a_twin_takes_over():
    slots = {name for kind in DeltaChannel.__mro__ for name in getattr(kind, "__slots__", ())}
    taken = {"key", "typ", "reducer", "value", "snapshot_frequency"}
    assert slots - {"__weakref__", "__dict__", "__orig_class__"} <= taken


def forking_graph():
    """A graph with a command, a reset, a branch, parallel tasks and a question."""

    async def begin(state: Numbers):
        return Command(update={"numbers": [1], "seen": state.get("seen")}, goto="fork")

    async def fork(_: Numbers):
        return {"numbers": Overwrite([2])}

    async def sends(state: Numbers):
        return [Send("add", number) for number in (*state["numbers"], 3)]

    async def add(number: int, config: RunnableConfig):
        read = tasks.read_state(config, ["numbers", "seen"])
        return {"numbers": [number + sum(read["numbers"])]}

    async def ask(_: Numbers):
        return {"seen": interrupt("Which?")}

    graph = StateGraph(Numbers)
    for name, node in (("begin", begin), ("fork", fork), ("add", add), ("ask", ask)):
        graph.add_node(name, node)
    graph.add_edge(START, "begin")
    graph.add_conditional_edges("fork", sends, ["add"])
    graph.add_edge("add", "ask")
    return graph.compile(InMemorySaver())


async def test_a_state_in_one_channel_changes_as_in_channels_of_its_own():
    async def work(compiled):
        config = {"configurable": {"thread_id": "t"}}
        states, snapshots = [], []
        edit = Command(update={"numbers": [5], "seen": 1}, goto="fork")
        begun = {"numbers": [7], "seen": 0}
        if langgraph_channels.is_in_one_channel(compiled):
            begun = langgraph_channels.given_at_once(compiled, begun)
        for given in (begun, None, Command(resume="this")):
            state = await compiled.ainvoke(given, config, durability="exit")
            states.append({**state, "__interrupt__": len(state.get("__interrupt__", ()))})
            snapshots.append(await compiled.aget_state(config))
            if len(states) == 1:
                await compiled.aupdate_state(config, edit, as_node="ask")
                snapshots.append(await compiled.aget_state(config))
        assert [*snapshots[0].values] == ["numbers", "seen"]
        return states, [(each.values, each.next, len(each.interrupts)) for each in snapshots]

    one = forking_graph()
    langgraph_channels.with_one_channel(one, {})
    assert await work(one) == await work(forking_graph())


async def test_a_thread_that_has_begun_is_as_behind_a_super_step_of_its_first_node():
    async def begin(state: Numbers):
        return {"numbers": [*state["numbers"], 2], "seen": 1}

    async def ask(_: Numbers):
        return {"seen": interrupt("Which?")}

    async def work(*, is_begun):
        graph = StateGraph(Numbers)
        graph.add_node("begin", begin)
        graph.add_node("ask", ask)
        graph.add_edge(START, "begin")
        graph.add_edge("begin", "ask")
        compiled = graph.compile(InMemorySaver())
        langgraph_channels.with_one_channel(compiled, {"numbers": [0]})
        assert langgraph_channels.begins_apart(compiled)
        config = {"configurable": {"thread_id": "t"}}
        given = langgraph_channels.given_at_once(compiled, {"numbers": [7]})
        if is_begun:
            given = await langgraph_channels.begun_at_once(compiled, {"numbers": [7]}, begin)
        await compiled.ainvoke(given, config, durability="exit")
        waiting = await compiled.aget_state(config)
        over = await compiled.ainvoke(Command(resume="this"), config)
        return waiting.values, waiting.next, len(waiting.interrupts), over

    assert await work(is_begun=True) == await work(is_begun=False)


async def test_a_lean_branch_reads_what_its_own_reader_does_and_copies_only_what_was_written():
    copied, read = [], []

    class Watched(langgraph_channels.Delta):
        __slots__ = ()

        def copy(self):
            copied.append(self.key)
            return super().copy()

    class Watching(TypedDict):
        numbers: Annotated[list[int], Watched(appended, list[int])]
        others: Annotated[list[int], Watched(appended, list[int])]

    async def branch(state: Watching, config: RunnableConfig):
        reader = config["configurable"]["__pregel_read"]
        here = len(copied)
        copied_by_it = copied[before[0] :]
        assert reader(["numbers", "others"], fresh=True) == state
        read.append((state, copied_by_it))
        del copied[here:]
        return END

    async def node(_: Watching):
        before[0] = len(copied)
        return {"numbers": [2]}

    before = [0]
    graph = StateGraph(Watching)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", branch)
    compiled = graph.compile()
    lean_branches.with_lean_branches(compiled)
    await compiled.ainvoke({"numbers": [1], "others": [0]})
    assert read == [({"numbers": [1, 2], "others": [0]}, ["numbers"])]


def test_savers_give_the_writes_of_delta_channels_by_keyword():
    asked = inspect.signature(BaseCheckpointSaver.aget_delta_channel_history).parameters
    kinds = {name: each.kind for name, each in asked.items() if name != "self"}
    only = inspect.Parameter.KEYWORD_ONLY
    assert kinds == {"config": only, "channels": only}
    assert {"writes", "seed"} <= set(checkpoints.DeltaChannelHistory.__annotations__)


def test_a_serializer_that_takes_every_class_is_told_from_a_strict_one():
    assert checkpoints.restores_everything(JsonPlusSerializer())
    assert not checkpoints.restores_everything(JsonPlusSerializer(allowed_msgpack_modules=[]))


def test_the_serializer_warns_of_unregistered_types_with_the_module_first(caplog):
    class Kept(BaseModel):
        pass

    Kept.__module__, Kept.__qualname__ = __name__, "Kept"
    serializer = JsonPlusSerializer()
    with caplog.at_level(logging.WARNING, checkpoints.SERIALIZER_LOG.name):
        serializer.loads_typed(serializer.dumps_typed(Kept()))
    warned = [each for each in caplog.records if checkpoints.UNREGISTERED in str(each.msg)]
    assert [each.args[0] for each in warned] == [__name__]


def test_the_clock_of_ids_can_be_set_forward(monkeypatch):
    monkeypatch.setattr(checkpoints.ids, "_last_v6_timestamp", None)
    later = checkpoints.CheckpointIds(lambda: datetime(2200, 1, 1, tzinfo=UTC), "").new(1)
    checkpoints.advance_id_clock(str(later))
    assert str(checkpoints.ids.uuid6(clock_seq=1)) > str(later)
    beyond = checkpoints.CheckpointIds(lambda: datetime(9999, 1, 1, tzinfo=UTC), "").new(1)
    checkpoints.advance_id_clock(str(beyond))
    assert str(checkpoints.ids.uuid6(clock_seq=1)) < str(beyond)


async def ids_on(saver, thread, year, name, given):
    """The ids of a thread, the oldest first, after a run whose clock stands still."""
    maker = checkpoints.CheckpointIds(lambda: datetime(year, 1, 1, tzinfo=UTC), name)
    config = {"configurable": {"thread_id": thread}}
    token = checkpoints.current_ids.set(maker)
    try:
        await graph_of(lambda _: {"seen": interrupt("?")}, saver).ainvoke(given, config)
    finally:
        checkpoints.current_ids.reset(token)
    return [each.checkpoint["id"] for each in saver.list(config)][::-1]


async def test_ids_of_a_thread_grow_whatever_the_clocks_say():
    saver = InMemorySaver()
    first = await ids_on(saver, "t", 2050, "a", {"numbers": []})
    second = await ids_on(saver, "t", 2020, "b", Command(resume="yes"))
    assert second[: len(first)] == first
    assert len(second) > len(first)
    assert second == sorted(second)


class Sent(TypedDict):
    number: int
    said: Annotated[list[str], operator.add]


class Asking:
    """Two tasks that were sent; in each, a graph of its own asks after its first node."""

    def __init__(self):
        self.begun = []
        self.saver = InMemorySaver()
        inner = StateGraph(Sent)
        inner.add_node("begin", lambda state: self.begun.append(state["number"]) or {})
        inner.add_node(
            "ask", lambda state: {"said": [f"{state['number']}: {interrupt(state['number'])}"]}
        )
        inner.add_edge(START, "begin")
        inner.add_edge("begin", "ask")
        asking = inner.compile()

        async def work(state: Sent, config: RunnableConfig):
            done = await asking.ainvoke(state, config)
            return {"said": done["said"]}

        outer = StateGraph(Sent)
        outer.add_node("work", work)
        outer.add_node("after", lambda _: {})
        each = [Send("work", {"number": number, "said": []}) for number in (1, 2)]
        outer.add_conditional_edges(START, lambda _: each)
        outer.add_edge("work", "after")
        self.graph = outer.compile(checkpointer=self.saver)

    async def tasks_on(self, thread):
        return (await self.graph.aget_state(thread_of(thread))).tasks

    async def put(self, found, thread, **changes):
        """Put a checkpoint on a thread, and what its tasks wrote."""
        place = {
            "thread_id": thread,
            "checkpoint_ns": found.config["configurable"]["checkpoint_ns"],
        }
        checkpoint = {**found.checkpoint, **changes}
        versions = checkpoint["channel_versions"]
        await self.saver.aput({"configurable": place}, checkpoint, found.metadata, versions)
        place["checkpoint_id"] = checkpoint["id"]
        for task_id, channel, value in found.pending_writes:
            await self.saver.aput_writes({"configurable": place}, [(channel, value)], task_id)


def thread_of(name):
    return {"configurable": {"thread_id": name}}


async def test_ids_of_tasks_follow_from_the_id_of_their_checkpoint_as_they_did_before():
    asking = Asking()
    await asking.graph.ainvoke({"number": 0, "said": []}, thread_of("here"))
    found = await asking.saver.aget_tuple(thread_of("here"))
    await asking.put(found, "there", id="1f0d2f3c-8a1e-6b40-8000-5d2c9b7e4a10")
    ids = [each.id for each in await asking.tasks_on("there")]
    # Runs that have begun with an earlier version are looked for by these.
    assert sorted(ids) == [
        "537e16ce-1a9a-c5ce-1279-58326df53371",
        "c22e0172-c7ff-4d3d-8355-98b68bca2d30",
    ]


class Noting(BaseCallbackHandler):
    raise_error = True
    run_inline = True

    def __init__(self):
        self.heard = []
        self.told = None

    async def _awaited(self, *given, **named):
        await asyncio.sleep(0)
        self.heard.append("awaited")
        self.told = callbacks.read_reported_call(given[0], named)

    def _plain(self, *given, **named):
        self.heard.append("plain")

    on_chat_model_start: Any = callbacks.either(_awaited, _plain)


async def test_a_callback_is_awaited_where_langchain_awaits_and_plain_elsewhere():
    handler, model = Noting(), FakeListChatModel(responses=["a", "b"])
    await model.ainvoke("?", {"callbacks": [handler]})
    await asyncio.to_thread(model.invoke, "?", {"callbacks": [handler]})
    assert handler.heard == ["awaited", "plain"]


@tool
def two(words: str) -> str:
    """Give two."""
    return "2"


def test_a_tool_without_a_coroutine_runs_in_a_thread():
    class Own(BaseTool):
        name: str = "own"
        description: str = "Own."

        def _run(self) -> str:
            return ""

        async def _arun(self) -> str:
            return ""

    async def later() -> str:
        """Give nothing."""
        return ""

    assert langchain.runs_in_thread(two)
    assert not langchain.runs_in_thread(Own())
    assert not langchain.runs_in_thread(StructuredTool.from_function(coroutine=later))


def test_the_client_of_an_openai_model_gives_its_own_retries_up():
    model = ChatOpenAI(model="m", api_key="k", max_retries=4)
    assert langchain.is_of_openai(model)
    patient, taken = langchain.without_own_retries(model)
    assert taken == 4
    assert patient.root_async_client.max_retries == 0
    assert patient.async_client is not model.async_client
    other = FakeListChatModel(responses=[])
    assert langchain.without_own_retries(other) == (other, 0)
