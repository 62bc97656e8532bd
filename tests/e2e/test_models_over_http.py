"""Real clients against a real server: what `LangChainModels` builds, over HTTP on loopback."""

import asyncio
import gc
import random
import sys
import threading
import time
import weakref
from contextvars import ContextVar
from typing import Any

import aiohttp
import openai
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from replan.base.failures import describe, is_transient, status_of
from replan.base.langgraph_inside.tasks import inherited_config
from replan.models.providers.chat_models import LangChainModels
from replan.ports.run_context import here, use
from replan.prompts.sections import Call, Caller, call_tag
from replan.state.usage import TokenCount
from replan.testing import (
    Empty,
    Hang,
    HttpFault,
    Malformed,
    OpenAIServer,
    Reply,
    Reset,
    Truncated,
    always,
)

CALL = {"name": "add", "args": {"a": 1, "b": 2}, "id": "c1", "type": "tool_call"}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_open():
    """Collect what the tests leave; what they did not close is a warning then, and so an error."""
    yield
    gc.collect()


def prompt(
    node: Caller = "think", step: int | None = None, specialist: str | None = None, text: str = "Hi"
) -> list[BaseMessage]:
    tag = call_tag(Call(node=node, step=step, specialist=specialist))
    return [SystemMessage(f"You help.\n{tag}"), HumanMessage(text)]


def model_of(server: OpenAIServer, **options: Any) -> BaseChatModel:
    settings = {"base_url": server.base_url, "timeout": 10.0, "max_retries": 0, **options}
    return LangChainModels(**settings).chat_model("openai:tiny")


async def whole_stream(model: BaseChatModel) -> AIMessageChunk:
    chunks = [chunk async for chunk in model.astream(prompt())]
    return add_ai_message_chunks(*chunks) if len(chunks) > 1 else chunks[0]


async def failure_of(model: BaseChatModel, *, stream: bool = False) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the caller looks at it
        await (whole_stream(model) if stream else model.ainvoke(prompt()))
    return caught.value


async def test_a_reply_comes_with_its_usage():
    async with OpenAIServer({"think": Reply("Hello.", usage=(11, 3))}) as server:
        reply = await model_of(server).ainvoke(prompt())

        assert reply.text == "Hello."
        assert reply.usage_metadata is not None
        assert reply.usage_metadata["total_tokens"] == 14
        assert server.usage == TokenCount(calls=1, input_tokens=11, output_tokens=3)


async def test_a_stream_comes_in_pieces_with_its_usage_counted():
    async with OpenAIServer({"think": Reply("One two three.", usage=(11, 3))}) as server:
        chunks = [chunk async for chunk in model_of(server).astream(prompt())]

        assert [chunk.text for chunk in chunks if chunk.text] == ["One", " two", " three."]
        usage = add_ai_message_chunks(*chunks).usage_metadata
        assert usage is not None
        assert (usage["input_tokens"], usage["output_tokens"]) == (11, 3)
        assert server.usage == TokenCount(calls=1, input_tokens=11, output_tokens=3)
        assert server.requests[0].wants_usage


async def test_the_key_is_sent_and_not_recorded():
    async with OpenAIServer({"*": always("Hello.")}) as server:
        await model_of(server, api_key=SecretStr("hidden")).ainvoke("Hi")

        assert server.requests[0].headers["authorization"] == "***"
        assert server.requests[0].model == "tiny"


SEEN = [
    SystemMessage("You help."),
    HumanMessage(
        [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        ]
    ),
    AIMessage("", tool_calls=[CALL]),
    ToolMessage("3", tool_call_id="c1"),
    HumanMessage("And now? \u4f60\u597d"),
]
"""Messages of every kind that a request has."""


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("options", [{}, {"extra_body": {"top_k": 3}}, {"stop": ["END"]}])
async def test_a_request_is_the_one_that_langchains_own_model_sends(stream, options):
    async with OpenAIServer({"*": always("Three.")}) as server:
        theirs = ChatOpenAI(
            model="tiny", base_url=server.base_url, api_key=SecretStr("k"), stream_usage=True
        )
        for model in (theirs, model_of(server)):
            bound = model.bind_tools([add]).bind(**options)
            if stream:
                assert [chunk async for chunk in bound.astream(SEEN)]
            else:
                await bound.ainvoke(SEEN)

        plain, ours = (request.body for request in server.requests)
        assert ours == plain
        assert list(ours) == list(plain)
        assert [each["role"] for each in ours["messages"]][-2:] == ["tool", "user"]


