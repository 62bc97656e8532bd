"""Tools and images through the real OpenAI client: what goes over the wire, and what comes back."""

import base64
import json

import pytest
from langchain_core.callbacks import StreamingStdOutCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from replan import (
    ExecutionStatus,
    Host,
    Limits,
    RunSettings,
    Specialist,
    Team,
    build_graph,
    run,
    stream,
)
from replan.models.providers.chat_models import LangChainModels
from replan.testing import OpenAIServer, Reply, Reset
from scripts import SIMPLE

PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Add the numbers @worker"
COMPLETE = "---\nverdict: complete\n---\nIt is three."
PIXEL = base64.b64encode(b"\x89PNG not really").decode()
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def calling(*args, said=""):
    kind = {"name": "add", "type": "tool_call"}
    calls = [{"args": arg, "id": f"call-{n}", **kind} for n, arg in enumerate(args)]
    return AIMessage(said, tool_calls=calls)


def graph_on(server, *, host_tools=(), **worker):
    models = LangChainModels(base_url=server.base_url)
    config = Team(
        host=Host(model="openai:m", tools=host_tools),
        specialists=[
            Specialist(name="worker", intended_use="Adds.", chat_model="openai:m", **worker)
        ],
    )
    return build_graph(config, models=models)


def script(*replies):
    return {"think": PLAN, "step 1": list(replies), "feedback": COMPLETE}


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_specialist_calls_its_tool_over_http(streaming):
    replies = calling({"a": 1, "b": 2}, {"a": 3, "b": 4}), "---\nconfidence: 0.9\n---\nThree."
    with OpenAIServer(script(*replies), streaming=streaming, strict_roles=True) as server:
        state = (await run(graph_on(server, tools=[add]), "Add one and two.")).state
        last = [request for request in server.requests if request.call.step == 1][-1]
        assert state["usage"].input_tokens == server.usage.input_tokens
    (tool,) = last.body["tools"]
    assert tool["function"]["name"] == "add"
    assert set(tool["function"]["parameters"]["properties"]) == {"a", "b"}
    told = [message for message in last.messages if isinstance(message, ToolMessage)]
    assert [(message.content, message.tool_call_id) for message in told] == [
        ("3", "call-0"),
        ("7", "call-1"),
    ]
    result = state["current_specialist_results"]["1/worker"]
    assert (result.text, result.confidence) == ("Three.", 0.9)


async def test_arguments_that_are_no_object_are_never_used():
    called = []

    def write(text: str) -> str:
        """Write a text."""
        called.append(text)
        return "written"

    half = '{"text": "the first ha'
    settings = RunSettings(limits=Limits(step_retries=0))

    async def torn(request):
        if request.call.node == "think":
            return PLAN
        if request.call.node == "feedback":
            return COMPLETE
        if any(isinstance(message, ToolMessage) for message in request.messages):
            return "I could not."
        call = {"name": "write", "args": half, "id": "call-0", "error": None}
        return Reply(tool_calls=[{**call, "type": "tool_call"}])

    with OpenAIServer(torn) as server:
        state = (await run(graph_on(server, tools=[write]), "Write.", settings=settings)).state
        last = [request for request in server.requests if request.call.step == 1][-1]
    assert called == []
    assert state["current_specialist_results"]["1/worker"].text == "I could not."
    assert "not JSON" in last.messages[-1].content


async def test_a_connection_that_breaks_in_the_loop_costs_a_try_and_no_run():
    call = calling({"a": 1, "b": 2})
    replies = call, Reply("Three.", fault=Reset(after=1)), call, "Three."
    with OpenAIServer(script(*replies)) as server:
        # Of a reply that nobody hears, nothing was seen when it breaks off: it is asked for again.
        listening = {"callbacks": [StreamingStdOutCallbackHandler()]}
        state = (await run(graph_on(server, tools=[add]), "Add.", config=listening)).state
    result = state["current_specialist_results"]["1/worker"]
    assert (result.text, result.retry_count) == ("Three.", 1)


async def test_a_server_that_knows_no_tools_fails_the_step_alone():
    rest = {"think": PLAN, "feedback": COMPLETE}
    with OpenAIServer(rest, tools=False) as server:
        state = (await run(graph_on(server, tools=[add]), "Add.")).state
    result = state["current_specialist_results"]["1/worker"]
    assert result.status is ExecutionStatus.FAILED
    assert "not supported" in result.error


@pytest.mark.parametrize("streaming", [True, False])
async def test_the_host_uses_its_tools_and_its_answer_streams(streaming):
    answers = [calling({"a": 1, "b": 2}, said="Let me add."), "It is three."]
    with OpenAIServer({"think": SIMPLE, "direct_answer": answers}, streaming=streaming) as server:
        graph = graph_on(server, host_tools=[add])
        events = [event async for event in stream(graph, "One and two?")]
        thinking, *direct = server.requests
    tokens = [event.text for event in events if event.type == "answer_token"]
    assert "".join(tokens) == "It is three."
    assert (len(tokens) > 1) is streaming
    assert "answer_reset" not in [event.type for event in events]
    assert "tools" not in thinking.body
    assert all("tools" in request.body for request in direct)


@pytest.mark.parametrize("tools", [[], [add]])
async def test_an_image_of_the_request_reaches_the_specialist(tools):
    replies = (calling({"a": 1, "b": 2}), "A cat.") if tools else ("A cat.",)
    request = HumanMessage([{"type": "text", "text": "What is this?"}, IMAGE])
    with OpenAIServer(script(*replies)) as server:
        state = (await run(graph_on(server, tools=tools), {"messages": [request]})).state
        bodies = {r.call.node: r.body["messages"] for r in server.requests}
    for node in ("think", "specialist"):
        user = next(message for message in bodies[node] if message["role"] == "user")
        assert IMAGE in user["content"]
    assert PIXEL in json.dumps(bodies["specialist"])
    assert state["outcome"] == "completed"
