"""Calls on several loops and in threads: none waits for a loop that waits for it, limits hold."""

import asyncio
import logging

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableParallel

import warm
from replan import (
    Host,
    Limits,
    Price,
    Specialist,
    Team,
    build_graph,
    run,
    run_sync,
)
from replan.testing import Hang, Reply, ScriptedModel, always
from scripts import DONE
from states import state_of

TEXT = always(Reply("text", usage=(300, 100)))
ENDS = {"feedback": always(DONE), "final_answer": always("Done.")}


def model_of(specialist=TEXT, **replies):
    return ScriptedModel({"*": specialist, **ENDS, **replies})


def graph_of(model, *team, **options):
    return build_graph(Team(host=Host(model=model), specialists=team, **options))


def plan(steps, who="a"):
    return {"plan": "".join(f"- [ ] {n}. Part {n} @{who}\n" for n in range(1, steps + 1))}


async def ends(graph, given, within=30.0, **options):
    """Run it in a thread, so that what stands still is seen."""
    return await asyncio.wait_for(
        asyncio.to_thread(lambda: run_sync(graph, given, **options).state), within
    )


def batched(model, messages, config):
    model.batch([messages] * 3, config)


def in_parallel(model, messages, config):
    RunnableParallel(a=model, b=model, c=model).invoke(messages, config)


def streamed(model, messages, config):
    model.batch([messages] * 2, config)
    list(model.stream(messages, config))


WAYS = [batched, in_parallel, streamed]


@pytest.mark.parametrize("way", WAYS)
async def test_a_fan_out_without_await_in_an_async_specialist_is_made_and_counted(way):
    model = model_of()

    async def work(messages, config):
        way(model, messages, config)
        return "done"

    a = Specialist(name="a", intended_use="Works.", invokable=work)
    state = await ends(graph_of(model, a), plan(2))
    assert state["outcome"] == "completed"
    assert state["usage"].by["a"].calls == 6
    assert state["usage"].calls == len(model.calls)


@pytest.mark.parametrize(
    ("way", "limits"),
    list(
        zip(WAYS, [{"max_model_calls": 4}, {"max_tokens": 30_000}, {"max_cost": 0.06}], strict=True)
    ),
    ids=["calls", "tokens", "cost"],
)
async def test_limits_hold_for_a_fan_out_that_blocks_the_loop_of_the_run(way, limits):
    model = model_of()

    async def work(messages, config):
        way(model, messages, config)
        return "done"

    a = Specialist(name="a", intended_use="Works.", invokable=work)
    bounds = Limits(step_retries=0, **limits)
    prices = {"ScriptedModel": Price(input=2, output=8)}
    state = await ends(graph_of(model, a, limits=bounds, prices=prices), plan(30))
    assert state["limit_reached"] == next(iter(limits))
    assert len(model.calls) <= limits.get("max_model_calls", 90)
    assert 400 * len(model.calls) <= limits.get("max_tokens", 10**6)
    assert state["usage"].cost <= limits.get("max_cost", 10)


async def test_a_tool_without_await_that_fans_out_ends():
    inner = ScriptedModel({"*": TEXT})

    async def look_up(what: str) -> str:
        """Look something up."""
        inner.batch([what, what])
        return "found"

    call = {"name": "look_up", "args": {"what": "x"}, "id": "1", "type": "tool_call"}
    model = model_of(always(Reply("Found.", usage=(5, 5))))
    model = ScriptedModel({**ENDS, "step 1": [AIMessage("", tool_calls=[call]), "Found."]})
    a = Specialist(name="a", intended_use="Works.", chat_model=model, tools=[look_up])
    state = await ends(graph_of(model, a, limits=Limits(max_tokens=100_000)), plan(1))
    assert state["outcome"] == "completed"
    assert len(inner.calls) == 2


@pytest.mark.parametrize(
    "limits", [{"max_tokens": 30_000}, {"max_cost": 0.12}, {"max_model_calls": 30}]
)
async def test_a_graph_that_a_thread_runs_ends_under_the_limits_of_the_run_around_it(limits):
    model = model_of()
    inner = graph_of(model, Specialist(name="b", intended_use="Works.", chat_model=model))
    prices = {"ScriptedModel": Price(input=2, output=8)}

    def work(context):
        return run_sync(inner, plan(4, "b")).state["outcome"]

    outer = graph_of(
        model,
        Specialist(name="a", intended_use="Works.", run=work),
        limits=Limits(step_retries=0, step_timeout=60, **limits),
        prices=prices,
    )
    state = await ends(outer, plan(8))
    assert state["outcome"] in ("completed", "partial")
    assert state["usage"].calls == len(model.calls)
    assert len(model.calls) <= limits.get("max_model_calls", 10**6)
    assert 400 * len(model.calls) <= limits.get("max_tokens", 10**6)
    assert state["usage"].cost <= limits.get("max_cost", 10)


