"""Tests of the strict chat model."""

import asyncio
import time

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

from replan.base.failures import is_transient
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
    UnexpectedModelCall,
)


def prompt(
    node: Caller = "think", step: int | None = None, specialist: str | None = None, text: str = "Hi"
) -> list[BaseMessage]:
    tag = call_tag(Call(node=node, step=step, specialist=specialist))
    return [SystemMessage(f"You help.\n{tag}"), HumanMessage(text)]


async def streamed(model: ScriptedModel, messages: list[BaseMessage]) -> list[AIMessageChunk]:
    return [chunk async for chunk in model.astream(messages)]


def whole(chunks: list[AIMessageChunk]) -> AIMessageChunk:
    return add_ai_message_chunks(*chunks)


async def test_one_call_too_many_fails_at_once_and_again_at_the_end():
    model = ScriptedModel({"think": "once"})
    await model.ainvoke(prompt())

    with pytest.raises(UnexpectedModelCall, match="think") as caught:
        await model.ainvoke(prompt())
    with pytest.raises(UnexpectedModelCall):
        model.assert_finished()

    assert not is_transient(caught.value)
    assert len(model.calls) == 2


def test_an_error_in_flight_is_not_masked_by_replies_left_over():
    with pytest.raises(RuntimeError, match="the real one"), ScriptedModel({"feedback": "x"}):
        raise RuntimeError("the real one")


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
