"""Unsafe steps that were cut off, beside what their page shows: ways of work, tools, no storage."""

import asyncio
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.graph import MessagesState, StateGraph

from replan import (
    Host,
    Limits,
    RunSettings,
    Specialist,
    Team,
    open_runtime,
    run,
)
from replan.testing import ScriptedModel, always
from run_pages import check_run, names_on
from scripts import COMPLETE

PAGE = Path(__file__).with_name("doubts.md")
PLAN = {"plan": "- [ ] 1. Act @actor\n"}
AGAIN = {"1/actor/1": "run again"}
SLOW = RunSettings(limits=Limits(step_timeout=0.05))


@pytest.mark.parametrize("name", names_on(PAGE))
async def test_what_was_cut_off_comes_to_what_the_page_has(name):
    await check_run(PAGE, name, ":memory:")


class Acts:
    """Acts once and does not come back, as long as it is told to."""

    def __init__(self, hangs=1):
        self.times, self.at_work, self.hangs = 0, asyncio.Event(), hangs

    async def __call__(self, _):
        self.times += 1
        if self.times <= self.hangs:
            self.at_work.set()
            await asyncio.Event().wait()
        return f"acted {self.times}"

    async def as_node(self, state):
        return {"messages": [("ai", await self(state))]}

    async def cut_off(self, runtime, going):
        """Stop a run in the middle of the work, without a grace."""
        going = asyncio.ensure_future(going)
        await asyncio.wait_for(self.at_work.wait(), 20)
        self.at_work.clear()
        await runtime.stop("r", force=True)
        assert (await going).outcome == "interrupted"


def team_of(**way):
    model = ScriptedModel({"feedback": always(COMPLETE)})
    return Team(Host(model), [Specialist("actor", "Acts.", **way)])


async def test_a_step_that_is_cut_off_again_is_asked_about_again():
    acts = Acts(hangs=2)
    async with open_runtime(team_of(invokable=acts), storage=":memory:") as runtime:
        await acts.cut_off(runtime, runtime.run(PLAN, run_id="r"))
        await runtime.resume("r")
        await acts.cut_off(runtime, await runtime.answer("r", AGAIN))
        (question,) = (await runtime.resume("r")).pending_questions
        assert "in attempt 2" in question.text
        result = await (await runtime.answer("r", {question.key: "run again"}))
        ends = [each.outcome for each in (await runtime.get("r")).attempts]
    assert (result.results[1].text, ends) == ("acted 3", ["cancelled", "cancelled", "done"])


@pytest.mark.parametrize("way", ["run", "runnable", "graph"])
async def test_work_that_declares_nothing_is_asked_about(way):
    acts = Acts()
    inner = StateGraph(MessagesState).add_node("act", acts.as_node).set_entry_point("act")
    ways = {
        "run": {"run": acts},
        "runnable": {"invokable": RunnableLambda(acts)},
        "graph": {"invokable": inner.compile()},
    }
    async with open_runtime(team_of(**ways[way]), storage=":memory:") as runtime:
        await acts.cut_off(runtime, runtime.run(PLAN, run_id="r"))
        (question,) = (await runtime.resume("r")).pending_questions
    assert (question.kind, acts.times) == ("unknown_outcome", 1)


async def test_without_a_checkpointer_a_time_out_fails_the_step_and_says_what_to_declare():
    acts = Acts()
    state = (await run(team_of(run=acts), PLAN, settings=SLOW)).state
    error = state["current_specialist_results"]["1/actor"].error
    assert "no answer within 0.05 s" in error
    assert "effects='pure' for @actor" in error
    assert (state["outcome"], acts.times) == ("failed", 1)


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