async def test_tool_calls_arrive_whole_and_streamed():
    reply = Reply(tool_calls=[CALL])
    async with OpenAIServer({"think": [reply, reply]}) as server:
        bound = model_of(server).bind_tools([add])
        whole = await bound.ainvoke(prompt())
        chunks = [chunk async for chunk in bound.astream(prompt())]

        assert whole.tool_calls == [CALL]
        assert add_ai_message_chunks(*chunks).tool_calls == [CALL]
        assert server.requests[0].body["tools"][0]["function"]["name"] == "add"


@pytest.mark.parametrize(("status", "stream"), [(429, False), (503, True)])
async def test_the_client_waits_as_long_as_a_busy_server_asks(status: int, *, stream: bool):
    # Longer than the client's own pause before its first retry, which is at most half a second.
    busy = Reply(fault=HttpFault(status, retry_after=0.8))
    async with OpenAIServer({"think": [busy, "Hello."]}) as server:
        model = model_of(server, max_retries=1)
        reply = await (whole_stream(model) if stream else model.ainvoke(prompt()))

        first, second = server.requests
        assert reply.text == "Hello."
        assert second.time - first.time >= 0.8


async def test_without_retries_there_is_one_request():
    async with OpenAIServer({"think": [Reply(fault=HttpFault(500, message="Sorry."))]}) as server:
        error = await failure_of(model_of(server))

        assert is_transient(error)
        assert status_of(error) == 500
        assert "Sorry." in describe(error)


async def test_retries_end_when_they_are_used_up():
    faults = [Reply(fault=HttpFault(429, retry_after=0.01))] * 3
    async with OpenAIServer({"think": faults}) as server:
        error = await failure_of(model_of(server, max_retries=2))

        assert (status_of(error), is_transient(error)) == (429, True)
        assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_a_refusal_is_not_tried_again(status: int):
    key = "sk-abcdefgh12345678"
    async with OpenAIServer({"think": [Reply(fault=HttpFault(status, message=key))]}) as server:
        error = await failure_of(model_of(server, max_retries=2))

        assert (status_of(error), is_transient(error)) == (status, False)
        assert key not in describe(error)


PASSING = {
    "reset at once": (Reply("one two three", fault=Reset(0)), openai.APIConnectionError),
    "reset in its middle": (Reply("one two three", fault=Reset(2)), openai.APIConnectionError),
    "malformed": (Reply(fault=Malformed()), Exception),
    "hanging": (Reply(fault=Hang()), openai.APITimeoutError),
    "stalled": (Reply("one two", chunk_delay=30), Exception),
    "cut off": (Reply("Half a", fault=Truncated("cut")), Exception),
}


@pytest.mark.parametrize(
    ("name", "stream"),
    [
        *((name, stream) for name in list(PASSING)[:3] for stream in (False, True)),
        *(("hanging", True), ("stalled", True), ("cut off", False)),
    ],
)
async def test_what_goes_wrong_on_the_way_is_an_error_that_can_pass(name: str, *, stream: bool):
    reply, kind = PASSING[name]
    async with OpenAIServer({"think": [reply]}) as server:
        began = time.monotonic()
        timeout = 0.2 if name in ("hanging", "stalled") else 10.0
        error = await failure_of(model_of(server, timeout=timeout), stream=stream)

        assert time.monotonic() - began < 5
        assert isinstance(error, kind)
        assert is_transient(error)


async def test_a_whole_reply_is_bounded_by_who_calls_and_not_by_its_silence():
    async with OpenAIServer(
        {"think": [Reply("Hello.", latency=1.5), Reply(fault=Hang())]}
    ) as server:
        assert (await model_of(server, timeout=0.5).ainvoke(prompt())).text == "Hello."
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await model_of(server, timeout=0.5).ainvoke(prompt())


