"""What Replan needs of LangGraph and LangChain beyond what they promise, each thing by itself."""

import asyncio
import inspect
import logging
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, tool
from langchain_openai import ChatOpenAI
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel.remote import RemoteGraph
from langgraph.runtime import RunControl, Runtime
from langgraph.types import Command, Overwrite, interrupt
from pydantic import BaseModel, create_model

from replan.langgraph_inside import callbacks, channels, checkpoints, graphs, models, tasks, tools


def appended(old, new):
    return [*old, *(number for numbers in new for number in numbers)]


class Numbers(TypedDict):
    numbers: Annotated[list[int], channels.Delta(appended, list[int])]
    seen: Any


def graph_of(node, saver=None, state=Numbers):
    graph = StateGraph(state)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph.compile(checkpointer=saver)


async def config_in(saver=None, **given):
    """The configuration that a node gets."""
    kept = []

    async def node(state: Numbers, config: RunnableConfig, runtime: Runtime[Any]):
        read = tasks.read_state(config, ["numbers"]) if tasks.can_read_state(config) else None
        kept.append((config, runtime, read))
        return {"seen": 1}

    call = {"configurable": {"thread_id": "t"}}
    await graph_of(node, saver).ainvoke({"numbers": [1, 2]}, call, **given)
    return kept[0]


async def test_a_task_can_read_the_channels_of_its_super_step():
    assert (await config_in())[2] == {"numbers": [1, 2]}


async def test_a_task_knows_whether_a_saver_keeps_the_run():
    assert tasks.is_checkpointed((await config_in(InMemorySaver()))[0])
    assert not tasks.is_checkpointed((await config_in())[0])


async def test_a_graph_inside_of_a_task_can_be_taken_out_of_the_runs_control():
    control = RunControl()
    config, runtime, _ = await config_in(control=control)
    assert tasks.runtime_in(config) is not None
    control.request_drain("stop")
    own = tasks.runtime_in(tasks.with_runtime(config, runtime, "context"))
    assert runtime.drain_requested
    assert not own.drain_requested
    assert own.context == "context"


async def test_what_runs_in_a_node_inherits_a_configuration_that_is_set():
    token = tasks.inherited_config.set({"metadata": {"who": "replan"}})
    try:
        given = await RunnableLambda(lambda _, config: config["metadata"]).ainvoke("")
    finally:
        tasks.inherited_config.reset(token)
    assert given["who"] == "replan"


async def test_the_writer_of_a_node_that_nobody_reads_is_known_by_its_code():
    assert tasks.does_nothing((await config_in())[1].stream_writer)

    writers = []

    async def node(state: Numbers, runtime: Runtime[Any]):
        writers.append(runtime.stream_writer)
        return {"seen": 1}

    async for _ in graph_of(node).astream({"numbers": []}, stream_mode="custom"):
        pass
    assert not tasks.does_nothing(writers[0])


async def test_a_text_is_pushed_to_the_messages_mode_and_to_no_key_of_the_state():
    async def node(state: MessagesState):
        tasks.push_text("Hello", "m")
        return {}

    graph = graph_of(node, state=MessagesState)
    modes = ["messages", "values"]
    parts = [each async for each in graph.astream({"messages": []}, stream_mode=modes)]
    assert [part[1][0].content for part in parts if part[0] == "messages"] == ["Hello"]
    assert [part[1] for part in parts if part[0] == "values"] == [{"messages": []}]


def test_a_channel_that_was_never_written_holds_the_mark_of_nothing():
    empty = channels.Delta(lambda old, new: new[-1], list)
    empty.key = "numbers"
    assert empty.checkpoint() is channels.NOTHING


def test_a_delta_channel_asks_at_each_step_when_its_next_snapshot_is_due():
    read = []

    class Asked(channels.Delta):
        @property
        def snapshot_frequency(self):
            read.append(self)
            return super().snapshot_frequency

        @snapshot_frequency.setter
        def snapshot_frequency(self, least):
            self.least = least

    class State(TypedDict):
        numbers: Annotated[list[int], Asked(lambda old, new: new[-1], list[int])]

    graph = graph_of(lambda _: {"numbers": [1]}, InMemorySaver(), State)
    graph.invoke({"numbers": [0]}, {"configurable": {"thread_id": "t"}})
    assert read


def test_a_delta_channel_has_no_slots_but_those_that_a_twin_takes_over():
    slots = {name for kind in DeltaChannel.__mro__ for name in getattr(kind, "__slots__", ())}
    taken = {"key", "typ", "reducer", "value", "snapshot_frequency"}
    assert slots - {"__weakref__", "__dict__", "__orig_class__"} <= taken


