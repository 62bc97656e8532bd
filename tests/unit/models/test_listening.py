"""Whether tokens are heard: a contract with LangGraph and LangChain, which tell it nowhere."""

from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import (
    AsyncCallbackHandler,
    StreamingStdOutCallbackHandler,
    UsageMetadataCallbackHandler,
)
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime

from replan.base.langgraph_inside.callbacks import has_listener
from replan.base.langgraph_inside.tasks import stream_is_heard, without_tokens


class Seen(TypedDict, total=False):
    stream: bool
    callbacks: bool


@pytest.fixture
def graph():
    async def look(state: Seen, config, runtime: Runtime) -> Seen:
        return {
            "stream": stream_is_heard(runtime.stream_writer, config),
            "callbacks": has_listener(config),
        }

    return StateGraph(Seen).add_node("look", look).set_entry_point("look").compile()


async def seen(graph, mode, config=None) -> Any:
    if mode == "ainvoke":
        return await graph.ainvoke({}, config)
    if mode == "astream_events":
        events = [event async for event in graph.astream_events({}, config, version="v2")]
        return events[-1]["data"]["output"]
    parts = [part async for part in graph.astream({}, config, stream_mode=[mode, "values"])]
    return parts[-1][1]


@pytest.mark.parametrize("mode", ["ainvoke", "values", "updates", "debug"])
async def test_nobody_hears_tokens_where_nobody_asked_for_them(graph, mode):
    assert await seen(graph, mode) == {"stream": False, "callbacks": False}


async def test_who_reads_custom_events_hears_tokens_and_can_say_that_they_are_not_wanted(graph):
    assert await seen(graph, "custom") == {"stream": True, "callbacks": False}
    assert await seen(graph, "custom", without_tokens({})) == {"stream": False, "callbacks": False}


@pytest.mark.parametrize("mode", ["messages", "astream_events"])
async def test_the_modes_that_give_the_pieces_of_replies_are_listeners(graph, mode):
    assert (await seen(graph, mode))["callbacks"]


async def test_an_inner_graph_is_heard_where_the_outer_one_streams_it(graph):
    outer = StateGraph(Seen).add_node("inner", graph).set_entry_point("inner").compile()
    whole = [part async for part in outer.astream({}, stream_mode="custom", subgraphs=True)]
    assert whole == []
    parts = outer.astream({}, stream_mode=["custom", "values"], subgraphs=True)
    assert [part async for part in parts][-1][-1]["stream"]
    assert not (await seen(outer, "ainvoke"))["stream"]


class Quiet(AsyncCallbackHandler):
    """Takes everything but tokens."""


class Heedless(StreamingStdOutCallbackHandler):
    hears_tokens = False


@pytest.mark.parametrize(
    ("handler", "listens"),
    [
        (StreamingStdOutCallbackHandler(), True),
        (Quiet(), False),
        (UsageMetadataCallbackHandler(), False),
        (RunCollectorCallbackHandler(), False),
        (Heedless(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_handler_listens_if_it_takes_tokens_and_is_no_log_of_runs(handler, listens):
    assert has_listener({"callbacks": [handler]}) is listens


def test_a_writer_that_is_not_known_counts_as_one_that_is_read():
    assert stream_is_heard([].append, {})
    assert stream_is_heard(lambda event: event, {})
