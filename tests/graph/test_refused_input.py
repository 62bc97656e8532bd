"""An input or an edit that is refused leaves its thread as it was."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from langgraph.types import Command

from replan import (
    Host,
    InputError,
    PlanDocumentError,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_storage,
    run,
)
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD

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
def graph():
    model = ScriptedModel({"think": always(SIMPLE), "feedback": always(COMPLETE)})
    team = [Specialist(name="a", intended_use="Works.", run=lambda c: ask_user("Which?"))]
    config = Team(host=Host(model=model), specialists=team)
    return build_graph(config, checkpointer=InMemorySaver())


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
