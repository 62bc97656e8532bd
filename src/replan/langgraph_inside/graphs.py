"""Compiled graphs from other code: how to recognise them, and the schemas of their states."""

from typing import Any, cast

from langgraph.channels import DeltaChannel
from langgraph.pregel import Pregel
from langgraph.pregel.protocol import PregelProtocol


def is_graph(thing: object) -> bool:
    """Whether something is a graph, here or on a server."""
    return isinstance(thing, PregelProtocol)


def is_here(graph: object) -> bool:
    """Whether a graph runs in this process, not on a server."""
    return isinstance(graph, Pregel)


def keeps_differences(graph: object) -> bool:
    """Whether checkpoints of a graph, or of one inside it, have only what changed."""
    channels = (each for part in _parts(graph) for each in getattr(part, "channels", {}).values())
    return any(isinstance(each, DeltaChannel) for each in channels)


def _parts(graph: object) -> list[Any]:
    """A compiled graph, and those inside it."""
    inner: dict[str, Any] = dict(cast("Any", graph).get_subgraphs(recurse=True))
    return [graph, *inner.values()]


def schemas_of(graph: object) -> list[Any]:
    """The schemas of the states of a compiled graph and of the graphs inside it; else none."""
    if not isinstance(graph, Pregel):
        return []
    builders = [getattr(part, "builder", None) for part in _parts(cast("Any", graph))]
    return [schema for each in builders for schema in getattr(each, "schemas", ())]
