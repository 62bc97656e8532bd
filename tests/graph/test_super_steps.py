"""Nodes of one super-step: a run does the same, whether or not somebody looks between its nodes."""

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.graph import StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from replan import (
    ExecutionContext,
    Host,
    Limits,
    Specialist,
    Team,
    ask_user,
    build_graph,
    run,
    stream,
)
from replan.errors import ModelCallError, StorageError
from replan.runs.calling.compiled import unseen_in
from replan.sessions import AgentContext, build_agent
from replan.state.enhanced import EnhancedState
from replan.testing import Raised, ScriptedModel, always
from scripts import COMPLETE, COMPLEX, SIMPLE

PLAN = "- [ ] 1. Paint the hall @painter\n- [ ] 2. Paint the attic @painter (after 1)\n"
ONE_MORE = "---\nverdict: continue\nplan_update: revise\n---\n"
SCRIPTS: dict[str, Any] = {
    "an answer at once": {"think": f"{SIMPLE}Paris."},
    "an answer of its own call": {"think": SIMPLE, "direct_answer": "Paris."},
    "a plan in the first reply": {"think": COMPLEX + PLAN, "feedback": COMPLETE},
    "a plan of its own call": {"think": COMPLEX, "plan_creation": PLAN, "feedback": COMPLETE},
    "a revision": {
        "think": COMPLEX + PLAN,
        "feedback": [f"{ONE_MORE}{PLAN}- [ ] 3. Paint the door @painter\n", COMPLETE],
    },
    "an answer of its own call at the end": {
        "think": COMPLEX + PLAN,
        "feedback": "---\nverdict: complete\n---\n",
        "final_answer": "All is painted.",
    },
    "a question": {"think": f"{COMPLEX}- [ ] 1. Ask @asks\n"},
    "a plan that waits": {"think": COMPLEX + PLAN},
}
SEEN = {
    "final_answer",
    "outcome",
    "current_plan",
    "current_round",
    "questions",
    "approval",
    "warnings",
    "usage",
    "messages",
}