@pytest.mark.parametrize("usage", [(-500, 100), (300, -1_000), (-5, -5), (10**19, 5), (5, 10**19)])
async def test_a_reply_with_token_counts_that_cannot_be_is_charged_and_the_run_ends(usage):
    replies = [Reply("one", usage=(300, 100)), Reply("two", usage=usage)]
    model = model_of([*replies, TEXT])
    a = Specialist(name="a", intended_use="Works.", chat_model=model)
    state = await ends(graph_of(model, a, limits=Limits(max_tokens=12_000)), plan(12))
    assert state["outcome"] in ("completed", "partial")
    assert state["usage"].by["a"].calls == len(model.calls) - 1
    used = state["usage"]
    assert 0 < used.input_tokens + used.output_tokens <= 12_000


async def test_a_call_that_waits_for_room_in_vain_is_refused_at_the_time_of_its_step():
    hangs = {"step 1": Hang(), "step 2": TEXT}
    model = ScriptedModel({**ENDS, **hangs})
    team = [Specialist(name=name, intended_use="Works.", chat_model=model) for name in ("a", "b")]
    text = "- [ ] 1. Hang @a (timeout 3s; optional)\n- [ ] 2. Wait @b (timeout 0.3s)\n"
    limits = Limits(step_retries=0, max_tokens=6_000)
    state = await ends(graph_of(model, *team, limits=limits), {"plan": text})
    assert state["limit_reached"] == "max_tokens"
    assert state["current_plan"].step(2).status == "pending"
    assert "no answer within 3 s" in state["current_specialist_results"]["1/a"].error


STUBBORN = """
import asyncio
from langchain_core.language_models import BaseChatModel
from replan import Host, Limits, Team, Specialist, build_graph, run_sync
from replan.models.spending import deadline

class Stubborn(BaseChatModel):
    # Its retry loop takes a cancellation for one more failure.
    @property
    def _llm_type(self): return "stubborn"
    def _generate(self, *given, **options): raise NotImplementedError
    async def _agenerate(self, *given, **options):
        while True:
            try: await asyncio.Event().wait()
            except asyncio.CancelledError: continue

deadline.GRACE = 0.05
graph = build_graph(Team(
    host=Host(model=Stubborn()),
    specialists=[Specialist(name="a", intended_use="Works.", run=lambda context: "done")],
    limits=Limits(step_timeout=0.05),
))
print(run_sync(graph, {"plan": "- [ ] 1. Do it @a"}).outcome)
"""


def test_a_host_model_that_swallows_its_cancellation_is_given_up_and_told():
    ended = warm.run("-c", STUBBORN)
    assert (ended.returncode, ended.stdout) == (0, "partial\n"), ended.stderr
    assert "work that does not stop was left alone" in ended.stderr


class Meter(BaseCallbackHandler):
    """A callback of the user's own, which fails."""

    def on_chat_model_start(self, *given, **options):
        raise RuntimeError("my own meter is broken")


def test_what_others_log_is_left_as_it_is(caplog):
    with ScriptedModel({"*": ["One."]}) as model:
        model.invoke("Hi", {"callbacks": [Meter()]})
    assert "my own meter is broken" in caplog.text
    assert not logging.getLogger("langchain_core.callbacks.manager").filters


async def test_run_sync_says_what_to_do_where_a_loop_runs():
    a = Specialist(name="a", intended_use="Works.", run=lambda context: "done")
    with pytest.raises(RuntimeError, match=r"await replan\.run"):
        run_sync(graph_of(model_of(), a), plan(1))


@pytest.mark.parametrize("places", [1, 2, 4])
async def test_langgraphs_max_concurrency_bounds_the_steps_and_starves_none(places):
    at_work, most = 0, 0

    async def work(context):
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0)
        at_work -= 1
        return "done"

    # Each is sent before what it waits for.
    chain = "".join(
        f"- [ ] {n}. Part {n} @a ({f'after {n - 4}; ' if n > 4 else ''}priority {n})\n"
        for n in range(1, 15)
    )
    a = Specialist(name="a", intended_use="Works.", run=work)
    graph = graph_of(model_of(), a)
    state = await graph.ainvoke({"plan": chain}, {"max_concurrency": places})
    assert (state["outcome"], state["current_round"]) == ("completed", 1)
    assert most == places


@pytest.mark.parametrize("limit", [1, 5, 10, 25])
@pytest.mark.parametrize("bare", [True, False])
async def test_langgraphs_recursion_limit_neither_breaks_nor_shortens_a_run(limit, bare):
    a = Specialist(name="a", intended_use="Works.", run=lambda context: "done")
    graph = graph_of(model_of(), a, round_scope="step")
    config = {"recursion_limit": limit}
    given = plan(7)
    state = await (
        graph.ainvoke(given, config) if bare else state_of(run(graph, given, config=config))
    )
    assert (state["outcome"], state["current_round"]) == ("completed", 7)


async def test_what_a_step_runs_has_langgraphs_bounds_as_the_caller_gave_them():
    seen = []

    def work(messages, config):
        seen.append((config.get("recursion_limit"), config.get("max_concurrency")))
        return "done"

    a = Specialist(name="a", intended_use="Works.", invokable=work)
    graph = graph_of(model_of(), a)
    await graph.ainvoke(plan(1), {"recursion_limit": 30, "max_concurrency": 3})
    assert seen == [(30, 3)]
