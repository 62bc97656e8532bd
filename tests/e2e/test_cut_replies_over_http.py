"""Replies that end before they are over, and replies that are none, over real HTTP."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from langchain_openai import ChatOpenAI

from replan import (
    Host,
    Limits,
    ModelCallError,
    Specialist,
    Team,
    build_graph,
    run,
    stream,
)
from replan.assembly.team_services import services_of
from replan.graph.build import host_graph
from replan.models.providers.chat_models import LangChainModels
from replan.testing import OpenAIServer, Reply, Truncated, always
from replan.views.ahead.preview import calls_of_reply, calls_of_try
from scripts import COMPLETE

PLAN = "- [ ] 1. Find it @finder\n- [ ] 2. Find more @finder\n- [ ] 3. Join @finder (after 1, 2)\n"
THINK = f"---\ncomplexity: complex\n---\n{PLAN}"
SIMPLE = "---\ncomplexity: simple\n---\nIt is Par"


def graph_on(url, *, chat=False, limits=None):
    work = {"chat_model": "openai:m"} if chat else {"run": lambda context: "found"}
    config = Team(
        host=Host(model="openai:m"),
        specialists=[Specialist(name="finder", intended_use="Finds and joins.", **work)],
        limits=limits or Limits(),
    )
    services = services_of(config, LangChainModels(base_url=url))
    return host_graph(replace(services, retry_wait=0)).compile()


async def end_of(graph, given: Any = "Do it.", *, heard) -> Any:
    """How a run ends: the answer, the outcome, the limits that were told, and its plan."""
    if not heard:
        state = (await run(graph, given)).state
        limits = [state["limit_reached"]] if state["limit_reached"] else []
        return state["final_answer"].text, state["outcome"], limits, state.get("current_plan")
    events = [event async for event in stream(graph, given)]
    limits = [event.limit for event in events if event.type == "limit_reached"]
    plans = [e.plan for e in events if e.type in ("plan_created", "plan_updated")]
    return events[-1].answer.text, events[-1].outcome, limits, plans[-1] if plans else None


async def test_f14_an_answer_that_our_own_limit_cuts_is_partial_and_says_so():
    asked = []

    def serve(request):
        most = request.body.get("max_tokens") or request.body.get("max_completion_tokens")
        asked.append(most)
        if request.call.node == "think":
            return Reply(THINK, usage=(900, 100))
        words = "---\nverdict: complete\n---\n" + "word " * 5_000
        is_long = most is not None and most < 5_000
        text = words[: 4 * most] if is_long else words
        return Reply(text, fault=Truncated() if is_long else None)

    with OpenAIServer(serve) as server:
        graph = graph_on(server.base_url, limits=Limits(max_tokens=6_000))
        answer, outcome, limits, _ = await end_of(graph, heard=False)
    assert asked[-1] < 5_000
    assert answer.startswith("word word")
    assert (outcome, limits) == ("partial", ["reply_length"])


async def test_k18_a_first_stream_that_ends_in_silence_is_asked_for_again_as_a_whole():
    silent = Reply(THINK[:60], fault=Truncated("cut"))
    with OpenAIServer({"think": [silent, THINK], "feedback": COMPLETE}) as server:
        answer, outcome, _, plan = await end_of(graph_on(server.base_url), heard=True)
        streamed = [request.stream for request in server.requests]
    assert (answer, outcome, len(plan.steps)) == ("The answer.", "completed", 3)
    # One silent end may be chance: streams are tried again.
    assert streamed == [True, False, True]


async def test_a_server_that_never_tells_an_end_is_asked_for_whole_replies():
    async def serve(http: web.Request) -> web.StreamResponse:
        body = await http.json()
        asked.append(bool(body.get("stream")))
        if not asked[-1]:
            message = {"role": "assistant", "content": SIMPLE}
            return web.json_response({"choices": [{"index": 0, "message": message}]})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        delta = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": SIMPLE}}]}
        await response.write(b"data: " + json.dumps(delta).encode() + b"\n\ndata: [DONE]\n\n")
        return response

    asked: list[bool] = []
    async with raw_server(serve) as url:
        graph = graph_on(url)
        for _ in range(4):
            ended = await end_of(graph, heard=True)
            assert ended == ("It is Par", "answered", [], None)
    assert asked == [True, False, True, False, False, False]


@asynccontextmanager
async def raw_server(serve) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", serve)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def silent_server(*replies: str) -> AsyncIterator[tuple[str, list[bool]]]:
    """A server that never says why a reply ended, as one behind a careless proxy."""
    asked: list[bool] = []
    left = list(replies)

    async def serve(http: web.Request) -> web.StreamResponse:
        asked.append(bool((await http.json()).get("stream")))
        if not asked[-1]:
            choice = {"index": 0, "message": {"role": "assistant", "content": left.pop(0)}}
            return web.json_response({"choices": [choice]})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        delta = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": left[0]}}]}
        await response.write(b"data: " + json.dumps(delta).encode() + b"\n\ndata: [DONE]\n\n")
        return response

    async with raw_server(serve) as url:
        yield url, asked


HALVES = ['{"capital": "Par', '```json\n{"capital": "Par', "```python\nprint("]


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("half", HALVES)
async def test_an_answer_that_ends_within_its_structure_without_a_reason_is_partial(half, heard):
    async with silent_server(f"---\ncomplexity: simple\n---\n{half}") as (url, asked):
        ended = await end_of(graph_on(url), heard=heard)
    assert ended == (half, "partial", ["reply_length"], None)
    assert asked == ([True, False] if heard else [False])


async def test_a_result_that_ends_within_its_structure_without_a_reason_is_asked_for_once_more():
    given = {"messages": "Go.", "plan": "- [ ] 1. A @finder\n"}
    for second, kept in (('{"a": 1}', '{"a": 1}'), ('{"a": [', "[Incomplete: ")):
        async with silent_server('{"a": [1, 2', second, COMPLETE) as (url, asked):
            _, outcome, limits, plan = await end_of(graph_on(url, chat=True), given, heard=False)
        assert (outcome, limits, len(asked)) == ("completed", [], 3)
        assert plan.step(1).result.startswith(kept)


def own_team(url, **settings) -> Any:
    """A team on a model that its author made."""
    model = ChatOpenAI(model="m", base_url=url, api_key="none", max_retries=0, **settings)
    finder = Specialist(name="finder", intended_use="Finds and joins.", chat_model=model)
    return build_graph(Team(host=Host(model=model), specialists=[finder]))


@pytest.mark.parametrize("heard", [False, True])
async def test_a_refusal_of_a_callers_own_model_ends_with_its_own_words(heard):
    refused = Reply(refusal="I cannot help with that.")
    with OpenAIServer({"*": always(refused)}) as server:
        answer, outcome, limits, _ = await end_of(own_team(server.base_url), heard=heard)
        streamed = [request.stream for request in server.requests]
    assert answer == "There is no answer: the model refused: I cannot help with that."
    assert (outcome, limits) == ("failed", ["content_filter"])
    # LangChain drops a refusal from a stream; so it is asked for as a whole, and so is the next.
    assert streamed == ([True, False, False, True, False] if heard else [False] * 3)


async def test_each_call_for_a_refusal_that_a_stream_dropped_is_counted():
    refused = Reply(refusal="I cannot help with that.", usage=(100, 9))
    with OpenAIServer({"*": always(refused)}) as server:
        events = [event async for event in stream(own_team(server.base_url), "Do it.")]
        asked = len(server.requests)
    assert events[-1].usage.calls == asked == 5


async def test_a_specialist_whose_streamed_refusal_is_dropped_keeps_the_bound_of_a_try():
    given = {"messages": "Go.", "plan": "- [ ] 1. A @finder\n"}
    refused = always(Reply(refusal="I cannot help with that."))
    with OpenAIServer({"step 1": refused, "feedback": COMPLETE}) as server:
        _, _, _, plan = await end_of(own_team(server.base_url), given, heard=True)
        streamed = [each.stream for each in server.requests if each.call.step == 1]
    assert "I cannot help with that" in plan.step(1).feedback
    assert streamed == [True, False, False]
    assert len(streamed) == calls_of_try(calls_of_reply(0))


async def test_an_empty_stream_of_a_callers_own_model_is_asked_for_whole_and_then_taken():
    replies = ["", "---\ncomplexity: simple\n---\nParis."]
    with OpenAIServer({"think": replies}) as server:
        answer, outcome, _, _ = await end_of(own_team(server.base_url), heard=True)
        streamed = [request.stream for request in server.requests]
    assert (answer, outcome, streamed) == ("Paris.", "answered", [True, False])


async def test_an_empty_stream_of_our_own_model_is_no_hidden_refusal():
    replies = ["", "---\ncomplexity: simple\n---\nParis."]
    with OpenAIServer({"think": replies}) as server:
        answer, _, _, _ = await end_of(graph_on(server.base_url), heard=True)
        streamed = [request.stream for request in server.requests]
    assert (answer, streamed) == ("Paris.", [True, True])


ODD = [
    {"error": {"message": "the model is overloaded", "type": "server_error"}},
    {"error": {"message": "the model is overloaded", "code": 503}},
    {"error": "the model is overloaded"},
    {"detail": "the model is overloaded"},
    {"object": "error", "message": "the model is overloaded", "code": 50001},
    {"choices": None, "message": "the model is overloaded"},
    {"choices": [], "note": "the model is overloaded"},
    {"choices": [{"index": 0, "message": None, "note": "the model is overloaded"}]},
    ["the model is overloaded"],
]


def odd_server(body, times):
    """A server that answers so many times with status 200 and no reply."""
    asked = []

    async def serve(http: web.Request) -> web.StreamResponse:
        asked.append(await http.json())
        if len(asked) <= times:
            return web.json_response(body, headers={"Retry-After": "0"})
        message = {"role": "assistant", "content": SIMPLE + "is."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"choices": [choice]})

    return serve, asked


@pytest.mark.parametrize("heard", [False, True])
@pytest.mark.parametrize("body", ODD, ids=json.dumps)
async def test_18_an_error_with_status_200_is_tried_again_like_a_busy_server(body, heard):
    serve, _ = odd_server(body, times=2)
    async with raw_server(serve) as url:
        ended = await end_of(graph_on(url), heard=heard)
    assert ended == ("It is Paris.", "answered", [], None)


@pytest.mark.parametrize("body", ODD, ids=json.dumps)
async def test_18_an_error_with_status_200_is_told_in_the_servers_own_words(body):
    serve, asked = odd_server(body, times=10_000)
    async with raw_server(serve) as url:
        with pytest.raises(ModelCallError, match="the model is overloaded"):
            await run(graph_on(url), "Do it.")
    assert len(asked) == 3


async def test_18_a_request_that_is_refused_with_status_200_is_not_made_again():
    body = {"error": {"message": "no such model", "type": "invalid_request_error"}}
    serve, asked = odd_server(body, times=10_000)
    async with raw_server(serve) as url:
        with pytest.raises(ModelCallError, match="no such model"):
            await run(graph_on(url), "Do it.")
    assert len(asked) == 1


@pytest.mark.parametrize("last_only", [False, True])
async def test_14_usage_that_grows_with_each_piece_of_a_stream_is_counted_once(last_only):
    async def serve(http: web.Request) -> web.StreamResponse:
        await http.json()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(http)
        words = SIMPLE.split(" ")
        for at, word in enumerate(words, 1):
            is_last = at == len(words)
            text = word + ("" if is_last else " ")
            choice = {"index": 0, "delta": {"role": "assistant", "content": text}}
            choice["finish_reason"] = "stop" if is_last else None
            usage = {"prompt_tokens": 990, "completion_tokens": at, "total_tokens": 990 + at}
            chunk = {"choices": [choice], "usage": usage if is_last or not last_only else None}
            await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response

    async with raw_server(serve) as url:
        events = [e async for e in stream(graph_on(url, limits=Limits(max_tokens=9_000)), "Go.")]
    assert events[-1].outcome == "answered"
    assert events[-1].usage.total_tokens == 990 + len(SIMPLE.split(" "))
