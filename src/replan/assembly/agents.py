"""The agent of a team, which keeps nothing between two calls."""
# LangGraph leaves the type arguments of savers open, so `compile` reads as partly unknown.
# pyright: reportUnknownMemberType=false

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import cast

from langgraph.store.base import BaseStore

from replan.assembly.environment import chosen_models, random_id
from replan.assembly.graphs import Graph, compile_graph
from replan.assembly.per_call import (
    CallAccounts,
    CallLog,
    CallSaver,
    CallThreads,
    CallValues,
    own_log,
)
from replan.assembly.team_services import services_of
from replan.log.run_log import RunLog
from replan.ports.model_provider import ModelProvider
from replan.ports.storage import Storage
from replan.ports.thread_repository import ThreadRepository
from replan.sessions.carried_run import carrier_of, context_key_of
from replan.sessions.run_place import call_places
from replan.sessions.stateless_agent import StatelessAgent, Workplace, refusal_of
from replan.specialists.services import Services
from replan.team.team import Team


def build_agent(  # noqa: PLR0913 - what a team leaves open
    team: Team | Path | str,
    *,
    context_key: str | bytes | None = None,
    store: BaseStore | None = None,
    base_url: str | None = None,
    models: ModelProvider | None = None,
    tenant: str = "",
    clock: Callable[[], datetime] | None = None,
    new_id: Callable[[], str] | None = None,
) -> StatelessAgent:
    """Build an agent that stores nothing between two calls; its client keeps the sessions.

    One graph serves all calls, including parallel ones.

    Args:
        team: The team, or the path of a team file.
        context_key: Signs the runs that contexts carry, so that nobody can change or forge one. At
            least 16 bytes, the same for all agents that take turns of a session. Without a key,
            everyone who passes a context is trusted with all that a run may do.
        store: A LangGraph store for data of specialists and tools across sessions.
        base_url: The OpenAI-compatible server of models that are given by name.
        models: Builds models from names, instead of the server and the environment.
        tenant: The tenant that the agent is built for; `models` receives it with each name.
        clock: Returns the time, with a time zone.
        new_id: Returns a new id for a run.

    Raises:
        ConfigurationError: Names the field, the value and the fix of each mistake.
        TeamFileError: The team file has mistakes.
    """
    key = context_key_of(context_key)
    provider = chosen_models(models, base_url)
    if not isinstance(team, Team):
        from replan.team.team_file import read_team_file  # noqa: PLC0415 - a team in code has none

        read = read_team_file(Path(team), os.environ).with_model(None, base_url)
        team, provider = read.config, models or read.models
    bound = services_of(team, provider, cast("RunLog", CallLog()), tenant, clock)
    services = replace(
        bound,
        accounts=CallAccounts(),
        threads=cast("ThreadRepository", CallThreads()),
        new_id=new_id or random_id,
    )
    saver = CallSaver(serde=CallValues())
    graph = compile_graph(team, services, saver, store, seen="at_rest")
    return StatelessAgent(
        Workplace(
            graph=graph,
            places=call_places(graph, own_log, random_id),
            clock=services.clock,
            new_id=services.new_id,
            carrier=carrier_of(services, key),
            refusal=refusal_of(services),
            graph_in=partial(_kept_in, team, replace(services, accounts=bound.accounts), store),
        )
    )


def _kept_in(team: Team, services: Services, store: BaseStore | None, storage: Storage) -> Graph:
    """The graph of an agent's team in a storage."""
    kept = replace(services, log=storage.log, threads=storage.threads)
    graph = compile_graph(team, kept, storage.checkpointer, store or storage.store, seen="answered")
    # Its client keeps the answer first.
    graph.interrupt_before_nodes = ["summarise"]
    return graph