async def test_a_snapshot_is_read_in_the_form_in_which_it_was_written():
    saver = InMemorySaver()
    graph = graph_of(lambda _: {"numbers": [3]}, saver)
    config = {"configurable": {"thread_id": "t"}}
    for _ in range(2 * channels.SNAPSHOT_AFTER):
        await graph.ainvoke({"numbers": [1]}, config)
    assert len((await graph.aget_state(config)).values["numbers"]) == 4 * channels.SNAPSHOT_AFTER


async def test_without_deltas_a_thread_that_is_written_once_has_no_writes_beside_its_checkpoint():
    saver = InMemorySaver()
    graph = graph_of(lambda _: {"numbers": [3]}, saver)
    channels.without_deltas(graph.channels.values())
    config = {"configurable": {"thread_id": "t"}}
    await graph.ainvoke({"numbers": [1]}, config, durability="exit")
    assert not any(saver.writes.values())
    await graph.ainvoke({"numbers": [2]}, config, durability="exit")
    assert (await graph.aget_state(config)).values["numbers"] == [1, 3, 2, 3]
    assert not any(saver.writes.values())


def test_a_write_that_takes_the_place_of_a_value_has_two_forms():
    assert channels.overwriting(Overwrite([1])) == Overwrite([1])
    assert channels.overwriting({"__overwrite__": [1]}) == Overwrite([1])
    graph = graph_of(lambda _: {"numbers": {"__overwrite__": [7]}})
    assert graph.invoke({"numbers": [1]})["numbers"] == [7]


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


def test_the_clock_of_ids_can_be_set_forward():
    before = checkpoints.newest_time()
    later = checkpoints.ids.uuid6(clock_seq=1).time + 10**9
    try:
        checkpoints.go_on_after(later)
        assert checkpoints.ids.uuid6(clock_seq=1).time > later
    finally:
        checkpoints.go_on_after(before)


async def test_inputs_interrupts_and_answers_are_writes_under_known_names():
    saver = InMemorySaver()
    config = {"configurable": {"thread_id": "t"}}
    graph = graph_of(lambda _: {"seen": interrupt("?")}, saver)
    await graph.ainvoke({"numbers": []}, config)
    asked = await saver.aget_tuple(config)
    assert checkpoints.INTERRUPT in {write[1] for write in asked.pending_writes}
    await graph.ainvoke(Command(resume="yes"), config)
    given = {write[1] for each in saver.list(config) for write in each.pending_writes}
    assert checkpoints.RESUME in given
    assert {checkpoints.INTERRUPT, checkpoints.RESUME} <= set(checkpoints.WRITES_IDX_MAP)
    sources = [each.metadata["source"] for each in saver.list(config)]
    assert sources[-1] == "input"
    assert checkpoints.INPUT == "__input__"


async def test_a_task_knows_the_answers_that_it_goes_on_with_by_the_ids_of_its_interrupts():
    known = []

    def node(state: Numbers, config: RunnableConfig):
        known.append(tasks.answers_to_interrupts(config))
        return {"seen": interrupt("?")}

    config = {"configurable": {"thread_id": "t"}}
    graph = graph_of(node, InMemorySaver())
    asked = await graph.ainvoke({"numbers": []}, config)
    (question,) = asked["__interrupt__"]
    await graph.ainvoke(Command(resume={question.id: "yes"}), config)
    assert known == [{}, {question.id: "yes"}]


def test_the_saver_for_postgresql_lists_the_changes_of_its_tables():
    aio = pytest.importorskip("langgraph.checkpoint.postgres.aio")
    assert checkpoints.known_migrations(aio.AsyncPostgresSaver) > 0
    changes = " ".join(aio.AsyncPostgresSaver.MIGRATIONS)
    assert checkpoints.MIGRATIONS_TABLE in changes
    assert checkpoints.MIGRATIONS_TABLE in checkpoints.NEWEST_MIGRATION


def test_graphs_here_and_on_servers_are_known_as_graphs():
    assert graphs.is_graph(graph_of(lambda _: {}))
    remote = RemoteGraph("name", url="http://127.0.0.1:1")
    assert graphs.is_graph(remote)
    assert not graphs.is_here(remote)
    assert graphs.is_here(graph_of(lambda _: {}))
    assert not graphs.is_graph(RunnableLambda(lambda _: ""))


def test_the_schemas_of_a_graph_and_of_the_graphs_in_it_are_found():
    class Inner(TypedDict):
        seen: int

    outer = StateGraph(Numbers)
    outer.add_node("inner", graph_of(lambda _: {}, state=Inner))
    outer.add_edge(START, "inner")
    assert {Numbers, Inner} <= set(graphs.schemas_of(outer.compile()))
    assert graphs.schemas_of("no graph") == []


