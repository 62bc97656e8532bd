"""What a thread costs on disk: it grows with what is new, not with what is there."""

from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from replan import SpecialistResult
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
    sizes = [await bytes_after(rounds, tmp_path / f"{rounds}.db") for rounds in (10, 40, 70)]
    first, second = sizes[1] - sizes[0], sizes[2] - sizes[1]
    # With the whole value in each checkpoint the second thirty rounds cost 2.2 times the first.
    assert second < 1.3 * first
    assert first / 30 < 5 * len(TEXT)
