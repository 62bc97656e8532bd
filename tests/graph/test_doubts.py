"""Unsafe steps that were cut off: asked about, failed, or done again, and never in silence."""

import asyncio
from datetime import UTC, datetime

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import MessagesState, StateGraph

from replan import (
    Host,
    Limits,
    RunSettings,
    Specialist,
    Team,
    build_graph,
    run,
    waiting_for,
)
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD
from states import said, state_of

PLAN = {"plan": "- [ ] 1. Act @actor\n- [ ] 2. Go on @other (after 1)\n- [ ] 3. Apart @other\n"}


class Acts:
    """Acts once and does not come back, as long as it is told to."""

    def __init__(self, hangs=1):
        self.times, self.at_work, self.hangs = 0, asyncio.Event(), hangs

    async def __call__(self, messages):
        self.times += 1
        if self.times <= self.hangs:
            self.at_work.set()
            await asyncio.Event().wait()
        return f"acted {self.times}"


@pytest.fixture
def cut_off(storage):
    """A run whose unsafe step was cancelled in the middle."""

    async def start(acts, *, on_doubt="ask", **actor):
        way = actor or {"invokable": acts}
        # Its thread may be at work when the run is cancelled.
        other = Specialist(
            name="other", intended_use="Works.", run=lambda context: "worked", effects="pure"
        )
        config = Team(
            host=Host(
                model=ScriptedModel({"feedback": always("---\nverdict: complete\n---\nThe end.")})
            ),
            specialists=[
                Specialist(name="actor", intended_use="Acts.", **way),
                other,
            ],
            on_doubt=on_doubt,
        )
        graph = build_graph(config, storage=storage)
        running = asyncio.ensure_future(state_of(run(graph, PLAN, config=THREAD, run_id="r")))
        await asyncio.wait_for(acts.at_work.wait(), 20)
        acts.at_work.clear()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return graph

    return start


async def ledger_of(storage):
    return [(e.number, e.outcome) for e in await storage.log.ledger("r") if e.step_id == 1]


async def test_the_person_is_asked_once_while_other_branches_go_on(storage, cut_off):
    acts = Acts()
    graph = await cut_off(acts)
    state = (await run(graph, None, config=THREAD)).state
    (question,) = waiting_for(state)
    assert (question.kind, question.key) == ("unknown_outcome", "1/actor/1")
    assert question.details == {"attempt": 1, "task": "Act"}
    assert question.text == (
        "Step 1 at @actor was cut off in attempt 1: nobody knows whether it took effect. Answer "
        '"it is done: RESULT" (what you write becomes its result, and the steps that wait for it '
        'go on), "fail: REASON" (the step counts as failed, and the steps that need it are not '
        'done) or "run again" (the work is done again from its beginning, even what may have '
        "happened already)."
    )
    assert state["current_specialist_results"]["3/other"].text == "worked"
    # To go on without an answer asks the same again, and does nothing.
    state = (await run(graph, None, config=THREAD)).state
    assert waiting_for(state) == (question,)
    assert acts.times == 1
    assert await ledger_of(storage) == [(1, "cancelled")]


@pytest.mark.parametrize(
    ("answer", "outcome", "text", "ledger"),
    [
        ("run again", "completed", "acted 2", [(1, "cancelled"), (2, "done")]),
        ("It is done: receipt 7", "completed", "receipt 7", [(1, "done")]),
        ("done", "completed", "Done.", [(1, "done")]),
        ({"action": "fail", "text": "never arrived"}, "partial", "", [(1, "failed")]),
    ],
)
async def test_what_the_person_says_is_what_came_of_it(
    storage, cut_off, answer, outcome, text, ledger
):
    acts = Acts()
    graph = await cut_off(acts)
    await run(graph, None, config=THREAD)
    state = (await run(graph, await said(graph, answer, THREAD), config=THREAD)).state
    result = state["current_specialist_results"]["1/actor"]
    assert (state["outcome"], result.text) == (outcome, text)
    assert result.error == ("" if text else "never arrived")
    assert await ledger_of(storage) == ledger
    assert acts.times == (2 if answer == "run again" else 1)


async def test_a_step_that_is_cut_off_again_is_asked_about_again(storage, cut_off):
    acts = Acts(hangs=2)
    graph = await cut_off(acts)
    await run(graph, None, config=THREAD)
    running = asyncio.ensure_future(
        state_of(run(graph, await said(graph, "run again", THREAD), config=THREAD))
    )
    await asyncio.wait_for(acts.at_work.wait(), 20)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    state = (await run(graph, None, config=THREAD)).state
    (question,) = waiting_for(state)
    assert "in attempt 2" in question.text
    state = (await run(graph, await said(graph, "run again", THREAD), config=THREAD)).state
    assert state["current_specialist_results"]["1/actor"].text == "acted 3"
    assert await ledger_of(storage) == [(1, "cancelled"), (2, "cancelled"), (3, "done")]