async def test_a_call_that_is_cancelled_frees_its_connection():
    async with OpenAIServer({"think": [Reply(fault=Hang()), "Hello."]}) as server:
        model = model_of(server)
        asking = asyncio.create_task(model.ainvoke(prompt()))
        await asyncio.to_thread(server.wait_for_requests, 1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

        assert (await model.ainvoke(prompt())).text == "Hello."


async def test_a_reply_that_ran_out_of_tokens_says_so():
    reply = Reply("Half a", fault=Truncated())
    async with OpenAIServer({"think": [reply, reply]}) as server:
        model = model_of(server)
        for message in (await model.ainvoke(prompt()), await whole_stream(model)):
            assert message.text == "Half a"
            assert message.response_metadata["finish_reason"] == "length"


async def test_a_stream_that_ends_early_has_no_finish_reason():
    # The client takes such a stream for a whole reply; this is all that tells it apart.
    async with OpenAIServer({"think": [Reply("Half a", fault=Truncated("cut"))]}) as server:
        message = await whole_stream(model_of(server))

        assert message.text == "Half a"
        assert "finish_reason" not in message.response_metadata
        assert message.usage_metadata is None
        assert server.usage == TokenCount()


async def test_an_empty_reply_is_an_empty_text():
    async with OpenAIServer({"think": [Reply(fault=Empty())] * 2}) as server:
        model = model_of(server)

        assert (await model.ainvoke(prompt())).text == ""
        assert (await whole_stream(model)).text == ""


async def test_a_server_without_streaming_refuses_until_it_is_told():
    async with OpenAIServer({"think": ["Hello."]}, streaming=False) as server:
        error = await failure_of(model_of(server), stream=True)
        reply = await whole_stream(model_of(server, streaming=False))

        assert not is_transient(error)
        assert "stream" in describe(error)
        assert reply.text == "Hello."
        assert reply.usage_metadata is not None


async def test_a_server_without_tools_or_json_mode_refuses_them():
    async with OpenAIServer({}, tools=False, json_mode=False) as server:
        model = model_of(server)
        for asking in (
            model.bind_tools([add]),
            model.bind(response_format={"type": "json_object"}),
        ):
            with pytest.raises(openai.BadRequestError) as caught:
                await asking.ainvoke(prompt())
            assert not is_transient(caught.value)


async def test_a_strict_server_takes_our_prompts():
    async with OpenAIServer({"think": ["Hello."]}, strict_roles=True) as server:
        assert (await model_of(server).ainvoke(prompt())).text == "Hello."


async def test_a_model_named_like_openais_own_speaks_the_chat_protocol():
    async with OpenAIServer({"think": ["Hello."]}) as server:
        models = LangChainModels(base_url=server.base_url, max_retries=0)

        assert (await models.chat_model("gpt-5-codex").ainvoke(prompt())).text == "Hello."


async def test_nobody_there_is_an_error_that_can_pass():
    async with OpenAIServer({}) as server:
        model = model_of(server)
    error = await failure_of(model)

    assert isinstance(error, openai.APIConnectionError)
    assert is_transient(error)
    assert "onnect" in describe(error)


async def test_many_steps_at_once_get_their_own_replies():
    numbers = list(range(1, 61))
    random.Random(3).shuffle(numbers)  # noqa: S311 - no secret
    async with OpenAIServer({f"step {n}": Reply(f"r{n}", usage=(n, 1)) for n in numbers}) as server:
        model = model_of(server)
        replies = await asyncio.gather(
            *(model.ainvoke(prompt("specialist", n, "analyst")) for n in numbers)
        )

        assert [reply.text for reply in replies] == [f"r{n}" for n in numbers]
        assert server.usage == TokenCount(calls=60, input_tokens=1830, output_tokens=60)
        assert server.calls[f"step {numbers[0]}/analyst"] == 1


def test_one_model_serves_one_loop_after_another():
    with OpenAIServer({"think": always("Hello.")}) as server:
        model = model_of(server)
        for _ in range(3):
            assert asyncio.run(model.ainvoke(prompt())).text == "Hello."
            assert asyncio.run(whole_stream(model)).text == "Hello."
            gc.collect()


def test_one_model_serves_loops_in_threads_at_the_same_time():
    with OpenAIServer({"specialist": always(lambda messages: messages[-1].text)}) as server:
        model = model_of(server)
        found: dict[str, list[str]] = {}
        together = threading.Barrier(3)

        async def work(name: str) -> list[str]:
            prompts = [prompt("specialist", n, "a", f"{name}{n}") for n in range(1, 11)]
            return [reply.text for reply in await model.abatch(prompts)]

        def thread(name: str) -> None:
            together.wait(5)
            found[name] = asyncio.run(work(name))

        threads = [threading.Thread(target=thread, args=(name,)) for name in "abc"]
        for one in threads:
            one.start()
        for one in threads:
            one.join(20)

    assert found == {name: [f"{name}{n}" for n in range(1, 11)] for name in "abc"}


async def test_a_model_that_is_given_up_closes_its_connections_in_a_running_loop():
    async with OpenAIServer({"think": always("Hello.")}) as server:
        model = model_of(server)
        await model.ainvoke(prompt())
        gc.collect()
        (session,) = (
            thing
            for thing in gc.get_objects()
            if type(thing) is aiohttp.ClientSession and not thing.closed
        )
        del model
        async with asyncio.timeout(5):
            while not session.closed:
                # A thread may have been about to let go of the model.
                gc.collect()
                await asyncio.sleep(0)


def test_a_model_that_is_given_up_while_its_loop_ends_fails_in_nothing():
    told: list[dict[str, Any]] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context))
        async with OpenAIServer({"think": always("Hello.")}) as server:
            model = model_of(server)
            await model.ainvoke(prompt())
            ending = asyncio.ensure_future(loop.shutdown_asyncgens())
            await asyncio.sleep(0)
            del model
            gc.collect()
            await ending

    asyncio.run(work())
    gc.collect()
    assert told == []


