"""Tests of the strict chat model."""

import asyncio
import random
import time
from typing import TypedDict

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.globals import set_llm_cache
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph

from replan.failures import is_transient
from replan.prompts.sections import Call, Caller, call_tag
from replan.state.usage import TokenCount
from replan.testing import (
    Empty,
    Hang,
    HttpFault,
    Malformed,
    Reply,
    Reset,
    ScriptedHttpError,
    ScriptedModel,
    Truncated,
    UnconsumedReplies,
    UnexpectedModelCall,
    always,
)

CALL = {"name": "add", "args": {"a": 1, "b": 2}, "id": "c1", "type": "tool_call"}


def prompt(
    node: Caller = "think", step: int | None = None, specialist: str | None = None, text: str = "Hi"
) -> list[BaseMessage]:
    tag = call_tag(Call(node=node, step=step, specialist=specialist))
    return [SystemMessage(f"You help.\n{tag}"), HumanMessage(text)]


async def streamed(model: ScriptedModel, messages: list[BaseMessage]) -> list[AIMessageChunk]:
    return [chunk async for chunk in model.astream(messages)]


def whole(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    return add_ai_message_chunks(*chunks)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def test_concurrent_steps_get_their_own_replies_in_any_order():
    numbers = list(range(1, 101))
    random.Random(7).shuffle(numbers)  # noqa: S311 - no secret
    with ScriptedModel({f"step {n}": [f"{n}a", f"{n}b"] for n in numbers}) as model:

        async def work(number: int) -> tuple[str, str]:
            messages = prompt("specialist", number, "analyst")
            first = await model.ainvoke(messages)
            await asyncio.sleep(0)
            return first.text, (await model.ainvoke(messages)).text

        found = await asyncio.gather(*(work(n) for n in numbers))

    assert found == [(f"{n}a", f"{n}b") for n in numbers]
    assert len(model.calls) == 200


async def test_two_specialists_of_one_step_keep_their_replies():
    with ScriptedModel({"step 1/b": "for b", "step 1/a": "for a"}) as model:
        replies = await asyncio.gather(
            model.ainvoke(prompt("specialist", 1, "a")), model.ainvoke(prompt("specialist", 1, "b"))
        )

    assert [reply.text for reply in replies] == ["for a", "for b"]


async def test_calls_are_recorded_with_node_step_and_specialist():
    with ScriptedModel({"think": "a", "step 2": "b", "*": "c"}) as model:
        await model.ainvoke(prompt())
        await model.ainvoke(prompt("specialist", 2, "analyst", "Count."))
        await model.ainvoke("no prompt of ours")

    assert [(c.node, c.step, c.specialist) for c in model.calls] == [
        ("think", None, None),
        ("specialist", 2, "analyst"),
        (None, None, None),
    ]
    assert model.calls[1].messages[-1].text == "Count."


async def test_one_call_too_many_fails_at_once_and_again_at_the_end():
    model = ScriptedModel({"think": "once"})
    await model.ainvoke(prompt())

    with pytest.raises(UnexpectedModelCall, match="think") as caught:
        await model.ainvoke(prompt())
    with pytest.raises(UnexpectedModelCall):
        model.assert_finished()

    assert not is_transient(caught.value)
    assert len(model.calls) == 2


def test_one_reply_too_many_fails_at_the_end_of_the_block():
    with (
        pytest.raises(UnconsumedReplies, match="1 for 'feedback'"),
        ScriptedModel({"feedback": "x"}),
    ):
        pass


def test_an_error_in_flight_is_not_masked_by_replies_left_over():
    with pytest.raises(RuntimeError, match="the real one"), ScriptedModel({"feedback": "x"}):
        raise RuntimeError("the real one")


async def test_an_error_of_the_script_is_raised():
    error = RuntimeError("down")
    with ScriptedModel({"think": [error, "up"]}) as model:
        with pytest.raises(RuntimeError) as caught:
            await model.ainvoke(prompt())
        assert caught.value is error
        assert (await model.ainvoke(prompt())).text == "up"


async def test_a_stream_comes_by_words_with_usage_on_its_last_chunk():
    with ScriptedModel({"think": Reply("One two\nthree.", usage=(10, 3))}) as model:
        chunks = await streamed(model, prompt())

    assert [chunk.text for chunk in chunks] == ["One", " two", "\nthree.", ""]
    assert [chunk.usage_metadata is not None for chunk in chunks] == [False, False, False, True]
    assert whole(chunks).usage_metadata == {
        "input_tokens": 10,
        "output_tokens": 3,
        "total_tokens": 13,
    }
    assert whole(chunks).response_metadata["finish_reason"] == "stop"
    assert model.usage == TokenCount(calls=1, input_tokens=10, output_tokens=3)


async def test_a_stream_comes_in_the_chunks_that_are_given():
    with ScriptedModel({"think": Reply("--- a", chunks=("-", "-- ", "a"))}) as model:
        assert [c.text for c in await streamed(model, prompt())] == ["-", "-- ", "a", ""]


def test_a_synchronous_stream_is_the_same():
    with ScriptedModel({"think": [Reply("One two", usage=(1, 1)), "three"]}) as model:
        assert [chunk.text for chunk in model.stream(prompt())] == ["One", " two", ""]
        assert model.invoke(prompt()).text == "three"


async def test_a_message_is_given_back_as_it_is():
    blocks = [{"type": "text", "text": "seen"}, {"type": "text", "text": " twice"}]
    message = AIMessage(blocks, additional_kwargs={"reasoning_content": "hm"})
    with ScriptedModel({"think": [message, message]}) as model:
        reply = await model.ainvoke(prompt())
        stream = whole(await streamed(model, prompt()))

    assert reply.content == blocks
    assert reply.additional_kwargs["reasoning_content"] == "hm"
    assert stream.text == "seen twice"
    assert stream.additional_kwargs["reasoning_content"] == "hm"
    assert message.id is None


async def test_tool_calls_come_whole_and_streamed_and_tools_are_recorded():
    reply = Reply(tool_calls=[CALL])
    with ScriptedModel({"step 1": [reply, reply]}) as model:
        bound = model.bind_tools([add])
        called = await bound.ainvoke(prompt("specialist", 1))
        chunks = await streamed(model, prompt("specialist", 1))

    assert called.tool_calls == [CALL]
    assert whole(chunks).tool_calls == [CALL]
    assert whole(chunks).response_metadata["finish_reason"] == "tool_calls"
    assert model.bound_tools == [("add",)]


async def test_a_global_cache_does_not_hide_calls():
    set_llm_cache(InMemoryCache())
    try:
        with ScriptedModel({"think": ["a", "b"]}) as model:
            assert [(await model.ainvoke(prompt())).text for _ in range(2)] == ["a", "b"]
    finally:
        set_llm_cache(None)


async def test_http_faults_carry_their_status():
    model = ScriptedModel({"think": Reply(fault=HttpFault(429, retry_after=2))})
    with pytest.raises(ScriptedHttpError, match="429") as caught:
        await model.ainvoke(prompt())

    assert caught.value.status_code == 429
    assert caught.value.retry_after == 2
    assert is_transient(caught.value)


async def test_a_reset_breaks_a_stream_after_its_chunks():
    reply = Reply("one two three", fault=Reset(after=2))
    with ScriptedModel({"think": [reply, reply]}) as model:
        stream = model.astream(prompt())
        assert [(await anext(stream)).text, (await anext(stream)).text] == ["one", " two"]
        with pytest.raises(ConnectionResetError):
            await anext(stream)
        with pytest.raises(ConnectionResetError):
            await model.ainvoke(prompt())

    assert model.usage == TokenCount()


async def test_a_hang_ends_only_when_the_caller_gives_up():
    model = ScriptedModel({"think": Reply(fault=Hang())})
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(model.ainvoke(prompt()), 0.05)


def test_a_hang_that_nobody_could_end_is_a_timeout():
    with ScriptedModel({"think": Reply(fault=Hang())}) as model, pytest.raises(TimeoutError):
        model.invoke(prompt())


async def test_malformed_truncated_and_empty_replies():
    faults = (Malformed(), Truncated(), Truncated("cut"), Empty())
    with ScriptedModel({"think": [Reply("some text", fault=fault) for fault in faults]}) as model:
        with pytest.raises(ValueError, match="not JSON"):
            await model.ainvoke(prompt())
        long, cut, empty = [whole(await streamed(model, prompt())) for _ in range(3)]

    assert (long.text, long.response_metadata["finish_reason"]) == ("some text", "length")
    assert "finish_reason" not in cut.response_metadata
    assert cut.usage_metadata is None
    assert empty.text == ""


async def test_latency_and_the_delay_between_chunks_are_kept():
    with ScriptedModel({"think": Reply("a b", latency=0.05, chunk_delay=0.03)}) as model:
        began = time.monotonic()
        await streamed(model, prompt())

    assert time.monotonic() - began >= 0.05 + 2 * 0.03


async def test_it_streams_in_langgraphs_messages_mode():
    class State(TypedDict):
        text: str

    with ScriptedModel({"think": ["One two"]}) as model:

        async def node(state: State) -> State:
            return {"text": (await model.ainvoke(prompt())).text}

        builder = StateGraph(State)
        builder.add_node("node", node)
        builder.add_edge(START, "node")
        builder.add_edge("node", END)
        graph = builder.compile()
        parts = [part async for part in graph.astream({"text": ""}, stream_mode="messages")]

    assert [chunk.text for chunk, _ in parts] == ["One", " two", ""]


async def test_a_function_for_always_serves_every_call():
    with ScriptedModel({"specialist": always(lambda messages: messages[-1].text)}) as model:
        found = await asyncio.gather(
            *(model.ainvoke(prompt("specialist", n, "a", f"task {n}")) for n in range(1, 6))
        )

    assert [reply.text for reply in found] == [f"task {n}" for n in range(1, 6)]
