"""The compiled graph of a team: from its configuration, or from its team file."""
# LangGraph leaves the type arguments of savers open, so `compile` reads as partly unknown.
# pyright: reportUnknownMemberType=false

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any

from langgraph.constants import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from replan.assembly.environment import chosen_models
from replan.assembly.team_services import services_of
from replan.base.errors import ConfigurationError
from replan.base.langgraph_inside.checkpoints import SERIALIZER_LOG
from replan.base.langgraph_inside.langgraph_channels import with_one_channel
from replan.base.langgraph_inside.lean_branches import with_lean_branches
from replan.graph.build import Seen, host_graph
from replan.log.events.listeners import Tracing
from replan.models.spending.scopes import check_prices
from replan.nodes.host.handed_plan import check_input
from replan.nodes.host.plan_bounds import check_outside_plan
from replan.ports.elsewhere import StepQueue
from replan.ports.model_provider import ModelProvider
from replan.ports.storage import Storage
from replan.runs.calling.compiled import Graph
from replan.runs.calling.team_graph import TeamGraph
from replan.specialists.services import Services
from replan.state.enhanced import first_values
from replan.state.input_guard import InputGuard
from replan.state.tightening import EDITABLE
from replan.storage.databases.serializer import is_of_other_code, saver_for
from replan.team.host import Host
from replan.team.specialist import Specialist
from replan.team.team import Team
from replan.traces.option import Traces
from replan.traces.otlp import not_installed

AnyTeam = Team | Graph | Path | str
"""A team: its configuration, its compiled graph, or the path of its team file."""


def build_graph(  # noqa: PLR0913 - what a team leaves open
    team: Team,
    *,
    storage: Storage | None = None,
    checkpointer: Any = None,
    store: BaseStore | None = None,
    base_url: str | None = None,
    models: ModelProvider | None = None,
    served: bool = False,
    tenant: str = "",
    clock: Callable[[], datetime] | None = None,
    elsewhere: StepQueue | None = None,
) -> Graph:
    """Compile the host graph of a team.

    Args:
        team: The team.
        storage: A storage from `open_storage`. It keeps threads and log, so that a run outlives
            its process. Specialists and tools get its store from LangGraph: `get_store()`. Inside
            another graph, and on a server, they get the store of that graph or server.
        checkpointer: A LangGraph saver instead of the storage's. The log is then the storage's,
            or lives in memory. None on a server, which has its own saver.
        store: A LangGraph store instead of the storage's.
        base_url: The OpenAI-compatible server of models that are given by name.
        models: Builds models from names, instead of the server and the environment.
        served: Whether settings come from outside the process, as on LangGraph's server. Such
            settings may tighten those of the team, including its defaults, and loosen nothing.
        tenant: The tenant that the graph is built for; `models` receives it with each name.
        clock: Returns the time of attempts, plans and questions, with a time zone.
        elsewhere: Passes steps of specialists with a `queue` to its workers; a worker has it.

    Raises:
        ConfigurationError: Names the field, the value and the fix of each mistake.
    """
    provider = chosen_models(models, base_url)
    services = services_of(team, provider, storage and storage.log, tenant, clock)
    threads = services.threads if storage is None else storage.threads
    services = replace(services, threads=threads, elsewhere=elsewhere)
    if checkpointer is None and storage is not None:
        checkpointer = storage.checkpointer
    store = storage.store if store is None and storage is not None else store
    return compile_graph(team, services, checkpointer, store, served=served)


