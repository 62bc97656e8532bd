"""Compiled graphs from other code: how to recognise them, and the schemas of their states."""

from typing import Any, cast

from langgraph.pregel import Pregel
from langgraph.pregel.protocol import PregelProtocol


def is_graph(thing: object) -> bool:
    """Whether something is a graph, here or on a server."""
    return isinstance(thing, PregelProtocol)


def is_here(graph: object) -> bool:
    """Whether a graph runs in this process, not on a server."""
    return isinstance(graph, Pregel)


def declares_interrupts(graph: object) -> bool:
    """Whether a graph here, or one inside it, was compiled to stop before or after nodes."""
    if not is_here(graph):
        return False
    names = ("interrupt_before_nodes", "interrupt_after_nodes")
    return any(getattr(part, name, ()) for part in _parts(graph) for name in names)


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
