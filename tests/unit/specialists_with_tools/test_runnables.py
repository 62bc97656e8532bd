"""Runnables, graphs and functions as specialists: whole or in pieces, processed, failing."""

from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnableParallel
from langgraph.graph import END, START, MessagesState, StateGraph

from replan import (
    ConfigurationError,
    ExecutionStatus,
    SpecialistResult,
    run,
    stream,
)
from replan.state.results import Artifact
from replan.testing import Reply, ScriptedModel

FRONT = "---\nstatus: partial\nconfidence: 0.3\nreplan_needed: yes\n---\nHalf."


@pytest.fixture
def host(script):
    """A run of one step that asks no model of its own."""
    given = script()
    del given["step 1"]
    return given


async def tokens_of(graph):
    events = [event async for event in stream(graph, "Do it.")]
    tokens = [event.text for event in events if event.type == "specialist_token"]
    return tokens, next(e.result for e in events if e.type == "specialist_completed")


async def pieces(messages):
    for piece in ("One ", "two ", "three."):
        yield piece


def sync_pieces(messages):
    yield from ("One ", "two ", "three.")


async def chunks(messages, config):
    for piece in ("One ", "two ", "three."):
        yield AIMessageChunk(content=piece)


async def promised(messages):
    return pieces(messages)


async def transformed(parts):
    async for _ in parts:
        for piece in ("One ", "two ", "three."):
            yield piece


@pytest.mark.parametrize(
    "streamable", [pieces, sync_pieces, chunks, promised, RunnableGenerator(transformed)]
)
async def test_pieces_of_text_are_shown_and_joined(graph, host, streamable):
    with ScriptedModel(host) as model:
        tokens, result = await tokens_of(graph(model, streamable=streamable))
    assert tokens == ["One ", "two ", "three."]
    assert result.text == "One two three."


async def test_the_streamable_is_preferred(graph, host):
    def refuse(messages):
        raise AssertionError

    with ScriptedModel(host) as model:
        _, result = await tokens_of(graph(model, invokable=refuse, streamable=pieces))
    assert result.text == "One two three."


async def test_what_a_model_says_inside_of_a_stream_is_shown_once(graph, host):
    with ScriptedModel([Reply("One two.", chunks=["One ", "two."])]) as inner:
        chain = RunnableLambda(lambda messages: messages) | inner | StrOutputParser()
        with ScriptedModel(host) as model:
            tokens, result = await tokens_of(graph(model, streamable=chain))
    assert tokens == ["One ", "two."]
    assert result.text == "One two."


async def test_a_function_that_streams_a_model_shows_its_words_once(graph, host):
    with ScriptedModel([Reply("One two.", chunks=["One ", "two."])]) as inner:

        async def forward(messages, config):
            async for chunk in inner.astream(messages, config):
                yield chunk

        with ScriptedModel(host) as model:
            tokens, result = await tokens_of(graph(model, streamable=forward))
    assert tokens == ["One ", "two."]
    assert result.text == "One two."


async def test_a_graph_is_run_on_a_state_with_messages(graph, host):
    inner = StateGraph(MessagesState)
    inner.add_node("say", lambda state: {"messages": [AIMessage(f"{len(state['messages'])} in.")]})
    inner.add_edge(START, "say")
    inner.add_edge("say", END)
    for way in ("invokable", "streamable"):
        with ScriptedModel(host) as model:
            _, result = await tokens_of(graph(model, **{way: inner.compile()}))
        assert result.text == "1 in."


async def test_a_state_that_streams_by_its_keys_is_joined(graph, host):
    both = RunnableParallel(other=lambda messages: "x", messages=lambda messages: ["The text."])
    with ScriptedModel(host) as model:
        _, result = await tokens_of(graph(model, streamable=both))
    assert result.text == "The text."


async def test_a_broken_stream_fails_the_step_alone(graph, host):
    async def breaks(messages):
        yield "One "
        raise ConnectionError("gone")

    with ScriptedModel(host) as model:
        tokens, result = await tokens_of(graph(model, streamable=breaks))
    assert tokens == ["One "]
    assert result.status is ExecutionStatus.FAILED
    assert "gone" in result.error


@pytest.mark.parametrize("nonsense", [b"bytes", None, 42, {"no": "messages"}, [], ""])
@pytest.mark.parametrize("way", ["invokable", "streamable"])
async def test_nonsense_fails_the_step_with_what_it_was(graph, host, way, nonsense):
    with ScriptedModel(host) as model:
        _, result = await tokens_of(graph(model, **{way: lambda messages: nonsense}))
    assert result.status is ExecutionStatus.FAILED
    assert type(nonsense).__name__ in result.error or "empty" in result.error


async def test_the_front_matter_of_a_chains_reply_is_read(graph, host):
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("all")])
    with ScriptedModel([FRONT]) as inner:
        chain = RunnableLambda(lambda messages: {"all": messages}) | prompt | inner
        with ScriptedModel(host) as model:
            _, result = await tokens_of(graph(model, invokable=chain))
    assert (result.status, result.confidence) == (ExecutionStatus.PARTIAL, 0.3)
    assert result.replan_needed
    assert result.text == "Half."


async def test_a_function_of_the_context_gives_a_whole_result(graph, host):
    whole = SpecialistResult(
        result=AIMessage("Half."),
        status=ExecutionStatus.PARTIAL,
        confidence=0.3,
        replan_needed=True,
        artifacts=(Artifact(path="a.md", title="A", media_type="text/markdown"),),
    )
    with ScriptedModel(host) as model:
        _, result = await tokens_of(graph(model, run=lambda context: whole))
    assert result.status is ExecutionStatus.PARTIAL
    assert result.confidence == 0.3
    assert result.replan_needed
    assert result.artifacts == whole.artifacts
    assert result.specialist_name == "worker"