class Nodes(AsyncCallbackHandler):
    """Looks at the nodes of a run."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def on_chain_start(self, *_: Any, **options: Any) -> None:
        self.names.append(options.get("name") or "")


def team(model: Any, **options: Any) -> Team:
    def asks(_: ExecutionContext) -> str:
        return ask_user("Which colour?")

    painter = Specialist("painter", "Paints.", run=lambda _: "Painted.", effects="pure")
    asking = Specialist("asks", "Asks.", run=asks, effects="pure")
    return Team(Host(model=model), [painter, asking], **options)


def plain(state: Any) -> dict[str, Any]:
    """What a caller sees of a state; names and times differ from run to run."""
    kept = {key: value for key, value in state.items() if key in SEEN}
    kept["messages"] = [(each.type, each.text) for each in kept["messages"]]
    questions = kept.pop("questions", {})
    kept["asked"] = {key: each.text for key, each in questions.items()}
    kept["waits"] = (kept.pop("approval", None) or None) is not None
    kept["answer"] = answer.text if (answer := kept.pop("final_answer", None)) else None
    plan = kept.pop("current_plan", None)
    kept["plan"] = [] if plan is None else [(each.id, each.status) for each in plan.steps]
    return kept


def used_before(graph: Any) -> Any:
    """A graph that has run once, without a look between its super-steps."""
    assert unseen_in(graph, {}) is graph
    return graph


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_run_that_nobody_watches_does_what_a_watched_one_does(name):
    approve = {"approval": "always"} if name == "a plan that waits" else {}
    states, heard = list[Any](), list[Any]()
    nodes = Nodes()
    for config in ({}, {"callbacks": [nodes]}):
        with ScriptedModel(SCRIPTS[name]) as model:
            graph = used_before(build_graph(team(model, **approve)))
            states.append((await run(graph, "Go.", config=config)).state)
        with ScriptedModel(SCRIPTS[name]) as model:
            graph = used_before(build_graph(team(model, **approve)))
            events = [event async for event in stream(graph, "Go.", config=config)]
            heard.append([type(event) for event in events])
    assert plain(states[0]) == plain(states[1])
    assert heard[0] == heard[1]
    assert {"begin", "think"} <= set(nodes.names)


async def test_a_run_that_is_stopped_asks_no_model_any_more():
    stop = asyncio.Event()

    def judging(*_: Any) -> str:
        stop.set()
        return COMPLEX

    with ScriptedModel({"think": [judging]}) as model:
        result = await run(used_before(build_graph(team(model))), "Go.", stop=stop)
    assert result.outcome == "interrupted"


@pytest.mark.parametrize("node", ["think", "plan_creation", "feedback"])
async def test_a_turn_that_was_stopped_behind_any_node_goes_on_there(node):
    stop = asyncio.Event()
    replies = {
        "think": COMPLEX,
        "plan_creation": PLAN,
        "feedback": "---\nverdict: complete\n---\n",
        "final_answer": "All is painted.",
    }

    def reply(*_: Any) -> str:
        stop.set()
        return replies[node]

    with ScriptedModel(
        {**{name: [text] for name, text in replies.items()}, node: [reply]}
    ) as model:
        agent, context = build_agent(team(model)), AgentContext(session_id="s")
        stopped = await agent.process("Paint.", context, stop=stop)
        assert stopped.metadata["stage"] == "stopped"
        result = await agent.process(None, context.apply(stopped.context_updates))
    assert (result.response, result.error) == ("All is painted.", None)


async def test_a_turn_whose_first_call_failed_goes_on():
    lost = Raised(ValueError("No reply."))
    with ScriptedModel({"think": [lost, lost, lost, lost, f"{SIMPLE}Red."]}) as model:
        agent, context = build_agent(team(model)), AgentContext(session_id="s")
        failed = await agent.process("Which colour?", context)
        assert (failed.metadata["stage"], failed.success) == ("stopped", False)
        result = await agent.process(None, context.apply(failed.context_updates))
    assert (result.response, result.error) == ("Red.", None)
    assert "Which colour?" in str(model.calls[-1].messages)


async def test_a_turn_that_was_cut_off_in_its_first_call_goes_on():
    stop = asyncio.Event()

    class Stopping(ScriptedModel):
        async def _agenerate(self, *arguments: Any, **options: Any) -> Any:
            if not stop.is_set():
                stop.set()
                await asyncio.Event().wait()
            return await super()._agenerate(*arguments, **options)

    with Stopping({"think": f"{SIMPLE}Red."}, disable_streaming=True) as model:
        agent, context = build_agent(team(model)), AgentContext(session_id="s")
        stopped = await agent.process("Which colour?", context, stop=stop, grace=0.0)
        assert (stopped.metadata["stage"], stopped.error) == ("stopped", None)
        result = await agent.process(None, context.apply(stopped.context_updates))
    assert (result.response, result.error) == ("Red.", None)


def test_nobody_looks_where_nothing_is_kept_and_there_are_no_callbacks():
    looks: Any = {"callbacks": [Nodes()]}
    with ScriptedModel({}) as model:
        graph = used_before(build_graph(team(model)))
        kept = build_graph(team(model), checkpointer=InMemorySaver())
    assert unseen_in(graph, {"tags": ["x"]}) is unseen_in(graph, {}) is not graph
    assert unseen_in(graph, looks) is graph
    assert unseen_in(used_before(kept), {}) is kept
    assert unseen_in(watched := graph.with_config(looks), {}) is watched


@pytest.mark.parametrize("is_copied", [True, False])
async def test_a_saver_that_a_compiled_graph_was_given_later_keeps_its_runs(is_copied):
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "t"}}
    with ScriptedModel({"think": f"{SIMPLE}Paris."}) as model:
        graph = used_before(build_graph(team(model)))
        if is_copied:
            graph = graph.copy({"checkpointer": saver})
        else:
            graph.checkpointer = saver
        await run(graph, "Go.", config=config)
    assert (await graph.aget_state(config)).values["final_answer"].text == "Paris."


@pytest.mark.parametrize(
    "change", [{"store": InMemoryStore()}, {"step_timeout": 60.0}, {"debug": True}]
)
def test_a_graph_that_was_changed_is_the_one_that_runs(change):
    with ScriptedModel({}) as model:
        graph = used_before(build_graph(team(model))).copy(change)
    assert unseen_in(graph, {}) is graph


@pytest.mark.parametrize("node", ["think", "plan_creation"])
async def test_an_error_names_the_node_that_raised_it(node):
    replies = {"think": COMPLEX, "plan_creation": PLAN}
    told = list[str]()
    for config in ({}, {"callbacks": [Nodes()]}):
        model = ScriptedModel({**replies, node: always(Raised(ValueError("No reply.")))})
        with pytest.raises(ModelCallError) as caught:
            await run(used_before(build_graph(team(model))), "Go.", config=config)
        told.append(" ".join(caught.value.__notes__))
    assert all(f"'{node}'" in text for text in told)


TWO = "- [ ] 1. Paint the hall @first\n- [ ] 2. Paint the attic @second\n"


def two(model: Any, first: Any, second: Any, **limits: Any) -> Any:
    """A graph that has run once, whose plan has two steps at the same time."""
    specialists = [
        Specialist("first", "Paints.", run=first),
        Specialist("second", "Paints.", run=second),
    ]
    return used_before(build_graph(Team(Host(model=model), specialists, **limits)))


async def test_the_steps_of_a_run_that_nobody_watches_are_in_the_super_step_of_its_plan():
    with ScriptedModel({"think": COMPLEX + TWO, "feedback": COMPLETE}) as model:
        graph = unseen_in(two(model, lambda _: "Painted.", lambda _: "Painted."), {})
        steps = [each async for each in graph.astream({"messages": ["Go."]}, stream_mode="updates")]
    assert [list(each) for each in steps] == [["begin"]]


@pytest.mark.parametrize("config", [{}, {"callbacks": [Nodes()]}])
async def test_no_step_begins_when_its_run_was_stopped(config):
    stop = asyncio.Event()

    def first(_: Any) -> str:
        stop.set()
        return "Painted."

    with ScriptedModel({"think": COMPLEX + TWO}) as model:
        limits = Limits(max_parallel_steps=1)
        graph = two(model, first, lambda _: pytest.fail("It began."), limits=limits)
        result = await run(graph, "Go.", config=config, stop=stop)
    assert result.outcome == "interrupted"


@pytest.mark.parametrize("config", [{}, {"callbacks": [Nodes()]}])
async def test_what_a_step_asks_through_langgraph_is_asked_once_and_the_state_is_whole(config):
    begun = list[int]()

    def asks(context: ExecutionContext) -> str:
        begun.append(context.plan_step.id)
        return interrupt("Which colour?")

    with ScriptedModel({"think": COMPLEX + TWO}) as model:
        state = (await run(two(model, asks, lambda _: "Painted."), "Go.", config=config)).state
    assert [each.value for each in state["__interrupt__"]] == ["Which colour?"]
    assert begun == [1]
    assert len(state["current_plan"].steps) == 2


@pytest.mark.parametrize("config", [{}, {"callbacks": [Nodes()]}])
async def test_a_node_that_fails_ends_the_other_steps_of_its_round(config):
    is_at_work, was_ended = asyncio.Event(), asyncio.Event()

    async def fails(_: Any) -> str:
        await is_at_work.wait()
        raise StorageError("a disk", "It is full.", "Make room.")

    async def works(_: Any) -> str:
        is_at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            was_ended.set()
        return "Painted."

    with ScriptedModel({"think": COMPLEX + TWO}) as model, pytest.raises(StorageError) as caught:
        await run(two(model, fails, works), "Go.", config=config)
    assert "'specialist_first'" in " ".join(caught.value.__notes__)
    assert was_ended.is_set()


@pytest.mark.parametrize("config", [{}, {"callbacks": [Nodes()]}])
async def test_an_error_of_a_step_keeps_its_cause(config):
    async def fails(_: Any) -> str:
        raise StorageError("a disk", "It is full.", "Make room.") from OSError("full")

    with ScriptedModel({"think": COMPLEX + TWO}) as model, pytest.raises(StorageError) as caught:
        await run(two(model, fails, lambda _: "Painted."), "Go.", config=config)
    assert isinstance(caught.value.__cause__, OSError)


@pytest.mark.parametrize("config", [{}, {"callbacks": [Nodes()]}])
async def test_questions_of_two_steps_through_langgraph_have_names_of_their_own(config):
    def asks(_: Any) -> str:
        return interrupt("Which colour?")

    with ScriptedModel({"think": COMPLEX + TWO}) as model:
        state = (await run(two(model, asks, asks), "Go.", config=config)).state
    assert len({each.id for each in state["__interrupt__"]}) == 2


@pytest.mark.parametrize("config", [{}, {"callbacks": [Nodes()]}])
async def test_a_command_of_a_graph_in_a_step_to_the_graph_around_it_is_followed(config):
    def leaves(_: Any) -> Command[Any]:
        return Command(graph=Command.PARENT, update={"warnings": ["It left."]})

    inner = StateGraph(EnhancedState).add_node(leaves).set_entry_point("leaves").compile()
    specialists = [Specialist("first", "Paints.", invokable=inner)]
    replies = {"think": f"{COMPLEX}- [ ] 1. Paint @first\n", "feedback": COMPLETE}
    with ScriptedModel(replies) as model:
        team = Team(Host(model=model), specialists, limits=Limits(max_rounds=1))
        state = (await run(used_before(build_graph(team)), "Go.", config=config)).state
    assert "It left." in state["warnings"]
    assert state["outcome"] == "partial"


@pytest.mark.parametrize("config", [{}, {"callbacks": [Nodes()]}])
async def test_a_step_finds_its_own_node_and_namespace_in_its_configuration(config):
    found = list[tuple[str, str]]()

    def looks(_: Any) -> str:
        own = get_config()
        namespace = own["configurable"]["checkpoint_ns"]
        assert own["metadata"]["langgraph_checkpoint_ns"] == namespace
        found.append((own["metadata"]["langgraph_node"], namespace.partition(":")[0]))
        return "Painted."

    with ScriptedModel({"think": COMPLEX + TWO, "feedback": COMPLETE}) as model:
        await run(two(model, looks, looks), "Go.", config=config)
    assert sorted(found) == [(name, name) for name in ("specialist_first", "specialist_second")]
