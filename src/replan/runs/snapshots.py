"""The state of stored runs, through any graph of a team with its storage."""

from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from replan.ports.run_book import RunRecord
from replan.runs.calling.compiled import Graph
from replan.runs.calling.new_or_continued import is_not_begun


async def snapshot_of(graph: Graph, record: RunRecord) -> StateSnapshot:
    """The newest state of a run, also where its thread has begun another one since."""
    reads, config = cast("Any", graph), config_of(record.thread_id)
    newest: StateSnapshot = await reads.aget_state(config)
    has_begun = not is_not_begun(newest)
    if has_begun and newest.values.get("run_id", record.run_id) == record.run_id:
        return newest
    history = reads.aget_state_history(config, filter={"run_id": record.run_id}, limit=1)
    async for snapshot in history:
        # What is there before it begins is the state of the run before.
        return snapshot._replace(values={}) if is_not_begun(snapshot) else snapshot
    return newest._replace(values={}, next=(), tasks=(), interrupts=())


def config_of(thread_id: str) -> RunnableConfig:
    """LangGraph's configuration of a run: its thread."""
    return {"configurable": {"thread_id": thread_id}}
