"""What the options of a step do: its model, its estimate, and the leave to begin."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError

from replan import Host, InputError, Specialist, Team, build_graph, run
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD, given


async def test_a_step_is_done_by_the_model_that_it_names():
    plan = "- [ ] 1. Draft @a (model fast)\n- [ ] 2. Polish @a (after 1)\n"
    with (
        ScriptedModel({"feedback": COMPLETE}) as host,
        ScriptedModel(["Polished."]) as usual,
        ScriptedModel(["Drafted."]) as fast,
    ):
        member = Specialist("a", "Writes.", chat_model=usual, step_models={"fast": fast})
        graph = build_graph(Team(Host(host), [member]))
        state = (await run(graph, given(plan))).state
    assert [step.result for step in state["current_plan"].steps] == ["Drafted.", "Polished."]


async def test_a_model_that_the_team_does_not_allow_is_a_mistake_in_its_line():
    member = Specialist("a", "Writes.", chat_model="offline", step_models={"fast": "offline"})
    graph = build_graph(
        Team(Host("offline"), [member, Specialist("b", "Reads.", chat_model="offline")])
    )
    plan = "- [ ] 1. Draft @a (model slow)\n- [ ] 2. Read @b (model fast)\n"
    with pytest.raises(InputError) as refused:
        await run(graph, given(plan))
    text = str(refused.value)
    assert "names the model slow, which @a does not have. Use one of: fast." in text
    assert "names the model fast, which @b does not have." in text
    assert "line 1" in text
    assert "line 2" in text


def model_graph(host):
    model = ScriptedModel(always("Done."))
    member = Specialist("a", "Writes.", chat_model=model, step_models={"fast": model})
    return build_graph(Team(Host(host), [member]), checkpointer=InMemorySaver())


async def test_a_model_is_told_once_of_a_model_that_the_team_does_not_allow():
    head, line = "---\ncomplexity: complex\n---\n", "- [ ] 1. Draft @a (model slow)\n"
    replies = {"think": head + line, "plan_creation": [line.replace("slow", "fast")]}
    with ScriptedModel({**replies, "feedback": COMPLETE}) as host:
        state = (await run(model_graph(host), {"messages": [("user", "Go.")]}, config=THREAD)).state
    assert state["current_plan"].step(1).model == "fast"


@pytest.mark.parametrize("line", ["1. Draft @a (model slow)", "1. Writes (model slow)"])
async def test_an_edit_with_a_model_that_the_team_does_not_allow_is_refused(line):
    with ScriptedModel({}) as host:
        graph = model_graph(host)
        first = given("- [ ] 1. Draft @a\n")
        await graph.ainvoke(first, THREAD, interrupt_before=["plan_execution"])
        edit = {"current_plan": {"content": f"- [ ] {line}\n"}}
        with pytest.raises(InvalidUpdateError, match=r"line 1.*model slow.*Use one of: fast"):
            await graph.aupdate_state(THREAD, edit)
