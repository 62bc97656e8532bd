"""A graph of ours inside of another graph: as its node, or run by one of its nodes."""

import logging
from dataclasses import dataclass

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde import jsonplus
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, interrupt

from replan import (
    Host,
    InputError,
    Limits,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    run,
    stream,
    waiting_for,
)
from replan.pipelines import (
    BaseAgent,
    InteractionUnit,
    Response,
    StateHandler,
    SubThreadAgent,
    SubThreadExecutionHandler,
    SubThreadPreparationHandler,
)
from replan.ports.run_context import here
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD
from states import state_of

PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Do it @a\n- [ ] 2. Do more @a (after 1)\n"


@dataclass
class Tenant:
    name: str = "acme"


def ours(work=lambda context: "done"):
    model = ScriptedModel(
        {"think": always(PLAN), "feedback": always(COMPLETE), "final_answer": always("Cut.")}
    )
    team = [Specialist(name="a", intended_use="Works.", run=work)]
    return build_graph(Team(host=Host(model=model), specialists=team))


def by_invoking(graph):
    async def node(state, config):
        return {"messages": [(await graph.ainvoke(state, config))["final_answer"]]}

    return node


def by_running(graph):
    async def node(state):
        return {"messages": [(await run(graph, state)).state["final_answer"]]}

    return node


def by_streaming(graph):
    async def node(state):
        events = [event async for event in stream(graph, state)]
        return {"messages": [events[-1].answer]}

    return node


def as_it_is(graph):
    return graph


@pytest.mark.parametrize("way", [as_it_is, by_invoking, by_running, by_streaming])
async def test_a_context_of_the_graph_around_it_is_left_to_those_who_know_it(way):
    seen = []
    graph = ours(lambda context: seen.append(get_runtime(Tenant).context.name) or "done")
    around = StateGraph(MessagesState, context_schema=Tenant)
    whole = around.add_node("ours", way(graph)).add_edge(START, "ours").compile()
    state = await whole.ainvoke({"messages": [("user", "Go.")]}, context=Tenant())
    assert state["messages"][-1].text == "The answer."
    assert seen == ["acme", "acme"]


async def test_a_team_inside_of_a_team_has_its_own_settings():
    inner, seen = ours(), []

    async def delegate(context, config):
        state = await inner.ainvoke({"messages": [("user", "Go.")]}, config)
        seen.append((state["outcome"], state["settings"].limits.max_steps))
        return "done"

    settings = RunSettings(limits=Limits(max_steps=1))
    state = await state_of(
        run(ours(delegate), {"plan": "- [ ] 1. Hand it on @a\n"}, settings=settings)
    )
    assert state["settings"].limits.max_steps == 1
    assert seen == [("completed", 100)]


def as_specialist(inner):
    return Specialist("a", "Delegates.", invokable=inner, effects="pure")


def as_function(inner):
    async def delegate(context, config):
        return await inner.ainvoke({"messages": [("user", context.task_description)]}, config)

    return Specialist("a", "Delegates.", run=delegate, effects="pure")


def broken(context):
    if context.plan_step.id == 2:
        raise ValueError("no such house")
    here().warn("The wall was wet.")
    return "done"


@pytest.mark.parametrize("way", [as_specialist, as_function])
@pytest.mark.parametrize(
    ("settings", "answers", "status", "why"),
    [
        ({}, [], "partial", "ended 'partial'; step 2: ValueError: no such house"),
        ({"limits": Limits(max_rounds=1, max_stalls=1)}, [], "partial", "step 2: ValueError"),
        ({"approval": "plan"}, ["reject"], "failed", "ended 'rejected'"),
    ],
)
async def test_a_step_is_no_better_than_the_run_of_the_team_that_did_it(
    way, settings, answers, status, why
):
    model = ScriptedModel({"think": always(PLAN), "feedback": always(COMPLETE)})
    worker = Specialist("a", "Works.", run=broken, effects="pure")
    inner = build_graph(Team(Host(model), [worker], **settings))
    judge = ScriptedModel({"feedback": always(COMPLETE)})
    outer = build_graph(Team(Host(judge), [way(inner)]), checkpointer=InMemorySaver())
    result = await run(outer, {"plan": "- [ ] 1. Hand it on @a\n"}, config=THREAD)
    for answer in answers:
        (asked,) = waiting_for(result.state)
        result = await run(outer, Command(resume={asked.key: answer}), config=THREAD)
    (done,) = result.results.of(1)
    assert (result.outcome, done.status) == ("partial", status)
    assert why in result.plan.step(1).feedback
    assert ("The wall was wet." in result.warnings) is (status == "partial")


