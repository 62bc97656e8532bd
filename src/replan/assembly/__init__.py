"""The one place that chooses adapters: for graphs of teams, for agents, jobs and pipelines."""

from typing import TYPE_CHECKING, Any

from replan.assembly.environment import models_from_environment

if TYPE_CHECKING:
    from replan.assembly.graphs import build_graph, team_graph

__all__ = ["build_graph", "models_from_environment", "team_graph"]


def __getattr__(name: str) -> Any:
    # Jobs and pipelines alone load nothing of graphs.
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from replan.assembly import graphs  # noqa: PLC0415

    return getattr(graphs, name)
