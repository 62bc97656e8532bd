"""The graph that LangGraph Studio serves: of a team file, or else of the default team.

`langgraph dev` finds it through `langgraph.json`, and also the saver for its threads.
"""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from replan.assembly.graphs import build_graph
from replan.storage.opening import open_storage
from replan.team.file_team import DEFAULT_TEAM
from replan.team.team_file import read_served_file

STORAGE = "REPLAN_STORAGE"
STORAGE_KEY = "REPLAN_STORAGE_KEY"
BESIDE_THE_SERVERS = ".langgraph_api/replan.sqlite"
"""The default place of the threads: in the folder of the server's own files."""


@cache
def make_graph() -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the graph once: the server asks for it at every run, and its log must last.

    The environment says what to serve: `REPLAN_TEAM` names a team file; without one the default
    team reads the files of `REPLAN_DIR` (here, if not given) and writes into `REPLAN_OUT` (the
    same, if not given), with `REPLAN_MODEL` as its host.

    Raises:
        UsageError: The team file has mistakes, or a model's key is missing.
    """
    read = read_served_file(Path(os.environ.get("REPLAN_TEAM") or DEFAULT_TEAM), os.environ)
    return build_graph(read.config, models=read.models, served=True)


@asynccontextmanager
async def make_checkpointer() -> AsyncGenerator[BaseCheckpointSaver[Any]]:
    """Open the saver of the server's threads.

    The server's own saver would restore any class that a checkpoint names. `REPLAN_STORAGE` says
    where the threads are, `REPLAN_STORAGE_KEY` encrypts them.

    Raises:
        StorageError: The storage cannot be opened.
    """
    where = os.environ.get(STORAGE) or BESIDE_THE_SERVERS
    async with open_storage(where, key=os.environ.get(STORAGE_KEY) or None) as storage:
        yield storage.checkpointer