def in_two_steps(*, approval):
    """Two steps that hand on to a team which asks about its plans; gives what was done, too."""
    done = []
    model = ScriptedModel({"think": always(PLAN), "feedback": always(COMPLETE)})
    worker = Specialist("a", "Works.", run=lambda _: done.append(1) or "done", effects="pure")
    inner = build_graph(Team(Host(model), [worker], approval="plan"))
    two = "---\ncomplexity: complex\n---\n- [ ] 1. One @a\n- [ ] 2. Two @a\n"
    host = ScriptedModel({"think": always(two), "feedback": always(COMPLETE)})
    return Team(Host(host), [as_specialist(inner)], approval=approval), done


async def test_each_team_in_a_step_asks_about_its_plan_under_a_key_of_its_own():
    team, done = in_two_steps(approval="never")
    graph = build_graph(team, checkpointer=InMemorySaver())
    result = await run(graph, "Go.", config=THREAD)
    asked = waiting_for(result.state)
    assert {each.key for each in asked} == {"1/a/plan", "2/a/plan"}
    assert len({each.fingerprint for each in asked}) == 2
    with pytest.raises(InputError, match="No open question has the key 'plan'"):
        await run(graph, Command(resume={"plan": "approve"}), config=THREAD)
    result = await run(graph, Command(resume={"2/a/plan": "approve"}), config=THREAD)
    assert ([each.key for each in waiting_for(result.state)], len(done)) == (["1/a/plan"], 2)
    result = await run(graph, Command(resume={"1/a/plan": "reject"}), config=THREAD)
    assert [each.status for each in result.results.values()] == ["failed", "success"]
    assert len(done) == 2


async def test_an_approval_that_is_sent_twice_lets_no_plan_in_a_step_run():
    team, done = in_two_steps(approval="always")
    async with open_runtime(team, storage=":memory:") as runtime:
        begun = await runtime.start("Go.")
        await begun
        await (await runtime.answer(begun.run_id, {"plan": "approve"}))
        asked = (await begun.report()).pending_questions
        assert {each.key: each.who for each in asked} == {
            "1/a/plan": "step 1 a",
            "2/a/plan": "step 2 a",
        }
        with pytest.raises(InputError, match="No open question has the key 'plan'"):
            await runtime.answer(begun.run_id, {"plan": "approve"})
        await (await runtime.answer(begun.run_id, {each.key: "approve" for each in asked}))
        assert ((await begun.report()).outcome, len(done)) == ("completed", 4)


async def test_each_phase_of_a_pipeline_runs_a_team_of_its_own_however_often_it_waits():
    done = []

    def work(context):
        done.append(ask_user("Which?"))
        return "done"

    model = ScriptedModel({"think": always(PLAN), "feedback": always(COMPLETE)})
    worker = Specialist("a", "Works.", run=work, effects="pure")
    inner = build_graph(Team(Host(model), [worker], approval="plan"))

    class DraftWritingHandler(StateHandler):
        async def handle(self, task, thread, agent):
            state = await inner.ainvoke({"messages": [("user", f"Do {self.phase}.")]})
            return Response(f"{self.phase} {state['outcome']}")

    class DraftWritingAgent(SubThreadAgent):
        async def _initialize_interaction_units(self):
            writing = DraftWritingHandler(phase="draft_writing", next_phase="draft_revision")
            revision = DraftWritingHandler(phase="draft_revision")
            self.interaction_units = {
                each.phase: await InteractionUnit.create(state_handler=each)
                for each in (writing, revision)
            }

    class DraftExecutionHandler(SubThreadExecutionHandler):
        sub_thread_agent = DraftWritingAgent

    class DraftAgent(BaseAgent):
        async def _initialize_state_handlers(self):
            prepare, execute = SubThreadPreparationHandler(), DraftExecutionHandler()
            self.state_handlers = {prepare.phase: prepare, execute.phase: execute}

    judge = ScriptedModel({"feedback": always(COMPLETE)})
    writer = Specialist("writer", "Writes.", pipeline=DraftAgent, effects="pure")
    graph = build_graph(Team(Host(judge), [writer]), checkpointer=InMemorySaver())
    result = await run(graph, {"plan": "- [ ] 1. It @writer\n"}, config=THREAD)
    plans = []
    for colour in ("red", "grey", "blue", "green", "none"):
        asked = result.pending_questions
        if [each.kind for each in asked] == ["plan"]:
            plans.append(asked[0].key)
            result = await run(graph, Command(resume={asked[0].key: "approve"}), config=THREAD)
            asked = result.pending_questions
        if asked:
            result = await run(graph, Command(resume={asked[0].key: colour}), config=THREAD)
    assert (result.outcome, result.results[1].text) == ("completed", "draft_revision completed")
    assert done == ["red", "grey", "blue", "green"]
    assert len(set(plans)) == 2


