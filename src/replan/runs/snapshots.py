"""The state of stored runs, through any graph of a team with its storage."""

from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from replan.base.errors import InputError
from replan.ports.run_book import RunRecord
from replan.runs.calling.barred import check_not_barred
from replan.runs.calling.compiled import Graph, services_in
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


async def check_goes_on(graph: Graph, record: RunRecord) -> None:
    """Check that a run may go on: here, and on its thread, where what continues is the newest run.

    Raises:
        InputError: It was exported or cancelled for good, or its thread has begun another run.
    """
    await check_not_barred(services_in(graph).log, record.run_id)
    newest: StateSnapshot = await cast("Any", graph).aget_state(config_of(record.thread_id))
    names = newest.metadata or {} if is_not_begun(newest) else newest.values
    if names.get("run_id") in (None, "", record.run_id):
        return
    own = await snapshot_of(graph, record)
    # One that was killed before it left anything there can begin behind the other.
    if own.values or own.tasks:
        raise InputError(
            "Another run has begun on the thread of this one, which cannot continue. Start its "
            "request again, under another id."
        )


def config_of(thread_id: str) -> RunnableConfig:
    """LangGraph's configuration of a run: its thread."""
    return {"configurable": {"thread_id": thread_id}}
