"""What a compiled graph tells of its team, and of those who call it."""
# LangGraph leaves the type arguments of channels open, so `channels` reads as partly unknown.
# pyright: reportUnknownMemberType=false

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_async_callback_manager_for_config
from langgraph.constants import START
from langgraph.graph.state import CompiledStateGraph

from replan.base.langgraph_inside.tasks import inherited_config
from replan.ports.tool_provider import ToolProvider
from replan.prompts.replies.shape import Shape
from replan.state.input_guard import InputGuard
from replan.state.limits import RunSettings
from replan.state.team import SpecialistCard
from replan.state.tightening import loosening_warnings

Graph = CompiledStateGraph[Any, Any, Any, Any]

_CHANGEABLE = (
    *("checkpointer", "store", "cache", "cache_policy", "retry_policy", "config", "debug"),
    *("interrupt_before_nodes", "interrupt_after_nodes", "step_timeout"),
)
"""What people may change of a compiled graph."""


def is_served(graph: Graph) -> bool:
    """Whether the caller of a graph, or the editor of its state, may be a client of a server."""
    return input_guard_of(graph).editable is not None


def shapes_of(graph: Graph) -> Mapping[str, Shape]:
    """The types of results by specialist, and that of the answer under ""."""
    # A graph that was compiled by other means has none.
    return getattr(cast("Any", graph).channels[START], "shapes", {})


def services_in(graph: Graph) -> Any:
    """The live things of a graph that `build_graph` made; None for any other."""
    return getattr(cast("Any", graph).channels[START], "services", None)


def unseen_in(graph: Graph, config: RunnableConfig) -> Graph:
    """The graph that does the same in fewer super-steps, where nobody looks between them.

    Callbacks look, and so does a graph around this one. A saver keeps what is between them, and
    whoever changes the compiled graph, or a copy of it, means the graph that it is.
    """
    make = getattr(cast("Any", graph).channels[START], "unseen", None)
    if make is None or inherited_config.get() is not None:
        return graph
    if get_async_callback_manager_for_config(config).handlers:
        return graph
    unseen = make()
    if unseen is None:
        return graph
    is_as_made = graph.stream_channels == [*graph.builder.channels] and all(
        getattr(graph, name) == getattr(unseen, name) for name in _CHANGEABLE
    )
    return unseen if is_as_made else graph


def tool_servers_of(graph: Graph) -> Mapping[str, ToolProvider]:
    """The tool servers of a graph's team, by their names."""
    services = services_in(graph)
    return {} if services is None else services.tool_servers


def team_of(graph: Graph) -> Sequence[SpecialistCard]:
    """The cards of the specialists, with the effects of their work."""
    services = services_in(graph)
    return [services.specialists[card.name].card for card in services.team]


def loosened(graph: Graph, before: RunSettings, after: RunSettings, by: str) -> list[str]:
    """Say who loosens which settings of a run that is under way now; at most one sentence."""
    return loosening_warnings(before, after, by, input_guard_of(graph).clock())


def input_guard_of(graph: Graph) -> InputGuard:
    """The channel that checks the input of a graph of `build_graph`."""
    return cast("InputGuard", graph.channels[START])
