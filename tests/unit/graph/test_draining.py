"""A process that is asked to stop: what runs is finished, nothing more starts, the rest waits."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl

from replan import Host, Specialist, Team, build_graph, run
from replan.testing import ScriptedModel

CONFIG = {"configurable": {"thread_id": "t"}}
PLAN = "- [ ] 1. One @a\n- [ ] 2. Two @a (after 1)\n"


async def test_a_run_that_is_drained_starts_no_step_and_goes_on_where_it_was():
    control, ran = RunControl(), []

    def work(context):
        ran.append(context.plan_step.id)
        control.request_drain()
        return "done"

    with ScriptedModel({"feedback": "---\nverdict: complete\n---\nThe answer."}) as model:
        team = [Specialist(name="a", intended_use="Works.", run=work)]
        config = Team(host=Host(model=model), specialists=team)
        graph = build_graph(config, checkpointer=InMemorySaver())
        given = {"messages": [("user", "Go.")], "plan": PLAN}
        with pytest.raises(GraphDrained):
            await graph.ainvoke(given, CONFIG, control=control, durability="sync")
        assert ran == [1]
        state = (await run(graph, None, config=CONFIG)).state
    assert ran == [1, 2]
    assert state["outcome"] == "completed"