async def test_a_phase_that_asks_by_langgraphs_interrupt_fails_and_is_told_how_to_ask():
    class NoteWritingHandler(StateHandler):
        async def handle(self, task, thread, agent):
            return Response(f"It is {interrupt('Which?')}.")

    class NoteAgent(BaseAgent):
        async def _initialize_state_handlers(self):
            self.state_handlers = {"note_writing": NoteWritingHandler(phase="note_writing")}

    judge = ScriptedModel({"feedback": always(COMPLETE)})
    writer = Specialist("writer", "Writes.", pipeline=NoteAgent, effects="pure")
    graph = build_graph(Team(Host(judge), [writer]), checkpointer=InMemorySaver())
    result = await run(graph, {"plan": "- [ ] 1. It @writer\n"}, config=THREAD)
    # It cannot be told to which phase an answer would go.
    assert (result.outcome, result.pending_questions) == ("failed", ())
    assert "Ask with `ask_user`" in result.results[1].error


async def test_a_step_whose_team_did_nothing_is_not_done():
    model = ScriptedModel({"think": always(PLAN)})
    worker = Specialist("a", "Works.", chat_model=model)
    inner = build_graph(Team(Host(model), [worker], limits=Limits(max_model_calls=1)))
    judge = ScriptedModel({"feedback": always(COMPLETE)})
    result = await run(Team(Host(judge), [as_specialist(inner)]), {"plan": "- [ ] 1. It @a\n"})
    (done,) = result.results.of(1)
    assert (result.outcome, done.status) == ("partial", "partial")
    assert "the limit max_model_calls was reached" in done.error


async def test_a_result_that_a_limit_of_its_team_cut_says_so():
    model = ScriptedModel({"think": always(PLAN), "feedback": always(COMPLETE)})
    worker = Specialist("a", "Works.", run=lambda context: "done", effects="pure")
    inner = build_graph(Team(Host(model), [worker], limits=Limits(max_steps=1)))
    judge = ScriptedModel({"feedback": always(COMPLETE)})
    result = await run(Team(Host(judge), [as_specialist(inner)]), {"plan": "- [ ] 1. It @a\n"})
    (done,) = result.results.of(1)
    assert (done.status, done.cut) == ("success", "max_steps")
    assert done.marked_text.startswith("[Incomplete: the limit max_steps was reached.]")


async def test_a_saver_of_the_graph_around_it_is_no_reason_to_warn(caplog, monkeypatch):
    monkeypatch.setattr(jsonplus, "_warned_unregistered_types", set())
    graph = ours(lambda context: ask_user("Which?"))
    around = StateGraph(MessagesState).add_node("ours", graph).add_edge(START, "ours")
    whole = around.compile(checkpointer=InMemorySaver())
    with caplog.at_level(logging.WARNING):
        await whole.ainvoke({"messages": [("user", "Go.")]}, THREAD)
        await whole.ainvoke(Command(resume="A"), THREAD)
        state = await whole.ainvoke(Command(resume="B"), THREAD)
    assert state["messages"][-1].text == "The answer."
    assert [each.getMessage() for each in caplog.records if "replan" in each.getMessage()] == []


def asking_around():
    """A graph that asks for two colours, called by a node of a graph with a state of its own."""
    model = ScriptedModel({"feedback": always(COMPLETE)})
    team = [Specialist("a", "Asks.", run=lambda context: ask_user("Which?"), effects="pure")]
    graph = build_graph(Team(Host(model), team))

    async def node(state, config):
        given = {"messages": [("user", "Go.")], "plan": "- [ ] 1. One @a\n- [ ] 2. Two @a\n"}
        results = (await graph.ainvoke(given, config))["current_specialist_results"]
        return {"messages": [AIMessage(", ".join(each.text for each in results.values()))]}

    around = StateGraph(MessagesState).add_node("ours", node).add_edge(START, "ours")
    return around.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("first", ["by key", "by interrupt"])
@pytest.mark.parametrize("second", ["by key", "by interrupt", "alone"])
async def test_questions_of_an_inner_run_are_answered_one_by_one_in_any_way(first, second):
    whole, thread = asking_around(), {"configurable": {"thread_id": "t"}}
    state = await whole.ainvoke({"messages": [("user", "Go.")]}, thread)
    for way, answer in ((first, {"1/a/1": "red"}), (second, {"2/a/1": "blue"})):
        (asked,) = state["__interrupt__"]
        forms = {"by key": answer, "by interrupt": {asked.id: answer}, "alone": {asked.id: "blue"}}
        state = await whole.ainvoke(Command(resume=forms[way]), thread)
    assert state["messages"][-1].text == "red, blue"
