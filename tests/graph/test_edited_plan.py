"""A plan that a person edits in the state of a run that stands still, as in Studio."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError

from replan import Host, Specialist, Team, build_graph, open_storage, run
from replan.testing import ScriptedModel
from scripts import COMPLETE, THREAD

PLAN = "# Job\n\n- [ ] 1. Total the revenue @a\n- [ ] 2. Compare @b (after 1)\n"
THINK = f"---\ncomplexity: complex\n---\n{PLAN}"
EDITED = PLAN.replace("revenue", "units") + "- [ ] 3. Write it @b (after 2)\n"


def graph_of(model, saver, seen):
    def work(context):
        seen.append(context.task_description)
        return f"Done: {context.task_description}"

    team = [Specialist(name=name, intended_use="Works.", run=work) for name in "ab"]
    config = Team(host=Host(model=model), specialists=team)
    return build_graph(config, checkpointer=saver)


async def stopped(graph):
    """A run that stands before its first round."""
    await graph.ainvoke({"messages": [("user", "Go.")]}, THREAD, interrupt_before="plan_execution")
    return (await graph.aget_state(THREAD)).values["current_plan"]


@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize("is_whole", [False, True])
async def test_the_steps_of_an_edited_document_are_done(tmp_path, in_file, is_whole):
    seen = []
    with ScriptedModel({"think": THINK, "feedback": COMPLETE}) as model:
        async with open_storage(tmp_path / "runs.db") as storage:
            graph = graph_of(model, storage.checkpointer if in_file else InMemorySaver(), seen)
            plan = await stopped(graph)
            whole = plan.model_dump(mode="json") if is_whole else {}
            await graph.aupdate_state(THREAD, {"current_plan": {**whole, "content": EDITED}})
            held = (await graph.aget_state(THREAD)).values["current_plan"]
            assert (held.content, len(held.steps)) == (EDITED, 3)
            state = await graph.ainvoke(None, THREAD)
    assert seen == ["Total the units", "Compare", "Write it"]
    assert state["outcome"] == "completed"
    assert "- [x] 1. Total the units @a" in state["current_plan"].content


async def test_an_edit_that_names_nobody_on_the_team_is_refused_and_changes_nothing():
    seen = []
    with ScriptedModel({"think": THINK, "feedback": COMPLETE}) as model:
        graph = graph_of(model, InMemorySaver(), seen)
        plan = await stopped(graph)
        for wrong in ("- [ ] 1. X @nobody", "No step.", PLAN.replace("after 1", "after 9")):
            with pytest.raises(InvalidUpdateError, match="'current_plan' cannot take this plan"):
                await graph.aupdate_state(THREAD, {"current_plan": {"content": wrong}})
        assert (await graph.aget_state(THREAD)).values["current_plan"] == plan
        state = await graph.ainvoke(None, THREAD)
    assert seen == ["Total the revenue", "Compare"]
    assert state["outcome"] == "completed"


async def test_a_second_run_on_the_thread_of_an_edited_plan_has_a_plan_of_its_own():
    seen = []
    with ScriptedModel({"think": THINK, "feedback": [COMPLETE, COMPLETE]}) as model:
        graph = graph_of(model, InMemorySaver(), seen)
        await stopped(graph)
        await graph.aupdate_state(THREAD, {"current_plan": {"content": EDITED}})
        await graph.ainvoke(None, THREAD)
        given = {"messages": [("user", "Once more.")], "plan": PLAN}
        state = (await run(graph, given, config=THREAD)).state
    assert [step.description for step in state["current_plan"].steps] == [
        "Total the revenue",
        "Compare",
    ]
