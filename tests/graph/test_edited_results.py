"""An edited result beside what its page shows: one that an earlier version of Replan wrote."""

from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from replan import Host, RunSettings, Specialist, Team, build_graph
from replan.testing import ScriptedModel, always
from scripts import COMPLETE, THREAD

PLAN = "- [ ] 1. Count @a\n- [ ] 2. Sum @a (after 1)\n- [ ] 3. Draw @a (after 2)\n"


async def test_a_result_of_an_earlier_version_is_not_done_again_by_a_guess():
    did = []
    worker = Specialist("a", "Works.", run=lambda context: did.append(context.plan_step.id) or "x")
    team = Team(Host(ScriptedModel({"feedback": always(COMPLETE)})), [worker])
    graph, before = build_graph(team, checkpointer=InMemorySaver()), ["plan_execution"]
    for given in ({"plan": PLAN}, None, None):
        settings = RunSettings(round_scope="step")
        await graph.ainvoke(given, THREAD, context=settings, interrupt_before=before)
    old = (await graph.aget_state(THREAD)).values["current_specialist_results"]
    # It says nothing of what it was made of.
    edit = {
        "1/a": old["1/a"].replace(result=AIMessage("Seven")),
        "2/a": old["2/a"].replace(made_of=None),
    }
    await graph.aupdate_state(THREAD, {"current_specialist_results": edit})
    await graph.ainvoke(None, THREAD)
    assert did == [1, 2, 3]
