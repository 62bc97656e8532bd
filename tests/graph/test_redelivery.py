"""A queue may deliver a run's input again: what was done stays done, however it went on before."""

import asyncio

import pytest
from langgraph.types import Command

from replan import (
    Host,
    InputError,
    Limits,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_storage,
    raise_limits,
    run,
)
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD
from states import said

JOB = {"plan": "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n- [ ] 3. Three @a (after 2)\n"}


@pytest.fixture
def done():
    return []


@pytest.fixture
def work(done):
    """Steps that say what they do; some ask, and one tells that it may be stopped."""

    def make(asks=(), stop=None):
        async def do(context):
            step = context.plan_step.id
            if step in asks:
                ask_user(f"May {step}?")
            if stop is not None and step == 2 and not stop.is_set():
                stop.set()
                await asyncio.Event().wait()
            done.append((context.run_id, step))
            return "done"

        return do

    return make


@pytest.fixture
async def build():
    async with open_storage(":memory:") as storage:

        def make(work, **options):
            model = ScriptedModel({"feedback": always(COMPLETE), "final_answer": always("Cut.")})
            team = [Specialist(name="a", intended_use="Works.", run=work, effects="pure")]
            config = Team(host=Host(model=model), specialists=team, **options)
            return build_graph(config, storage=storage)

        yield make


async def again(graph, job=None, **options):
    return (await run(graph, job or JOB, config=THREAD, run_id="job-7", **options)).state


EVERY_STEP_ONCE = [("job-7", 1), ("job-7", 2), ("job-7", 3)]


async def stopped(graph):
    await run(graph, None, config=THREAD)


async def answered(graph):
    await run(graph, await said(graph, "yes", THREAD), config=THREAD)


async def approved(graph):
    await run(graph, await said(graph, "approve", THREAD), config=THREAD)


async def answered_by_langgraph(graph):
    await graph.ainvoke(await said(graph, "yes", THREAD), THREAD)


async def raised(graph):
    more = RunSettings(limits=Limits(max_steps=5))
    await raise_limits(graph, settings=more, config=THREAD)
    await run(graph, None, config=THREAD)


@pytest.mark.parametrize("went_on", [stopped, answered, approved, answered_by_langgraph, raised])
async def test_a_run_that_went_on_is_not_done_or_asked_again(build, work, done, went_on):
    stop = asyncio.Event() if went_on is stopped else None
    asks = [2] if went_on in (answered, answered_by_langgraph) else []
    approval = "always" if went_on is approved else "never"
    settings = RunSettings(limits=Limits(max_steps=1)) if went_on is raised else None
    graph = build(work(asks, stop), approval=approval)
    first = await again(graph, stop=stop, grace=0.1, settings=settings)
    assert first["outcome"] in ("interrupted", "waiting", "partial")
    await went_on(graph)
    state = await again(graph, settings=settings)
    assert (state["outcome"], state["run_id"]) == ("completed", "job-7")
    assert done == EVERY_STEP_ONCE
    if settings:
        assert state["settings"].limits.max_steps == 5


async def test_a_run_that_waits_goes_on_waiting(build, work, done):
    graph = build(work(asks=[2, 3]))
    await again(graph)
    await answered(graph)
    state = await again(graph)
    assert (state["outcome"], state["run_id"]) == ("waiting", "job-7")
    assert done == EVERY_STEP_ONCE[:2]
    await answered(graph)
    assert done == EVERY_STEP_ONCE


async def test_another_input_under_the_name_is_a_run_of_its_own(build, work, done):
    graph = build(work())
    await again(graph)
    state = await again(graph, {"plan": "- [ ] 1. Something else @a\n"})
    assert state["run_id"] != "job-7"
    assert done[3:] == [(state["run_id"], 1)]


async def test_a_run_that_goes_on_has_room_for_the_rounds_that_it_was_begun_with(build, work):
    plan = {"plan": "".join(f"- [ ] {number}. Step {number} @a\n" for number in range(1, 21))}
    stop = asyncio.Event()
    graph = build(work(stop=stop), round_scope="step")
    many = RunSettings(limits=Limits(max_rounds=40))
    await again(graph, plan, settings=many, stop=stop, grace=0.1)
    state = (await run(graph, None, config=THREAD)).state
    assert (state["outcome"], state["current_round"]) == ("completed", 20)


async def test_a_run_has_room_for_the_rounds_that_its_limit_was_raised_to(build, work):
    plan = {"plan": "".join(f"- [ ] {number}. Step {number} @a\n" for number in range(1, 21))}
    graph = build(work(), round_scope="step", limits=Limits(max_rounds=2))
    assert (await again(graph, plan))["limit_reached"] == "max_rounds"
    await raise_limits(graph, settings=RunSettings(limits=Limits(max_rounds=30)), config=THREAD)
    state = (await run(graph, None, config=THREAD)).state
    assert (state["outcome"], state["current_round"]) == ("completed", 20)


BARE = {**THREAD, "metadata": {"run_id": "job-7"}}


@pytest.mark.parametrize("resumed", [None, Command(resume="yes")], ids=["None", "an answer"])
async def test_a_bare_delivery_does_nothing_more_after_a_bare_resume(build, work, done, resumed):
    stop = asyncio.Event()
    graph = build(work(asks=[2]) if resumed else work(stop=stop))
    if resumed:
        await graph.ainvoke(JOB, BARE)
    else:
        await again(graph, stop=stop, grace=0.1)
    await graph.ainvoke(resumed, THREAD)
    state = await graph.ainvoke(JOB, BARE)
    assert (state["outcome"], state["run_id"]) == ("completed", "job-7")
    assert len(state["messages"]) == 2
    assert done == EVERY_STEP_ONCE


async def test_a_bare_delivery_of_a_run_that_waits_goes_on_waiting(build, work, done):
    graph = build(work(asks=[2, 3]))
    await graph.ainvoke(JOB, BARE)
    await graph.ainvoke(await said(graph, "yes", THREAD), THREAD)
    modes = [mode async for mode, _ in graph.astream(JOB, BARE, stream_mode=["updates", "values"])]
    assert "updates" in modes
    assert done == EVERY_STEP_ONCE[:2]
    assert (await graph.ainvoke(await said(graph, "yes", THREAD), THREAD))["outcome"] == "completed"
    assert done == EVERY_STEP_ONCE


async def test_another_bare_input_under_the_name_is_a_run_of_its_own(build, work, done):
    graph = build(work(asks=[2]))
    await graph.ainvoke(JOB, BARE)
    state = await graph.ainvoke({"plan": "- [ ] 1. Something else @a\n"}, BARE)
    assert (state["outcome"], state["run_id"] != "job-7") == ("completed", True)
    assert done == [("job-7", 1), (state["run_id"], 1)]


async def test_an_empty_input_is_refused_on_a_thread_that_has_a_run(build, work, done):
    graph = build(work())
    state = await graph.ainvoke(JOB, BARE)
    for config in (THREAD, {"configurable": {"thread_id": "new"}}):
        with pytest.raises(InputError, match="There is nothing to do"):
            await graph.ainvoke({}, config)
    assert (await graph.aget_state(THREAD)).values == state
    assert done == EVERY_STEP_ONCE
