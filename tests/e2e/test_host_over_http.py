"""The whole host through the real OpenAI client, against servers that behave in many ways."""

import asyncio

import pytest

from replan import Host, MultiAgentConfig, Specialist, build_graph, run, stream
from replan.adapters.models import LangChainModels
from replan.testing import Hang, HttpFault, OpenAIServer, Reply, Reset, Truncated, always

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


def graph_on(server, **options):
    models = LangChainModels(base_url=server.base_url)
    team = [
        Specialist(name="researcher", intended_use="Finds facts.", chat_model="openai:m"),
        Specialist(name="analyst", intended_use="Compares things.", chat_model="openai:m"),
    ]
    host = Host(tool_calling_model="openai:m")
    return build_graph(MultiAgentConfig(host=host, specialists=team, **options), models=models)


async def test_a_plan_of_three_steps_takes_five_requests_and_their_usage_is_counted():
    with OpenAIServer(SCRIPT, strict_roles=True) as server:
        state = await run(graph_on(server), "Compare the policies.")
        assert sum(server.calls.values()) == 5
        assert state["usage"].calls == 5
        assert state["usage"].input_tokens == server.usage.input_tokens
        assert state["usage"].output_tokens == server.usage.output_tokens
        assert set(state["usage"].by) == {"think", "researcher", "analyst", "feedback"}
    assert state["outcome"] == "completed"
    assert state["final_answer"].text == "They differ in tariffs."


@pytest.mark.parametrize("lacks", ["streaming", "tools", "json_mode"])
async def test_a_server_may_lack_streaming_tools_or_json_mode(lacks):
    with OpenAIServer(SCRIPT, **{lacks: False}) as server:
        state = await run(graph_on(server), "Compare the policies.")
    assert state["outcome"] == "completed"
    assert state["usage"].total_tokens > 0


async def test_a_server_that_cannot_stream_is_asked_to_only_once_by_each_model():
    with OpenAIServer(SCRIPT, streaming=False) as server:
        await run(graph_on(server), "Compare the policies.")
        refused = [request for request in server.requests if request.stream]
    assert len(refused) == 1


async def test_a_busy_server_is_waited_for():
    script = {**SCRIPT, "step 1": [HttpFault(429, retry_after=0.3), "The EU text."]}
    with OpenAIServer(script) as server:
        state = await run(graph_on(server), "Compare the policies.")
        times = [request.time for request in server.requests if request.call.step == 1]
    assert times[1] - times[0] >= 0.3
    assert state["outcome"] == "completed"


@pytest.mark.parametrize("fault", [HttpFault(500), Reset(after=0), Reset(after=2)])
@pytest.mark.parametrize("place", ["think", "step 2", "feedback"])
async def test_a_fault_that_passes_costs_no_work(fault, place):
    broken = Reply(SCRIPT[place], fault=fault)
    with OpenAIServer({**SCRIPT, place: [broken, SCRIPT[place]]}) as server:
        state = await run(graph_on(server), "Compare the policies.")
        calls = server.calls
    assert state["outcome"] == "completed"
    assert state["final_answer"].text == "They differ in tariffs."
    steps = sum(count for key, count in calls.items() if key.startswith("step"))
    assert steps == 3 + (place == "step 2")


async def test_a_truncated_judgement_ends_the_run_all_the_same():
    broken = Reply(COMPLETE, fault=Truncated("length"))
    script = {**SCRIPT, "feedback": [always(broken)], "final_answer": [always("They differ.")]}
    with OpenAIServer(script) as server:
        state = await run(graph_on(server), "Compare the policies.")
    assert state["outcome"] == "completed"


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
