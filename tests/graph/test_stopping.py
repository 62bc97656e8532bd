"""Runs that are told to stop: nothing new starts, what runs has a grace, and the run can go on."""

import asyncio

import pytest
from langchain_core.messages import AIMessage
from langgraph.errors import GraphDrained
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import RunControl

from replan import (
    Host,
    InputError,
    Limits,
    ModelCallError,
    Specialist,
    Team,
    build_graph,
    run,
    stream,
)
from replan.testing import ScriptedModel, always
from scripts import THREAD
from states import state_of

CHAIN = {"plan": "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n- [ ] 3. Three @a\n"}
END = {"feedback": always("---\nverdict: complete\n---\nThe end.")}


class Steps:
    """Counts its steps; the first one waits until it is let go."""

    def __init__(self):
        self.ran, self.at_work, self.leave = [], asyncio.Event(), asyncio.Event()
        self.waits = True

    async def work(self, context):
        self.ran.append(context.plan_step.id)
        if context.plan_step.id == 1 and self.waits:
            self.at_work.set()
            await self.leave.wait()
        return f"text {context.plan_step.id}"


def graph_of(work, storage, model=None, **worker):
    way = worker or {"run": work, "effects": "pure"}
    config = Team(
        host=Host(model=model or ScriptedModel(END)),
        specialists=[Specialist(name="a", intended_use="Works.", **way)],
        # One place, so that step 3 waits for it behind step 1.
        limits=Limits(max_parallel_steps=1),
    )
    return build_graph(config, storage=storage)


def others():
    return asyncio.all_tasks() - {asyncio.current_task()}


async def outcomes(storage, run_id="r"):
    return [(e.step_id, e.number, e.outcome) for e in await storage.log.ledger(run_id)]


async def test_a_step_that_runs_ends_in_its_grace_and_no_other_starts(storage):
    steps, stop = Steps(), asyncio.Event()
    graph, before = graph_of(steps.work, storage), others()
    running = asyncio.ensure_future(
        state_of(run(graph, CHAIN, config=THREAD, run_id="r", stop=stop))
    )
    await steps.at_work.wait()
    stop.set()
    steps.leave.set()
    state = await running
    assert state["outcome"] == "interrupted"
    assert steps.ran == [1]
    assert others() == before
    assert await outcomes(storage) == [(1, 1, "done")]
    state = (await run(graph, None, config=THREAD)).state
    assert sorted(steps.ran) == [1, 2, 3]
    assert (state["outcome"], state["current_round"], state["stalls"]) == ("completed", 1, 0)
    assert state["current_specialist_results"]["2/a"].text == "text 2"


async def test_what_does_not_end_in_its_grace_is_cancelled_and_done_again_later(storage):
    steps, stop = Steps(), asyncio.Event()
    graph, before = graph_of(steps.work, storage), others()
    running = asyncio.ensure_future(
        state_of(run(graph, CHAIN, config=THREAD, run_id="r", stop=stop, grace=0.01))
    )
    await steps.at_work.wait()
    stop.set()
    assert (await running)["outcome"] == "interrupted"
    assert others() == before
    assert await outcomes(storage) == [(1, 1, "cancelled")]
    steps.waits = False
    state = (await run(graph, None, config=THREAD)).state
    assert state["outcome"] == "completed"
    assert sorted(steps.ran) == [1, 1, 2, 3]
    assert (1, 2, "done") in await outcomes(storage)


async def test_a_call_of_the_host_can_be_stopped_too(storage):
    asked, stop, calls = asyncio.Event(), asyncio.Event(), []

    async def think(messages):
        calls.append(1)
        asked.set()
        if len(calls) == 1:
            await asyncio.Event().wait()
        return "---\ncomplexity: simple\n---\nYes."

    model = ScriptedModel({"think": always(think)})
    graph = graph_of(Steps().work, storage, model)
    running = asyncio.ensure_future(
        state_of(run(graph, "Well?", config=THREAD, stop=stop, grace=0.01))
    )
    await asked.wait()
    stop.set()
    assert (await running)["outcome"] == "interrupted"
    assert (await run(graph, None, config=THREAD)).state["final_answer"].text == "Yes."


async def test_events_end_where_the_run_was_stopped(storage):
    steps, stop = Steps(), asyncio.Event()
    graph, before, kinds = graph_of(steps.work, storage), others(), []
    async for event in stream(graph, CHAIN, config=THREAD, stop=stop):
        kinds.append(event.type)
        if event.type == "specialist_invoked":
            stop.set()
            steps.leave.set()
    assert kinds.count("specialist_invoked") == 1
    assert kinds[-1] == "specialist_completed"
    assert others() == before
    assert (await run(graph, None, config=THREAD)).state["outcome"] == "completed"


async def test_events_that_nobody_wants_any_more_stop_the_run(storage):
    steps, before = Steps(), others()
    events = stream(graph_of(steps.work, storage), CHAIN, config=THREAD, stop=asyncio.Event())
    async for event in events:
        if event.type == "specialist_invoked":
            break
    await events.aclose()
    assert others() == before


