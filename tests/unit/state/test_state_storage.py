"""What a thread costs on disk: it grows with what is new, not with what is there."""

from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from replan import SpecialistResult
from replan.langgraph_inside.delta_channel import LONGEST_IDLE
from replan.state.channels import Checked, CheckedDelta, appended, merged
from replan.state.results import Assignment

TEXT = " ".join(["A sentence of a result."] * 80)


class Rounds(TypedDict, total=False):
    number: Annotated[int, Checked]
    results: Annotated[dict[str, SpecialistResult], CheckedDelta(merged)]
    history: Annotated[list[Assignment], CheckedDelta(appended)]


def a_round(state):
    number = state.get("number", 0) + 1
    result = SpecialistResult(step_id=number, result=AIMessage(TEXT, id=str(number)))
    return {
        "number": number,
        "results": {f"{number}/a": result},
        "history": [Assignment(step_id=number, specialist="a")],
    }


async def bytes_after(rounds, path):
    graph = StateGraph(Rounds)
    graph.add_node("round", a_round)
    graph.add_edge(START, "round")
    graph.add_conditional_edges("round", lambda s: END if s["number"] >= rounds else "round")
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        compiled = graph.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "t"}, "recursion_limit": rounds + 1}
        await compiled.ainvoke({"number": 0}, config, durability="sync")
        state = (await compiled.aget_state(config)).values
        await saver.conn.execute("pragma wal_checkpoint(truncate)")
    assert state["results"][f"{rounds}/a"].text == TEXT
    assert len(state["history"]) == rounds
    return path.stat().st_size


@pytest.mark.filterwarnings("ignore:Deserializing unregistered type")
async def test_a_thread_grows_linearly_with_its_rounds(tmp_path):
    # A growing key is written whole each time that it has doubled, so every one of these threads
    # ends at the same point of that course.
    sizes = [await bytes_after(rounds, tmp_path / f"{rounds}.db") for rounds in (20, 40, 80)]
    first, second = sizes[1] - sizes[0], sizes[2] - sizes[1]
    # With the whole value in each checkpoint the second part costs four times the first.
    assert second == pytest.approx(2 * first, rel=0.15)
    assert second / 40 < 7 * len(TEXT)


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