def compile_graph(
    team: Team,
    services: Services,
    checkpointer: Any,
    store: BaseStore | None,
    *,
    served: bool = False,
    seen: Seen = "always",
) -> TeamGraph:
    """Compile the graph of a team whose live things are bound; `seen`: see `host_graph`."""
    opened = frozenset(team.client_overrides)
    services = replace(services, is_served=served, client_overrides=opened, store=store)
    check_prices(team.limits, services)
    if services.remembers and store is None and not served:
        places = (
            f"specialists[{i}]"
            for i, specialist in enumerate(team.specialists)
            if specialist.remembers
        )
        place = "host" if team.host.remembers else next(places)
        problem = "there is no store for what is remembered"
        fix = "Give build_graph a storage from open_storage, or a LangGraph store."
        raise ConfigurationError(f"{place}.remembers", "true", problem, fix)
    nodes = host_graph(services, seen=seen)
    SERIALIZER_LOG.addFilter(is_of_other_code)
    inner = [
        part
        for specialist in team.specialists
        for part in (specialist.invokable, specialist.streamable)
    ]
    graph = TeamGraph.of(
        nodes.compile(checkpointer=saver_for(checkpointer, inner), store=store, name=team.name)
    )
    # Runs that nothing keeps have a graph of their own.
    is_kept = bool(checkpointer) or served or seen != "always"
    unseen = partial(compile_graph, team, services, None, store, seen="never")
    input_guard = InputGuard(
        partial(check_input, services=services),
        check_plan=lambda text, before: check_outside_plan(text, services, before),
        clock=services.clock,
        editable=EDITABLE | opened if served else None,
        shapes=services.shapes,
        services=services,
        tracing=team.traces and _tracing(team.traces),
        unseen=None if is_kept else _from_the_second_time(unseen),
    )
    graph.channels[START] = input_guard
    input_guard.key = START
    if seen in ("at_rest", "never"):
        with_one_channel(graph, first_values())
    else:
        with_lean_branches(graph)
    return graph


def _from_the_second_time(make: Callable[[], Graph]) -> Callable[[], Graph | None]:
    """Make a graph once it is asked for again: for one run it would cost more than it saves."""
    asked, made = count(), cache(make)
    return lambda: made() if next(asked) else None


def _tracing(traces: Traces) -> Tracing:
    try:
        from replan.traces.tracing import tracing_of  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise not_installed(traces) from error
    return tracing_of(traces)


def viewer(storage: Storage) -> Graph:
    """Return a graph that can read every run's state, and run none: it takes no team and no key."""
    return build_graph(
        Team([Specialist("nobody", "Does nothing.", run=lambda _: "")]), storage=storage
    )


def team_graph(  # noqa: PLR0913 - what a team file leaves open
    path: Path,
    *,
    directory: Path | None = None,
    out: Path | None = None,
    model: str | None = None,
    base_url: str | None = None,
    environment: Mapping[str, str] = os.environ,
    storage: Storage | None = None,
    served: bool = False,
    clock: Callable[[], datetime] | None = None,
) -> Graph:
    """Compile the host graph of a team file.

    Args:
        path: The team file.
        directory: The folder that specialists may read and write; else the file's `workspace`.
        out: The folder for the files that steps make; else the same.
        model: The host's model, instead of the file's.
        base_url: An OpenAI-compatible server for models without their own.
        environment: The environment variables, which hold the models' keys.
        storage: Keeps threads and log.
        served: Whether settings come from outside the process.
        clock: Returns the time, with a time zone.

    Raises:
        TeamFileError: The file has mistakes, or a model's key is missing.
    """
    from replan.team.team_file import read_team_file  # noqa: PLC0415 - a team in code has none

    read = read_team_file(path, environment, directory=directory, out=out)
    read = read.with_model(model, base_url)
    return build_graph(read.config, storage=storage, models=read.models, served=served, clock=clock)


def graph_of(
    team: AnyTeam,
    storage: Storage | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Graph:
    """The graph of a team.

    Raises:
        ConfigurationError: The team has mistakes.
        TeamFileError: The team file has mistakes.
    """
    if isinstance(team, CompiledStateGraph):
        return team
    if isinstance(team, Team):
        return build_graph(team, storage=storage, clock=clock)
    return team_graph(Path(team), environment=os.environ, storage=storage, clock=clock)


def with_output_type(team: AnyTeam, output_type: Any | None) -> AnyTeam:
    """The team whose host answers in a type; the same team without a type.

    Raises:
        ConfigurationError: Its output type is fixed.
    """
    if output_type is None:
        return team
    if isinstance(team, Team) and team.is_direct:
        return team.replace(specialists=[team.specialists[0].replace(output_type=output_type)])
    if isinstance(team, Team):
        return team.replace(host=Host(**{**dict(team.host), "output_type": output_type}))
    problem, fix = "This team is compiled.", "Give Host(..., output_type=...) before."
    if not isinstance(team, CompiledStateGraph):
        problem, fix = "A team file says it itself.", "Write output_type: module:Name under host."
    raise ConfigurationError("output_type", output_type, problem, fix)