async def test_where_nobody_is_asked_the_step_fails_and_says_what_is_in_doubt(storage, cut_off):
    acts = Acts()
    graph = await cut_off(acts, on_doubt="fail")
    state = (await run(graph, None, config=THREAD)).state
    result = state["current_specialist_results"]["1/actor"]
    assert "Step 1 at @actor was cut off in attempt 1" in result.error
    assert "2/other" not in state["current_specialist_results"]
    assert state["outcome"] == "partial"
    assert acts.times == 1
    (entry,) = [e for e in await storage.log.ledger("r") if e.step_id == 1]
    assert entry.outcome == "failed"
    assert entry.started_at < entry.ended_at <= datetime.now(UTC)


@pytest.mark.parametrize("way", ["run", "runnable", "graph"])
async def test_work_that_declares_nothing_is_asked_about(cut_off, way):
    acts = Acts()

    async def act(state):
        return {"messages": [("ai", await acts(()))]}

    inner = StateGraph(MessagesState).add_node("act", act).set_entry_point("act")
    ways = {
        "run": {"run": acts},
        "runnable": {"invokable": RunnableLambda(acts)},
        "graph": {"invokable": inner.compile()},
    }
    graph = await cut_off(acts, **ways[way])
    state = (await run(graph, None, config=THREAD)).state
    (question,) = waiting_for(state)
    assert question.kind == "unknown_outcome"
    assert acts.times == 1


def slow_team(acts, *, saver=None, **actor):
    model = ScriptedModel({"feedback": always("---\nverdict: complete\n---\nThe end.")})
    config = Team(
        host=Host(model=model),
        specialists=[
            Specialist(name="actor", intended_use="Acts.", run=acts, **actor),
            Specialist(name="other", intended_use="Works.", run=lambda context: "worked"),
        ],
        limits=Limits(step_timeout=0.05),
    )
    return build_graph(config, checkpointer=saver)


async def test_a_time_out_of_work_that_declares_nothing_is_asked_about():
    acts = Acts()
    graph = slow_team(acts, saver=InMemorySaver())
    state = (await run(graph, PLAN, config=THREAD)).state
    (question,) = waiting_for(state)
    assert "was cut off in attempt 1 (StepTimeoutError: no answer within 0.05 s)" in question.text
    assert state["current_specialist_results"]["3/other"].text == "worked"
    state = (await run(graph, await said(graph, "run again", THREAD), config=THREAD)).state
    assert state["outcome"] == "completed"
    assert state["current_specialist_results"]["1/actor"].text == "acted 2"


async def test_without_a_checkpointer_a_time_out_fails_the_step_and_says_what_to_declare():
    acts = Acts()
    state = (await run(slow_team(acts), PLAN)).state
    error = state["current_specialist_results"]["1/actor"].error
    assert "no answer within 0.05 s" in error
    assert "effects='pure' for @actor" in error
    assert (state["outcome"], acts.times) == ("partial", 1)


async def test_a_time_out_of_pure_work_is_tried_again():
    acts = Acts()
    state = (await run(slow_team(acts, effects="pure"), PLAN)).state
    assert state["current_specialist_results"]["1/actor"].text == "acted 2"


async def test_where_no_more_questions_may_be_asked_the_step_fails(storage, cut_off):
    acts = Acts()
    graph = await cut_off(acts)
    few = RunSettings(limits=Limits(max_questions=0))
    state = (await run(graph, None, config=THREAD, settings=few)).state
    assert "Step 1 at @actor was cut off in attempt 1" in (
        state["current_specialist_results"]["1/actor"].error
    )
    assert acts.times == 1


@pytest.mark.parametrize("bound", ["idle_timeout", "step_timeout"])
async def test_a_step_that_fails_while_a_call_of_its_tool_is_in_doubt_says_so(bound):
    begun = asyncio.Event()

    @tool
    async def pay(amount: int) -> str:
        """Pay."""
        begun.set()
        await asyncio.Event().wait()
        return "paid"

    call = {"name": "pay", "args": {"amount": 5}, "id": "c1", "type": "tool_call"}
    model = ScriptedModel({"step 1": AIMessage("", tool_calls=[call]), "feedback": COMPLETE})
    clerk = Specialist("clerk", "Pays.", chat_model=model, tools=[pay])
    limits = Limits(step_retries=0, **{bound: 0.2})
    result = await run(Team(model, [clerk], limits=limits), {"plan": "- [ ] 1. Pay @clerk\n"})
    assert begun.is_set()
    assert result.outcome == "failed"
    error = result.plan.step(1).feedback
    assert "StepTimeoutError: no " in error
    assert "The call of pay was cut off in attempt 1. Nobody knows whether it took" in error
