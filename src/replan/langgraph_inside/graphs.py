"""Compiled graphs from other code: how to recognise them, and the schemas of their states."""

from typing import Any, cast

from langgraph.pregel import Pregel
from langgraph.pregel.protocol import PregelProtocol


def is_graph(thing: object) -> bool:
    """Whether something is a graph, here or on a server."""
    return isinstance(thing, PregelProtocol)


def schemas_of(graph: object) -> list[Any]:
    """The schemas of the states of a compiled graph and of the graphs inside it; else none."""
    if not isinstance(graph, Pregel):
        return []
    whole = cast("Any", graph)
    inner = (part for _, part in whole.get_subgraphs(recurse=True))
    builders = [getattr(part, "builder", None) for part in (whole, *inner)]
    return [schema for each in builders for schema in getattr(each, "schemas", ())]
