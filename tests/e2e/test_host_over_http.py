"""The whole host through the real OpenAI client, against servers that behave in many ways."""

import asyncio
import json

import pytest
from langchain_core.callbacks import StreamingStdOutCallbackHandler
from langchain_openai import ChatOpenAI

from replan import (
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
from replan.prompts.replies.keys import HOST
from replan.testing import Hang, HttpFault, OpenAIServer, Reply, Reset, always

PLAN = """\
---
complexity: complex
reasoning: It takes several steps.
---
- [ ] 1. Find the EU policy @researcher
- [ ] 2. Find the US policy @researcher
- [ ] 3. Compare both @analyst (after 1, 2)
"""
COMPLETE = "---\nverdict: complete\n---\nThey differ in tariffs."
SCRIPT = {
    "think": PLAN,
    "step 1": "The EU text.",
    "step 2": "The US text.",
    "step 3": "They differ.",
    "feedback": COMPLETE,
}


def graph_on(server, timeout=120.0, **options):
    models = LangChainModels(base_url=server.base_url, timeout=timeout)
    team = [
        Specialist(name="researcher", intended_use="Finds facts.", chat_model="openai:m"),
        Specialist(name="analyst", intended_use="Compares things.", chat_model="openai:m"),
    ]
    host = Host(model="openai:m")
    return build_graph(Team(host=host, specialists=team, **options), models=models)


@pytest.mark.parametrize("lacks", ["streaming", "tools", "json_mode"])
async def test_a_server_may_lack_streaming_tools_or_json_mode(lacks):
    with OpenAIServer(SCRIPT, **{lacks: False}) as server:
        state = (await run(graph_on(server), "Compare the policies.")).state
    assert state["outcome"] == "completed"
    assert state["usage"].total_tokens > 0


async def test_a_server_that_cannot_stream_is_asked_to_only_once_by_each_model():
    with OpenAIServer(SCRIPT, streaming=False) as server:
        heard = [event async for event in stream(graph_on(server), "Compare the policies.")]
        refused = [request for request in server.requests if request.stream]
    assert len(refused) == 1
    assert heard[-1].outcome == "completed"


async def last_of(events):
    return [event async for event in events][-1]


async def listen(listening, server):
    """Run as somebody does who listens, or does not; give the outcome if the way tells it."""
    graph, request = graph_on(server), "Compare the policies."
    given = {"messages": [("user", request)]}
    if listening in ("stream", "stream without tokens"):
        return (await last_of(stream(graph, request, tokens=listening == "stream"))).outcome
    if listening == "astream_events":
        return (await last_of(graph.astream_events(given, version="v2")))["data"]["output"][
            "outcome"
        ]
    if listening in ("messages", "updates", "custom"):
        modes = [listening, "values"]
        return (await last_of(graph.astream(given, stream_mode=modes)))[1]["outcome"]
    if listening == "ainvoke":
        return (await graph.ainvoke(given))["outcome"]
    callbacks = [StreamingStdOutCallbackHandler()] if listening == "handler" else []
    return (await run(graph, request, config={"callbacks": callbacks})).state["outcome"]


@pytest.mark.parametrize("listening", ["run", "ainvoke", "updates", "stream without tokens"])
async def test_replies_are_asked_for_as_a_whole_where_nobody_hears_tokens(listening):
    with OpenAIServer(SCRIPT) as server:
        assert await listen(listening, server) == "completed"
        assert [request.stream for request in server.requests] == [False] * 5


@pytest.mark.parametrize("listening", ["stream", "messages", "custom", "astream_events", "handler"])
async def test_replies_are_streamed_where_somebody_hears_tokens(listening):
    with OpenAIServer(SCRIPT) as server:
        assert await listen(listening, server) == "completed"
        assert [request.stream for request in server.requests] == [True] * 5


@pytest.mark.parametrize("listening", ["messages", "astream_events", "handler"])
async def test_who_listens_to_a_server_that_cannot_stream_gets_whole_replies(listening):
    with OpenAIServer(SCRIPT, streaming=False) as server:
        assert await listen(listening, server) == "completed"


async def test_an_answer_that_nobody_heard_come_is_one_event():
    with OpenAIServer(SCRIPT) as server:
        events = [
            event async for event in stream(graph_on(server), "Compare the policies.", tokens=False)
        ]
    assert [event.text for event in events if event.type == "answer_token"] == [
        "They differ in tariffs."
    ]
    assert not [event for event in events if event.type == "specialist_token"]


async def test_a_whole_reply_is_bounded_by_the_time_of_its_step():
    settings = RunSettings(limits=Limits(step_timeout=1.0, step_retries=0))
    with OpenAIServer({**SCRIPT, "step 1": [Hang()], "step 3": []}) as server:
        state = (await run(graph_on(server), "Compare the policies.", settings=settings)).state
    assert state["current_specialist_results"]["1/researcher"].error.endswith("within 1 s")


@pytest.mark.parametrize("fault", [HttpFault(500), Reset(after=0), Reset(after=2)])
@pytest.mark.parametrize("place", ["think", "step 2", "feedback"])
async def test_a_fault_that_passes_costs_no_work(fault, place):
    broken = Reply(SCRIPT[place], fault=fault)
    with OpenAIServer({**SCRIPT, place: [broken, SCRIPT[place]]}) as server:
        state = (await run(graph_on(server), "Compare the policies.")).state
        calls = server.calls
    assert state["outcome"] == "completed"
    assert state["final_answer"].text == "They differ in tariffs."
    steps = sum(count for key, count in calls.items() if key.startswith("step"))
    assert steps == 3 + (place == "step 2")


async def test_a_stream_that_is_closed_early_leaves_no_task_behind():
    before = asyncio.all_tasks()
    with OpenAIServer({**SCRIPT, "step 3": [Hang()], "feedback": [always("")]}) as server:
        events = stream(graph_on(server), "Compare the policies.")
        async for event in events:
            if event.type == "specialist_invoked" and event.step_id == 3:
                break
        await asyncio.to_thread(server.wait_for_requests, 4)
        await events.aclose()
        assert asyncio.all_tasks() <= before


def model_at(server, **profile):
    url = server.base_url
    return ChatOpenAI(model="m", base_url=url, api_key="k", max_retries=0, profile=profile)


def json_of(**fields):
    return json.dumps(fields, ensure_ascii=False)


TEXT = PLAN.partition("---\n- ")[2]
JSON_SCRIPT = {
    "think": json_of(complexity="complex", reasoning="Steps.", body=f"- {TEXT}"),
    "feedback": json_of(verdict="complete", update="", feedback="", body="They differ in tariffs."),
}


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("can", [True, False])
async def test_a_provider_enforces_the_form_of_judgements_where_it_can_and_is_asked_to(asks, can):
    is_enforced = asks and can
    script = {**SCRIPT, **JSON_SCRIPT} if is_enforced else SCRIPT
    with OpenAIServer(script, json_mode=is_enforced) as server:
        model = model_at(server, structured_output=can)
        team = [Specialist(each, "Works.", chat_model=model) for each in ("researcher", "analyst")]
        host = Host(model, structured_output=asks)
        state = (await run(build_graph(Team(host, team)), "Compare the policies.")).state
        sent = {each.call.node: each.body.get("response_format") for each in server.requests}
        prompts = {each.call.node: each.messages[0].text for each in server.requests}
    assert state["final_answer"].text == "They differ in tariffs."
    assert len(state["current_plan"].steps) == 3
    assert sent["specialist"] is None
    for node, key in (("think", "complexity"), ("feedback", "verdict")):
        assert ("one JSON object" in prompts[node]) == is_enforced
        assert bool(sent[node]) == is_enforced
        if is_enforced:
            schema = sent[node]["json_schema"]["schema"]
            assert schema["properties"][key]["enum"] == [*HOST[key].values]
            assert schema["required"] == [*schema["properties"]]


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_tokens_from_a_cache_of_the_provider_are_shown(is_streamed):
    script = {**SCRIPT, "feedback": Reply(COMPLETE, usage=(100, 10), cached=64)}
    with OpenAIServer(script) as server:
        if is_streamed:
            events = [event async for event in stream(graph_on(server), "Compare the policies.")]
            calls = [event for event in events if event.type == "model_completed"]
            assert sorted(event.cached_tokens for event in calls) == [0, 0, 0, 0, 64]
        else:
            usage = (await run(graph_on(server), "Compare the policies.")).state["usage"]
            assert (usage.cached_tokens, usage.by["feedback"].cached_tokens) == (64, 64)