def test_a_graph_whose_checkpoints_have_only_what_changed_is_known_by_its_channels():
    class Seen(TypedDict):
        seen: int

    plain = graph_of(lambda _: {}, state=Seen)
    outer = StateGraph(Seen)
    outer.add_node("inner", graph_of(lambda _: {}))
    outer.add_edge(START, "inner")
    assert graphs.keeps_differences(outer.compile())
    assert not graphs.keeps_differences(plain)


class Noting(BaseCallbackHandler):
    raise_error = True
    run_inline = True

    def __init__(self):
        self.heard = []
        self.told = None

    async def _awaited(self, *given, **named):
        await asyncio.sleep(0)
        self.heard.append("awaited")
        self.told = callbacks.told_of_call(given[0], named)

    def _plain(self, *given, **named):
        self.heard.append("plain")

    on_chat_model_start: Any = callbacks.either(_awaited, _plain)


async def test_a_callback_is_awaited_where_langchain_awaits_and_plain_elsewhere():
    handler, model = Noting(), FakeListChatModel(responses=["a", "b"])
    await model.ainvoke("?", {"callbacks": [handler]})
    await asyncio.to_thread(model.invoke, "?", {"callbacks": [handler]})
    assert handler.heard == ["awaited", "plain"]


async def test_a_callback_is_told_the_models_name_and_the_bound_of_its_reply():
    handler = Noting()
    model = ChatOpenAI(
        model="m", max_tokens=7, base_url="http://127.0.0.1:1", api_key="k", max_retries=0
    )
    with pytest.raises(Exception, match="onnect"):
        await model.bind_tools([two]).ainvoke("?", {"callbacks": [handler]})
    assert handler.told.names[0] == "m"
    assert handler.told.most_output == 7
    assert handler.told.parameters["tools"]


async def test_langchain_streams_for_callbacks_with_its_mark():
    class Marked(AsyncCallbackHandler):
        def tap_output_aiter(self, run_id, output):
            return output

        def tap_output_iter(self, run_id, output):
            return output

    assert callbacks.is_fed_by_streams(Marked())
    assert not callbacks.is_fed_by_streams(AsyncCallbackHandler())

    async def node(state: MessagesState, config: RunnableConfig):
        handlers = config["callbacks"].handlers
        fed.append(any(callbacks.is_fed_by_streams(each) for each in handlers))
        return {}

    fed: list[bool] = []
    graph = graph_of(node, state=MessagesState)
    async for _ in graph.astream({"messages": []}, stream_mode="messages"):
        pass
    await graph.ainvoke({"messages": []})
    assert fed == [True, False]


@tool
def two(words: str) -> str:
    """Give two."""
    return "2"


def test_a_model_that_takes_no_tools_has_langchains_own_way_only():
    assert models.can_call_tools(ChatOpenAI(model="m", api_key="k"))
    assert not models.can_call_tools(FakeListChatModel(responses=[]))
    with pytest.raises(NotImplementedError):
        BaseChatModel.bind_tools(FakeListChatModel(responses=[]), [])


def test_the_client_of_an_openai_model_gives_its_own_retries_up():
    model = ChatOpenAI(model="m", api_key="k", max_retries=4)
    assert models.is_of_openai(model)
    patient, taken = models.without_own_retries(model)
    assert taken == 4
    assert patient.root_async_client.max_retries == 0
    assert patient.async_client is not model.async_client
    other = FakeListChatModel(responses=[])
    assert models.without_own_retries(other) == (other, 0)


def test_the_model_sees_the_arguments_that_a_tool_was_given_last():
    assert list(two.args) == ["words"]
    other = tools.with_schema(two, create_model("two", amount=(int, ...)), {"seen": True})
    assert list(other.args) == ["amount"]
    assert list(two.args) == ["words"]
    assert other.metadata == {"seen": True}


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

    assert tools.runs_in_thread(two)
    assert not tools.runs_in_thread(Own())
    assert not tools.runs_in_thread(StructuredTool.from_function(coroutine=later))


async def test_what_stands_for_a_tool_in_a_call_is_called_in_its_place():
    async def work(called, config):
        return ToolMessage(f"did {called['args']}", tool_call_id=called["id"])

    async def replaced(request, handler):
        return await handler(request.override(tool=tools.called_by(request.tool, work)))

    node = ToolNode([two], awrap_tool_call=replaced)
    calls = [{"name": "two", "args": {"words": "w"}, "id": "1", "type": "tool_call"}]
    graph = graph_of(node, state=MessagesState)
    told = await graph.ainvoke({"messages": [HumanMessage("?"), AIMessage("", tool_calls=calls)]})
    assert told["messages"][-1].content == "did {'words': 'w'}"
