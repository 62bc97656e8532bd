"""An input or an edit that is refused leaves its thread as it was."""

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from replan import (
    ConfigurationError,
    Host,
    InputError,
    Limits,
    PlanDocumentError,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
    run,
    stream,
)
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD

PLAN = "- [ ] 1. One @a\n"
SIMPLE = "---\ncomplexity: simple\n---\nYes."
WRONG = [
    ({"plan": "- [ ] 1. One @a (after 7)\n"}, PlanDocumentError),
    ({"plan": "- [ ] 1. One @nobody\n"}, InputError),
    ({"messages": [("user", "Go.")], "plan": "- [ ] 1. One @nobody\n"}, InputError),
    ({"messages": []}, InputError),
    ({"messages": [("user", " \n")]}, InputError),
    ([("user", "Go.")], InputError),
    ("", InputError),
    ("   ", InputError),
]


@pytest.fixture
def team():
    model = ScriptedModel({"think": always(SIMPLE), "feedback": always(COMPLETE)})
    asking = Specialist(name="a", intended_use="Works.", run=lambda c: ask_user("Which?"))
    return Team(host=Host(model=model), specialists=[asking])


@pytest.fixture
def graph(team):
    return build_graph(team, checkpointer=InMemorySaver())


async def whole(graph, given, **options):
    return (await run(graph, given, **options)).state


async def bare(graph, given, **options):
    given = {"messages": given} if isinstance(given, str) else given
    return await graph.ainvoke(given, options["config"])


@pytest.mark.parametrize("way", [whole, bare])
@pytest.mark.parametrize(("wrong", "error"), WRONG)
async def test_a_refused_input_does_not_poison_its_thread(graph, way, wrong, error):
    with pytest.raises(error):
        await way(graph, wrong, config=THREAD)
    state = await way(graph, "What is it?", config=THREAD)
    assert state["outcome"] == "answered"
    assert [message.text for message in state["messages"]] == ["What is it?", "Yes."]


@pytest.mark.parametrize("way", [whole, bare])
async def test_a_run_that_waits_outlives_a_refused_input(graph, way):
    await run(graph, {"plan": "- [ ] 1. One @a\n"}, config=THREAD)
    with pytest.raises(PlanDocumentError):
        await way(graph, {"plan": "- [ ] 1. One @a (after 7)\n"}, config=THREAD)
    state = (await run(graph, Command(resume="this"), config=THREAD)).state
    assert state["outcome"] == "completed"


@pytest.mark.parametrize("key", ["final_answer", "current_round"])
@pytest.mark.parametrize("value", ["text", ["x"], {"x": 1}])
async def test_a_wrong_edit_is_refused_by_its_key(graph, key, value):
    await run(graph, "What is it?", config=THREAD)
    with pytest.raises(InvalidUpdateError, match=key):
        await graph.aupdate_state(THREAD, {key: value}, as_node="final_answer")


@pytest.mark.parametrize("way", [whole, bare])
@pytest.mark.parametrize("where", ["saver", "storage"])
async def test_a_call_without_a_thread_is_told_to_name_one(graph, way, where, tmp_path):
    async with open_storage(tmp_path / "runs.db") as storage:
        if where == "storage":
            host = Host(model=ScriptedModel({"think": always(SIMPLE)}))
            specialist = Specialist(name="a", intended_use="Works.", run=lambda c: "ok")
            graph = build_graph(Team(host=host, specialists=[specialist]), storage=storage)
        with pytest.raises(InputError, match="thread_id"):
            await way(graph, "What is it?", config={})
        bound = graph.with_config(THREAD)
        state = await way(bound, "What is it?", config={})
        assert state["outcome"] == "answered"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"messages": [("user", "Go.")], "plann": PLAN}, "no field `plann`. Did you mean plan?"),
        ({"task": "Go."}, "no field `task`. Known are: `messages`, `plan`"),
        ({"plan": PLAN, "settings": {}}, r"no field `settings`. .* settings=RunSettings\("),
    ],
)
async def test_a_field_that_no_run_takes_is_refused_and_not_left_out(team, given, told):
    with pytest.raises(InputError, match=told):
        await run(team, given)
    async with open_runtime(team, storage=":memory:") as runtime:
        with pytest.raises(InputError, match=told):
            await runtime.run(given)


@pytest.mark.parametrize("settings", ["always", Limits(max_rounds=1), 3])
async def test_what_are_no_settings_is_refused_wherever_a_run_begins_or_goes_on(team, settings):
    options = {"settings": settings}
    with pytest.raises(ConfigurationError, match="settings: these are not the settings of a run"):
        await run(team, {"plan": PLAN}, **options)
    with pytest.raises(ConfigurationError, match="settings: "):
        await anext(stream(team, {"plan": PLAN}, **options))
    async with open_runtime(team, storage=":memory:") as runtime:
        with pytest.raises(ConfigurationError, match="settings: "):
            await runtime.start({"plan": PLAN}, **options)
        assert await runtime.runs() == []
        waiting = await runtime.run({"plan": PLAN})
        with pytest.raises(ConfigurationError, match="settings: "):
            await runtime.resume(waiting.run_id, **options)


async def test_settings_may_be_a_mapping(team):
    result = await run(team, {"plan": PLAN}, settings={"limits": {"max_rounds": 3}})
    assert result.state["settings"].limits.max_rounds == 3
    async with open_runtime(team, storage=":memory:") as runtime:
        result = await runtime.run({"plan": PLAN}, settings={"limits": {"max_rounds": 3}})
        assert result.state["settings"].limits.max_rounds == 3


@pytest.mark.parametrize("run_id", ["", " ", "two\nlines", "x" * 201, 7])
async def test_what_cannot_be_the_id_of_a_run_is_refused_before_anything_is_kept(team, run_id):
    with pytest.raises(InputError, match=r"cannot name a run\. Give a text of one line"):
        await run(team, {"plan": PLAN}, run_id=run_id)
    async with open_runtime(team, storage=":memory:") as runtime:
        with pytest.raises(InputError, match="cannot name a run"):
            await runtime.start({"plan": PLAN}, run_id=run_id)
        assert await runtime.runs() == []


async def test_there_is_nothing_to_continue_where_nothing_is_kept(team):
    with pytest.raises(InputError, match="nothing to continue"):
        await run(team, None)


@pytest.mark.parametrize("way", [whole, bare])
async def test_a_mistyped_plan_is_refused_by_the_graph_itself_too(graph, way):
    with pytest.raises(InputError, match=r"no field `plann`\. Did you mean plan\?"):
        await way(graph, {"messages": [("user", "Go.")], "plann": PLAN}, config=THREAD)
    state = await way(graph, "What is it?", config=THREAD)
    assert [message.text for message in state["messages"]] == ["What is it?", "Yes."]


async def test_the_state_of_a_graph_around_may_have_other_keys(team):
    class Around(MessagesState):
        plann: str

    inner = build_graph(team)

    async def node(state: Around, config: RunnableConfig) -> dict[str, object]:
        found = await inner.ainvoke(dict(state), config)
        return {"messages": found["messages"][-1:]}

    for each in (inner, node):
        around = StateGraph(Around).add_node("team", each).add_edge(START, "team").compile()
        state = await around.ainvoke({"messages": [("user", "What is it?")], "plann": "mine"})
        assert (state["messages"][-1].text, state["plann"]) == ("Yes.", "mine")
