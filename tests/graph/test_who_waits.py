"""While some steps ask a person and others run, a run says exactly which is which."""

import asyncio

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from replan import Host, Specialist, Team, ask_user, open_runtime
from replan.testing import ScriptedModel, always

DONE = {"feedback": always("---\nverdict: complete\n---\nDone.")}
PLAN = """\
- [ ] 1. Work @worker
- [ ] 2. Which colour? @asker
- [ ] 3. Ask @twin
- [ ] 4. Join @joiner (after 2)
- [ ] 5. Ask @twin
"""
ALL = {1: "running", 2: "waiting", 3: "waiting", 4: "pending", 5: "waiting"}


class Steps:
    """One step works until it is let go, others ask."""

    def __init__(self):
        self.may_end = asyncio.Event()

    async def work(self, context):
        await self.may_end.wait()
        return "worked"

    def team(self):
        return Team(
            Host(ScriptedModel(DONE)),
            [
                Specialist("worker", "Works.", run=self.work, effects="pure"),
                Specialist("asker", "Asks.", run=lambda context: ask_user("Which colour?")),
                Specialist("twin", "Asks by itself.", invokable=asking_graph(), effects="pure"),
                Specialist("joiner", "Joins.", run=lambda context: "joined"),
            ],
        )


def asking_graph():
    def node(state):
        return {"messages": [AIMessage(f"heard {interrupt('Which twin?')}")]}

    graph = StateGraph(MessagesState).add_node("node", node)
    return graph.add_edge(START, "node").compile()


@pytest.fixture
async def runtime():
    steps = Steps()
    async with open_runtime(steps.team(), storage=":memory:") as opened:
        opened.steps = steps
        yield opened


async def asked_in(runtime, run, most):
    """The steps that ask, as the events tell them, until so many have."""
    told = []
    async for event in runtime.events(run.run_id):
        if event.type == "input_requested":
            told.append(event.step_id)
        if len(told) == most:
            return sorted(told)
    return sorted(told)


def statuses(report):
    return {each.step.id: each.status_text for each in report.steps}


async def test_who_looks_at_a_run_sees_which_steps_run_and_which_wait(runtime):
    run = await runtime.start({"plan": PLAN})
    assert await asked_in(runtime, run, 3) == [2, 3, 5]
    view = await runtime.get(run.run_id)
    assert (view.outcome, statuses(view)) == ("running", ALL)
    runtime.steps.may_end.set()
    result = await run
    assert [(ask.step_id, ask.who) for ask in result.pending_questions] == [
        (3, "step 3 twin"),
        (5, "step 5 twin"),
    ]
    view = await runtime.get(run.run_id)
    assert statuses(view) == ALL | {1: "completed"}
    assert sorted((ask.step_id, ask.text) for ask in view.pending_questions) == [
        (2, "Which colour?"),
        (3, "Which twin?"),
        (5, "Which twin?"),
    ]


async def test_what_a_graph_asks_by_itself_is_told_once_and_answered_one_by_one(runtime):
    runtime.steps.may_end.set()
    run = await runtime.start({"plan": PLAN})
    first = (await run).pending_questions[0]
    result = await (await runtime.answer(run.run_id, {first.key: "one"}))
    assert [ask.step_id for ask in result.pending_questions] == [5]
    result = await (await runtime.answer(run.run_id, {result.pending_questions[0].key: "two"}))
    result = await (await runtime.answer(run.run_id, {"2": "red"}))
    assert result.outcome == "completed"
    assert (result.results[3].text, result.results[5].text) == ("heard one", "heard two")
    told = [each async for each in runtime.events(run.run_id)]
    asked = [each.step_id for each in told if each.type == "input_requested"]
    assert sorted(asked) == [2, 3, 5]
