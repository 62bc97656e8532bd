"""What a thread costs on disk: it grows with what is new, not with what is there."""

from typing import Annotated, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from replan.base.langgraph_inside.langgraph_channels import LONGEST_IDLE
from replan.state.channels import Checked, CheckedDelta, appended
from replan.state.results import Assignment


class Rest(TypedDict, total=False):
    number: Annotated[int, Checked]
    old: Annotated[list[Assignment], CheckedDelta(appended)]


async def test_a_key_at_rest_is_found_without_a_walk_through_the_whole_thread():
    graph = StateGraph(Rest)
    graph.add_node("round", lambda state: {"number": state["number"] + 1})
    graph.add_edge(START, "round")
    last = 2 * LONGEST_IDLE + 10
    graph.add_conditional_edges("round", lambda s: END if s["number"] >= last else "round")
    saver = InMemorySaver()
    compiled = graph.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "t"}, "recursion_limit": last + 1}
    old = [Assignment(step_id=1, specialist="a")]
    state = await compiled.ainvoke({"number": 0, "old": old}, config, durability="sync")
    assert state["old"] == old
    snapshots = [blob for key, blob in saver.blobs.items() if key[2] == "old" and blob[1]]
    assert len(snapshots) == 2
    head = await saver.aget_tuple(config)
    history = await saver.aget_delta_channel_history(config=head.config, channels=["old"])
    assert history["old"]["writes"] == []
    assert (await compiled.aget_state(config)).values["old"] == old
