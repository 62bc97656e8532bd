"""Branches that read the state as LangGraph's own do, without a copy of all channels."""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.errors import EmptyChannelError
from langgraph.pregel import _algo

from replan.base.langgraph_inside.tasks import reader_in

_local_read = getattr(_algo, "local_read", None)


def with_lean_branches(graph: object) -> None:
    """Let the branches of a compiled graph read the state without a copy of all its channels."""
    for node in cast("Any", graph).nodes.values():
        for writer in node.writers:
            options: dict[str, Any] = getattr(writer, "kwargs", {})
            if isinstance(reader := options.get("reader"), partial):
                options["reader"] = partial(_read_lean, reader, reader.keywords["select"])


def _read_lean(
    reader: Callable[[RunnableConfig], Any], keys: list[str], config: RunnableConfig
) -> Any:
    """Read what a branch's own reader reads: the state after the node's writes.

    That one copies every channel and updates each; here, only those that the node wrote are.
    """
    read = reader_in(config)
    if not (isinstance(read, partial) and read.func is _local_read):
        return reader(config)
    _, channels, _, task = read.args
    written: dict[str, list[Any]] = {}
    for key, value in task.writes:
        written.setdefault(key, []).append(value)
    state: dict[str, Any] = {}
    for key in keys:
        channel = channels[key]
        if key in written:
            channel = channel.copy()
            channel.update(written[key])
        try:
            state[key] = channel.get()
        except EmptyChannelError:
            continue
    return state
