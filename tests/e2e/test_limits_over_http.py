"""Limits against a real client: a server over HTTP that honours what it is told, or does not."""

import asyncio
from dataclasses import replace

import pytest
from langchain_core.callbacks import StreamingStdOutCallbackHandler
from langchain_openai import ChatOpenAI

from replan import (
    Budget,
    Host,
    Limits,
    PlanDocument,
    Price,
    Specialist,
    Team,
    build_graph,
    run,
)
from replan.assembly.team_services import services_of
from replan.graph.build import host_graph
from replan.models.providers.chat_models import LangChainModels
from replan.testing import HttpFault, OpenAIServer, Reply, Reset, Truncated
from replan.views.ahead.preview import KnownTeam, worst_case_calls
from scripts import COMPLETE

WIDE = {"max_steps": 300, "max_parallel_steps": 200, "max_model_calls": 1_000}


class Till:
    """A server that writes long replies, stops where it is told to, and keeps its own account."""

    def __init__(self, longest=3_000, *, heeds=True, together=0):
        self.longest = longest
        self.heeds = heeds
        self.tokens = 0
        self.caps = []
        self.together = together
        self.gathered = asyncio.Event()

    async def __call__(self, request):
        cap = request.body.get("max_completion_tokens")
        self.caps.append(cap)
        read = sum(len(message.text) for message in request.messages) // 4
        written = min(self.longest, cap) if cap and self.heeds else self.longest
        self.tokens += read + written
        if len(self.caps) >= self.together:
            self.gathered.set()
        await self.gathered.wait()
        is_host = request.call is not None and request.call.node == "feedback"
        return Reply(COMPLETE if is_host else "text", usage=(read, written))


def plan_of(steps):
    return "".join(f"- [ ] {n}. Part {n} @a\n" for n in range(1, steps + 1))


async def go(server, limits, *, steps=200, budget=None, **worker):
    given = worker or {"chat_model": "openai:m"}
    given["limits"] = budget or Budget()
    config = Team(
        host=Host(model="openai:m"),
        specialists=[Specialist(name="a", intended_use="Works.", **given)],
        limits=limits,
        prices={"m": Price(input=1, output=4)},
    )
    graph = build_graph(config, base_url=server.base_url)
    return (await run(graph, {"messages": [("user", "Go.")], "plan": plan_of(steps)})).state


@pytest.mark.parametrize(
    ("limits", "streaming"),
    [({"max_tokens": 60_000}, True), ({"max_cost": 0.2}, False)],
    ids=["tokens, streaming", "cost, whole"],
)
async def test_no_server_that_stops_when_told_to_is_paid_for_more_than_the_limit(limits, streaming):
    till = Till()
    async with OpenAIServer(till, models=("m",), streaming=streaming) as server:
        state = await go(server, Limits(**{**WIDE, **limits}))
    usage = state["usage"]
    assert usage.total_tokens == till.tokens
    assert usage.cost == pytest.approx((usage.input_tokens + 4 * usage.output_tokens) / 1_000_000)
    for limit, value in limits.items():
        used = {"max_tokens": usage.total_tokens, "max_cost": usage.cost}[limit]
        assert 0.6 * value < used <= value
        assert state["limit_reached"] == limit
    assert all(till.caps)
    assert state["outcome"] == "partial"
    assert state["final_answer"].text.startswith("The answer.")
    assert "Not done" in state["final_answer"].text


@pytest.mark.parametrize("limits", [{}, {"max_tokens": 1_500_000, "max_cost": 9.0}])
async def test_limits_that_nobody_reaches_keep_no_step_waiting(limits):
    # The server answers nobody before all steps have asked.
    till = Till(longest=50, together=80)
    async with OpenAIServer(till, models=("m",)) as server:
        state = await go(server, Limits(**{**WIDE, **limits}), steps=80)
    assert state["outcome"] == "completed"
    # Without a limit nothing is asked for that nobody configured.
    assert all(till.caps) if limits else set(till.caps) == {None}


def invoke(url):
    """A function that calls a model of its own, without `await`."""
    model = ChatOpenAI(model="m", base_url=url, api_key="none", max_retries=0, stream_usage=True)

    def work(context):
        return model.invoke(f"Do part {context.plan_step.id}.").text

    async def blocking(context):
        return model.invoke(f"Do part {context.plan_step.id}.").text

    async def streaming(context):
        return "".join([chunk.text for chunk in model.stream("Do it.")])

    return {"in a thread": work, "on the event loop": blocking, "streamed": streaming}


@pytest.mark.parametrize("how", ["in a thread", "on the event loop", "streamed"])
async def test_calls_without_await_inside_functions_are_bound_too(how):
    till = Till(longest=50)
    async with OpenAIServer(till, models=("m",)) as server:
        run_of = invoke(server.base_url)[how]
        limits = Limits(**{**WIDE, "max_model_calls": 21})
        state = await go(server, limits, steps=60, run=run_of)
    assert len(server.requests) == state["usage"].calls == 21
    assert len(state["current_plan"].completed_steps) == 20
    assert (state["outcome"], state["limit_reached"]) == ("partial", "max_model_calls")
    assert state["usage"].total_tokens == till.tokens