def as_messages(context):
    return [HumanMessage(context.task_description)]


async def as_messages_later(context, config):
    return [("user", context.task_description)]


@pytest.mark.parametrize("processor", [as_messages, as_messages_later])
async def test_an_input_processor_makes_the_messages(graph, host, processor):
    with ScriptedModel(host) as model:
        worker = graph(
            model, input_processor=processor, invokable=lambda messages: f"{messages[0].text}!"
        )
        _, result = await tokens_of(worker)
    assert result.text == "Do it!"


async def test_an_input_processor_without_messages_means_those_of_the_request(graph, host):
    with ScriptedModel(host) as model:
        worker = graph(
            model, input_processor=lambda context: [], invokable=lambda messages: messages[0]
        )
        _, result = await tokens_of(worker)
    assert result.text == "Do it."


def to_result(message):
    return SpecialistResult(confidence=0.2, status=ExecutionStatus.PARTIAL)


async def to_result_later(message):
    return SpecialistResult(confidence=0.2, status=ExecutionStatus.PARTIAL)


@pytest.mark.parametrize("processor", [to_result, to_result_later])
async def test_an_output_processor_makes_the_result(graph, script, processor, result_of):
    with ScriptedModel(script("The text.")) as model:
        result = result_of((await run(graph(model, output_processor=processor), "Do it.")).state)
    assert (result.status, result.confidence) == (ExecutionStatus.PARTIAL, 0.2)
    assert (result.text, result.specialist_name) == ("The text.", "worker")


async def broken(given):
    raise ValueError("broken processor")


def broken_too(given):
    raise ValueError("broken processor")


@pytest.mark.parametrize("processor", [broken, broken_too])
@pytest.mark.parametrize("place", ["input_processor", "output_processor"])
async def test_a_failing_processor_fails_only_the_step(graph, host, result_of, processor, place):
    with ScriptedModel(host) as model:
        worker = {place: processor, "invokable": lambda messages: "The text."}
        state = (await run(graph(model, **worker), "Do it.")).state
    assert result_of(state).status is ExecutionStatus.FAILED
    assert "broken processor" in result_of(state).error
    assert state["is_completed"]


@pytest.mark.parametrize(
    ("place", "nonsense"), [("input_processor", 42), ("output_processor", b"x")]
)
async def test_a_processor_that_gives_nonsense_fails_only_the_step(
    graph, host, result_of, place, nonsense
):
    with ScriptedModel(host) as model:
        worker = {place: lambda given: nonsense, "invokable": lambda messages: "The text."}
        state = (await run(graph(model, **worker), "Do it.")).state
    assert type(nonsense).__name__ in result_of(state).error


class Seen(AsyncCallbackHandler):
    def __init__(self):
        self.seen = []

    async def on_chat_model_start(self, serialized, messages, *, tags=None, metadata=None, **_):
        self.seen.append(("mine" in (tags or ()), (metadata or {}).get("tenant")))


def ways_of(inner):
    """Every way in which a specialist can come to ask a model."""

    def sync_lambda(messages):
        return inner.invoke(messages)

    async def async_lambda(messages):
        return await inner.ainvoke(messages)

    graph = StateGraph(MessagesState)
    graph.add_node("say", lambda state: {"messages": [inner.invoke(state["messages"])]})
    graph.add_edge(START, "say")
    return {
        "chain": {"invokable": RunnableLambda(lambda messages: messages) | inner},
        "sync lambda": {"invokable": RunnableLambda(sync_lambda)},
        "async lambda": {"invokable": RunnableLambda(async_lambda)},
        "graph": {"invokable": graph.compile()},
        "sync function": {"invokable": sync_lambda},
        "async function": {"invokable": async_lambda},
        "sync run": {"run": lambda context: inner.invoke(list(context.messages))},
        "streamable": {"streamable": RunnableLambda(lambda messages: messages) | inner},
    }


@pytest.mark.parametrize(
    "way",
    list(
        ways_of(None)
        if False
        else [
            "chain",
            "sync lambda",
            "async lambda",
            "graph",
            "sync function",
            "async function",
            "sync run",
            "streamable",
        ]
    ),
)
async def test_callbacks_tags_and_metadata_reach_every_model(graph, host, way, result_of):
    with ScriptedModel(["Inner."]) as inner, ScriptedModel(host) as model:
        seen = Seen()
        config: Any = {"callbacks": [seen], "tags": ["mine"], "metadata": {"tenant": "t1"}}
        state = (await run(graph(model, **ways_of(inner)[way]), "Do it.", config=config)).state
    assert seen.seen == [(True, "t1")] * 3
    assert result_of(state).usage.calls == 1


@pytest.mark.parametrize(
    ("worker", "field"),
    [
        ({"invokable": 42}, "invokable"),
        ({"streamable": "text"}, "streamable"),
        ({"run": RunnableLambda(str)}, "run"),
        ({"run": str, "tools": [str]}, "tools"),
    ],
)
def test_what_cannot_be_called_is_refused_when_the_graph_is_built(graph, worker, field):
    with pytest.raises(ConfigurationError, match=rf"specialists\[0\]\.{field}"):
        graph(ScriptedModel([]), **worker)