async def test_a_stop_that_does_not_come_or_comes_too_late_changes_nothing(storage):
    steps, stop = Steps(), asyncio.Event()
    steps.waits = False
    graph = graph_of(steps.work, storage)
    state = (await run(graph, CHAIN, config=THREAD, stop=stop)).state
    assert state["outcome"] == "completed"
    other = {"configurable": {"thread_id": "u"}}
    events = [e async for e in stream(graph, CHAIN, config=other, stop=stop)]
    assert events[-1].type == "task_completed"


async def test_an_error_of_the_run_is_raised_as_ever(storage):
    graph = graph_of(Steps().work, storage)
    with pytest.raises(InputError):
        await run(graph, {"messages": []}, config=THREAD, stop=asyncio.Event())
    with pytest.raises(InputError):
        async for _ in stream(graph, {"messages": []}, config=THREAD, stop=asyncio.Event()):
            pass


async def test_without_a_checkpointer_only_the_outcome_is_left():
    steps, stop = Steps(), asyncio.Event()
    running = asyncio.ensure_future(
        state_of(run(graph_of(steps.work, None), CHAIN, stop=stop, grace=0.01))
    )
    await steps.at_work.wait()
    stop.set()
    assert await running == {"outcome": "interrupted"}


@pytest.mark.parametrize("can_be_stopped", [True, False])
@pytest.mark.parametrize("times", [1, 3])
async def test_a_run_that_is_cancelled_however_often_leaves_nothing(storage, can_be_stopped, times):
    steps, before = Steps(), others()
    graph = graph_of(steps.work, storage)
    stop = asyncio.Event() if can_be_stopped else None
    running = asyncio.ensure_future(state_of(run(graph, CHAIN, config=THREAD, stop=stop)))
    await steps.at_work.wait()
    for _ in range(times):
        running.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert others() == before


async def test_a_graph_that_a_step_runs_has_the_grace_of_its_step(storage):
    stop = asyncio.Event()

    async def first(state: MessagesState):
        stop.set()
        return {}

    async def second(state: MessagesState):
        return {"messages": [AIMessage("whole")]}

    inner = StateGraph(MessagesState).add_node(first).add_node(second)
    inner = inner.add_edge(START, "first").add_edge("first", "second").compile()
    graph = graph_of(None, storage, invokable=inner)
    given = {"plan": "- [ ] 1. One @a\n"}
    state = (await run(graph, given, config=THREAD, run_id="r", stop=stop)).state
    assert state["outcome"] == "interrupted"
    state = (await run(graph, None, config=THREAD)).state
    assert state["outcome"] == "completed"
    assert state["current_specialist_results"]["1/a"].text == "whole"
    assert await outcomes(storage) == [(1, 1, "done")]


async def test_langgraphs_own_drain_stops_a_run_between_its_steps(storage):
    steps, control = Steps(), RunControl()
    graph = graph_of(steps.work, storage)
    running = asyncio.ensure_future(
        graph.ainvoke(CHAIN, THREAD, control=control, durability="sync")
    )
    await steps.at_work.wait()
    control.request_drain("maintenance")
    steps.leave.set()
    with pytest.raises(GraphDrained, match="maintenance"):
        await running
    state = (await run(graph, None, config=THREAD)).state
    assert sorted(steps.ran) == [1, 2, 3]
    assert state["outcome"] == "completed"


def lines(caplog):
    told = {"run stopped", "run cancelled", "run failed", "run over"}
    return [record for record in caplog.records if record.message in told]


@pytest.mark.parametrize("is_streamed", [True, False])
async def test_the_log_has_a_line_of_a_run_that_was_stopped(storage, caplog, is_streamed):
    steps, stop = Steps(), asyncio.Event()
    graph = graph_of(steps.work, storage)

    async def go():
        if not is_streamed:
            return (await run(graph, CHAIN, config=THREAD, run_id="r", stop=stop)).state
        return [e async for e in stream(graph, CHAIN, config=THREAD, run_id="r", stop=stop)]

    with caplog.at_level("INFO", "replan"):
        running = asyncio.ensure_future(go())
        await steps.at_work.wait()
        stop.set()
        steps.leave.set()
        await running
    (line,) = lines(caplog)
    assert (line.message, line.run_id, line.thread_id) == ("run stopped", "r", "t")


async def test_the_log_has_a_line_of_a_run_that_was_cancelled(storage, caplog):
    steps = Steps()
    with caplog.at_level("INFO", "replan"):
        running = asyncio.ensure_future(
            state_of(run(graph_of(steps.work, storage), CHAIN, config=THREAD))
        )
        await steps.at_work.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert [line.message for line in lines(caplog)] == ["run cancelled"]


async def test_the_log_has_a_line_of_a_run_that_failed_and_none_of_a_refused_input(caplog):
    graph = graph_of(Steps().work, None, ScriptedModel({"think": always(TypeError("secret"))}))
    with caplog.at_level("INFO", "replan"):
        with pytest.raises(ModelCallError):
            await run(graph, "Go.")
        with pytest.raises(InputError):
            await run(graph, "")
    (line,) = lines(caplog)
    assert (line.message, line.error) == ("run failed", "ModelCallError")
    (call,) = [
        record
        for record in caplog.records
        if record.message == "model call failed: think, TypeError"
    ]
    assert (call.node, call.error) == ("think", "TypeError")
    assert "secret" not in str(vars(line)) + str(vars(call))
