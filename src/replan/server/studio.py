"""The graph that LangGraph Studio serves: of a team file, or else of the local team.

`langgraph dev` finds it through `langgraph.json`. The server brings its own checkpointer.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from replan.app import local_graph, team_graph

TEAM = "REPLAN_TEAM"
DIRECTORY = "REPLAN_DIR"
OUT = "REPLAN_OUT"
MODEL = "REPLAN_MODEL"
BASE_URL = "REPLAN_BASE_URL"


@cache
def make_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the graph once: the server asks for it at every run, and its journal must last.

    The environment says what to serve: `REPLAN_TEAM` names a team file; without one the local
    team reads the files of `REPLAN_DIR` (here, if not given) and writes into `REPLAN_OUT` (the
    same, if not given), with `REPLAN_MODEL` as its host.

    Raises:
        UsageError: The team file has mistakes, or a model's key is missing.
    """
    team = os.environ.get(TEAM)
    if team:
        return team_graph(Path(team), environment=os.environ)
    return local_graph(
        directory=Path(os.environ.get(DIRECTORY, ".")),
        out=Path(out) if (out := os.environ.get(OUT)) else None,
        model=os.environ.get(MODEL, "offline"),
        base_url=os.environ.get(BASE_URL) or None,
    )
