"""A caller may name a run; the same input under the same name goes on instead of starting again."""

import asyncio
import operator
from typing import Annotated

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from replan import (
    Host,
    Specialist,
    Team,
    build_graph,
    open_storage,
    run,
    run_sync,
    stream,
)
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD

SIMPLE = "---\ncomplexity: simple\n---\nYes."
GIVEN = {"messages": [("user", "Go.")], "plan": "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n"}


@pytest.fixture
def effects():
    return []


@pytest.fixture
def graph_of(effects):
    def build(model, **options):
        team = [
            Specialist(
                name="a", intended_use="Works.", run=lambda c: effects.append(c.run_id) or "done"
            )
        ]
        config = Team(host=Host(model=model), specialists=team)
        return build_graph(config, **options)

    return build


async def test_a_run_bears_the_name_that_it_was_given(graph_of):
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        graph = graph_of(model)
        assert (await run(graph, GIVEN, run_id="mine")).state["run_id"] == "mine"
        ids = {event.run_id async for event in stream(graph, GIVEN, run_id="other")}
        assert ids == {"other"}
        assert (await run(graph, GIVEN)).state["run_id"] not in {"mine", "other", ""}
        named = {"metadata": {"run_id": "third", "kept": 1}}
        assert (await run(graph, GIVEN, config=named)).state["run_id"] == "third"


def test_a_run_from_synchronous_code_too(graph_of):
    with ScriptedModel({"feedback": COMPLETE}) as model:
        assert run_sync(graph_of(model), GIVEN, run_id="mine").state["run_id"] == "mine"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_the_name_of_a_run_that_is_over_is_not_given_to_another(
    graph_of, effects, kind, tmp_path
):
    """Else the recorded results of the first would be taken for those of the second."""
    where = ":memory:" if kind == "memory" else tmp_path / "runs.sqlite"
    replies = {"feedback": always(COMPLETE), "think": always(SIMPLE)}
    with ScriptedModel(replies) as model:
        async with open_storage(where) as storage:
            graph = graph_of(model, storage=storage)
            await run(graph, GIVEN, config=THREAD, run_id="mine")
            await run(graph, "And now?", config=THREAD)
            state = (await run(graph, GIVEN, config=THREAD, run_id="mine")).state
            elsewhere = {"configurable": {"thread_id": "u"}}
            other = (await run(graph, GIVEN, config=elsewhere, run_id="mine")).state
    assert len({"mine", state["run_id"], other["run_id"]}) == 3
    assert state["outcome"] == other["outcome"] == "completed"
    assert len(effects) == 6


def shares(given):
    """A graph that runs two requests at once in the same graph of ours, with what it inherits."""

    async def part(sent):
        state = await given.ainvoke({"messages": [("user", sent["text"])]})
        return {"out": [(sent["text"], state["run_id"], state["usage"].calls, results(state))]}

    def each(_):
        return [Send("part", {"text": "q0"}), Send("part", {"text": "q1"})]

    whole = StateGraph(Fanned).add_node("part", part)
    return whole.add_conditional_edges(START, each, ["part"]).compile()


class Fanned(TypedDict):
    out: Annotated[list, operator.add]


def results(state):
    return [result.text for result in state["current_specialist_results"].values()]


@pytest.fixture
def echoing():
    """A graph whose specialist tells the request, so that a result that is another run's shows."""
    plan = "---\ncomplexity: complex\n---\n- [ ] 1. Do it @a\n"
    model = ScriptedModel({"think": always(plan), "feedback": always(COMPLETE)})
    team = [Specialist(name="a", intended_use="Works.", run=lambda c: c.messages[-1].text)]
    return build_graph(Team(host=Host(model=model), specialists=team))


@pytest.mark.parametrize("how", ["ainvoke", "astream"])
async def test_a_run_that_was_stopped_before_it_began_keeps_its_name_in_a_bare_call(
    graph_of, effects, how
):
    stop = asyncio.Event()
    stop.set()
    with ScriptedModel({"feedback": always(COMPLETE)}) as model:
        async with open_storage(":memory:") as storage:
            graph = graph_of(model, storage=storage)
            begun = await run(graph, GIVEN, config=THREAD, run_id="mine", stop=stop)
            assert (begun.outcome, effects) == ("interrupted", [])
            if how == "ainvoke":
                await graph.ainvoke(None, THREAD)
            else:
                assert [part async for part in graph.astream(None, THREAD)]
            state = (await graph.aget_state(THREAD)).values
            assert (state["run_id"], state["outcome"]) == ("mine", "completed")
            # Its own input again is still its own.
            again = await run(graph, GIVEN, config=THREAD, run_id="mine")
    assert (again.run_id, effects) == ("mine", ["mine", "mine"])


async def test_runs_of_a_fan_out_share_nothing_though_they_inherit_one_name(echoing):
    config = {"metadata": {"run_id": "parent"}}
    out = (await shares(echoing).ainvoke({"out": []}, config))["out"]
    assert [(text, calls, said) for text, _, calls, said in out] == [
        ("q0", 2, ["q0"]),
        ("q1", 2, ["q1"]),
    ]
    assert len({run_id for _, run_id, _, _ in out}) == 2


async def test_runs_of_a_batch_share_nothing_though_they_are_given_one_name(echoing):
    inputs = [{"messages": [("user", f"q{number}")]} for number in range(3)]
    states = await echoing.abatch(inputs, {"metadata": {"run_id": "batch"}})
    assert [results(state) for state in states] == [["q0"], ["q1"], ["q2"]]
    assert [state["usage"].calls for state in states] == [2, 2, 2]
    assert len({state["run_id"] for state in states}) == 3


async def test_without_a_thread_a_name_is_given_once(echoing):
    first = (await run(echoing, "q0", run_id="mine")).state
    second = (await run(echoing, "q1", run_id="mine")).state
    assert first["run_id"] == "mine" != second["run_id"]
    assert (results(second), second["usage"].calls) == (["q1"], 2)