async def test_an_open_connection_holds_nothing_of_the_call_that_opened_it():
    class Held:
        """What only the context of a call has."""

    told = ContextVar[Any]("somebody_else", default=None)

    async with OpenAIServer({"think": always("Hello.")}) as server:
        model = model_of(server)

        async def call() -> "weakref.ref[Held]":
            held = Held()
            use(phase=held)
            inherited_config.set({"metadata": {"held": held}})
            told.set("is kept")
            await model.ainvoke(prompt())
            assert told.get() == "is kept"
            assert here().phase is held
            return weakref.ref(held)

        held = await asyncio.create_task(call())
        # A thread that has ended its part of the call may be about to let go of it.
        async with asyncio.timeout(2):
            while held() is not None:
                await asyncio.sleep(0)
                gc.collect()
        assert len(open_connections()) == 1


def open_connections() -> list[aiohttp.client_proto.ResponseHandler]:
    """Connections that a server has not closed, and that wait for the next request."""
    kind = aiohttp.client_proto.ResponseHandler
    gc.collect()
    return [each for each in gc.get_objects() if type(each) is kind and each.is_connected()]


async def test_a_client_that_is_closed_opens_again_when_it_is_needed():
    async with OpenAIServer({"think": always("Hello.")}) as server:
        model = model_of(server)
        assert isinstance(model, ChatOpenAI)
        await model.ainvoke(prompt())
        await model.http_async_client.aclose()
        await model.http_async_client.aclose()

        assert (await model.ainvoke(prompt())).text == "Hello."


def test_without_aiohttp_the_plain_transport_serves_one_loop_after_another(
    monkeypatch: pytest.MonkeyPatch,
):
    with OpenAIServer({"think": always("Hello.")}) as server:
        asyncio.run(model_of(server).ainvoke(prompt()))  # The server has loaded all that it needs.
        monkeypatch.setitem(sys.modules, "aiohttp", None)
        model = model_of(server)
        for _ in range(2):
            assert asyncio.run(model.ainvoke(prompt())).text == "Hello."