async def test_a_tool_loop_is_cut_in_the_middle_and_its_step_stays_pending():
    def look(word: str) -> str:
        """Look a word up."""
        return f"{word} is a word. " * 20

    async def serve(request):
        if request.call and request.call.node == "feedback":
            return Reply(COMPLETE, usage=(100, 20))
        call = {"name": "look", "args": {"word": "x"}, "id": None, "type": "tool_call"}
        caps.append(request.body.get("max_completion_tokens"))
        return Reply("", tool_calls=[call], usage=(400 * len(caps), 60))

    caps = []
    async with OpenAIServer(serve, models=("m",)) as server:
        limits = Limits(max_tokens=8_000, step_retries=0)
        state = await go(server, limits, steps=1, chat_model="openai:m", tools=[look])
    assert len(caps) > 2
    assert all(caps)
    assert state["usage"].total_tokens <= 8_000
    assert state["current_plan"].step(1).status == "pending"
    assert (state["outcome"], state["limit_reached"]) == ("partial", "max_tokens")
    assert state["usage"].by["a"].calls == len(caps)


@pytest.mark.parametrize("steps", [3, 12])
@pytest.mark.parametrize("tokens", [1_500, 2_000, 5_000])
async def test_a_small_budget_does_some_work_and_a_model_still_answers(tokens, steps):
    till = Till(longest=40)
    async with OpenAIServer(till, models=("m",)) as server:
        state = await go(server, Limits(**WIDE, max_tokens=tokens), steps=steps)
    assert till.tokens <= tokens
    assert len(state["current_plan"].completed_steps) >= 3
    # `final_answer` asks where there is no room for a judgement; both are the model's.
    assert state["final_answer"].text.startswith(("The answer.", "text"))
    assert (state["outcome"] == "completed") == (state["limit_reached"] == "")


async def test_an_answer_is_asked_for_with_as_many_results_as_there_is_room_for():
    till = Till(longest=60)
    async with OpenAIServer(till, models=("m",)) as server:
        state = await go(server, Limits(**WIDE, max_tokens=10_000), steps=80)
        asked = server.requests[-1]
    assert till.tokens <= 10_000
    assert (state["outcome"], state["limit_reached"]) == ("partial", "max_tokens")
    assert state["final_answer"].text.startswith("text\n\n**Not done:**")
    assert asked.call.node == "final_answer"
    assert 10 < asked.messages[-1].text.count("<result ") < 79


def every_third(fault):
    """A server that fails now and then, and counts what it read and wrote all the same."""

    async def serve(request):
        read = sum(len(message.text) for message in request.messages) // 4
        counted.append(0 if isinstance(fault, HttpFault) and len(counted) % 3 == 2 else read + 10)
        is_host = request.call is not None and request.call.node == "feedback"
        text = COMPLETE if is_host else "text"
        is_faulty = len(counted) % 3 == 0
        return Reply(text, usage=(read, 10), fault=fault if is_faulty else None)

    counted = []
    return serve, counted


def given_model(url):
    """A model that is given as an object, whose client would try again by itself."""
    return ChatOpenAI(model="m", base_url=url, api_key="none", max_retries=2, stream_usage=True)


BUSY, RESET = HttpFault(429, retry_after=0.0), Reset(0)


@pytest.mark.parametrize(("by", "fault"), [("name", BUSY), ("name", RESET), ("object", BUSY)])
async def test_the_further_tries_of_a_client_are_calls_too(by, fault):
    serve, _ = every_third(fault)
    async with OpenAIServer(serve, models=("m",)) as server:
        model = "openai:m" if by == "name" else given_model(server.base_url)
        limits = Limits(**{**WIDE, "max_model_calls": 16})
        state = await go(server, limits, steps=30, chat_model=model)
    assert len(server.requests) == state["usage"].calls == 16
    assert (state["outcome"], state["limit_reached"]) == ("partial", "max_model_calls")


@pytest.mark.parametrize("fault", [BUSY, RESET, Truncated("cut")], ids=str)
async def test_a_call_that_breaks_off_is_charged_whatever_the_server_did(fault):
    serve, counted = every_third(fault)
    async with OpenAIServer(serve, models=("m",)) as server:
        limits = Limits(**WIDE, max_tokens=20_000)
        await go(server, limits, steps=60)
    assert len(counted) > 5
    assert sum(counted) <= 20_000


async def test_the_worst_case_that_is_told_before_a_run_can_happen():
    busy, no_stream, bad = HttpFault(429, retry_after=0.0), HttpFault(501), HttpFault(503)
    refused = [busy, busy, no_stream]
    question = [*refused, bad]
    script = [
        # The step: busy twice, does not stream, is cut off; busy twice again, refuses for good.
        *(*refused, Reply("Half a", fault=Truncated()), busy, busy, HttpFault(400)),
        *(busy, busy, ""),  # a judgement that cannot be read
        *question,  # asked for again in vain
        *question,  # and the answer, too
    ]
    async with OpenAIServer({"*": script}, models=("m", "n")) as server:
        limits = Limits(max_rounds=1, step_retries=0)
        config = Team(
            host=Host(model="openai:m"),
            specialists=[Specialist(name="a", intended_use="Works.", chat_model="openai:n")],
            limits=limits,
            allow_dynamic_update=False,
        )
        models = LangChainModels(base_url=server.base_url)
        graph = host_graph(replace(services_of(config, models), retry_wait=0)).compile()
        plan = PlanDocument.parse(plan_of(1)).plan
        # Only who listens has streams asked for, which a server can refuse.
        listening = {"callbacks": [StreamingStdOutCallbackHandler()]}
        given = {"messages": [("user", "Go.")], "plan": plan_of(1)}
        state = (await run(graph, given, config=listening)).state
    assert len(server.requests) == worst_case_calls(plan, KnownTeam(limits=limits, revisable=False))
    assert len(server.requests) == state["usage"].calls == 7 + 7 + 4
    assert state["outcome"] == "failed"
    assert state["final_answer"].text
