"""The one place that chooses adapters: from a configuration to a compiled graph."""
# LangGraph leaves the type arguments of savers open, so `compile` reads as partly unknown.
# pyright: reportUnknownMemberType=false

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from langchain_core.language_models import FakeListChatModel
from langgraph.constants import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from replan.adapters.call_journal import CallAccounts, CallJournal, CallThreads, own_journal
from replan.adapters.call_values import CallValues
from replan.adapters.chat_models import LangChainModels
from replan.adapters.memory_journal import MemoryJournal
from replan.adapters.storage.checkpoints.savers import MemorySaver
from replan.adapters.storage.holds.thread_holds import MemoryHolds
from replan.adapters.storage.stored_values.serializer import is_news, saver_for
from replan.adapters.threads.memory import MOST_CLOSED, MemoryThreads
from replan.calling import TeamGraph
from replan.errors import ConfigurationError
from replan.events.callbacks import Hook
from replan.events.emitter import Hooks
from replan.events.trace import Tracing
from replan.events.types import BaseEvent
from replan.graph.build import host_graph
from replan.host.handed_plan import check_input
from replan.langgraph_inside.checkpoints import SERIALIZER_LOG
from replan.ports.elsewhere import Elsewhere
from replan.ports.folders import Folders
from replan.ports.journal import Journal
from replan.ports.model_provider import ModelProvider
from replan.ports.retriever import Retriever
from replan.ports.specialist_port import SpecialistPort
from replan.ports.storage import Storage
from replan.ports.thread_repository import ThreadRepository
from replan.prompts.host import HostPrompts
from replan.secrets.sources import learn_environment
from replan.services import HOST, HostModels, Services
from replan.sessions.context_key import context_key_of
from replan.sessions.run_place import call_places
from replan.sessions.stateless_agent import StatelessAgent, Workplace
from replan.specialists.function import call
from replan.specialists.tools import chat_with_tools
from replan.spending.scopes import check_prices, price_of, with_free_ones
from replan.state.entrance import Entrance
from replan.state.knowledge import SEARCHED, log_in_vain
from replan.state.limits import Price
from replan.state.memory import log_unused
from replan.state.options import joined
from replan.state.tightening import EDITABLE
from replan.team.chats import Chats
from replan.team.specialist import Specialist
from replan.team.team import Team
from replan.team.tool_server import built_servers
from replan.traces.option import Traces
from replan.traces.otlp import not_installed

Graph = CompiledStateGraph[Any, Any, Any, Any]


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
    elsewhere: Elsewhere | None = None,
) -> Graph:
    """Compile the host graph of a team.

    Args:
        team: The team.
        storage: A storage from `open_storage`. It keeps threads and journal, so that a run outlives
            its process. Specialists and tools get its store from LangGraph: `get_store()`. Inside
            another graph, and on a server, they get the store of that graph or server.
        checkpointer: A LangGraph saver instead of the storage's. The journal is then the storage's,
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
    learn_environment(os.environ)
    provider = models or models_from_environment(base_url)
    services = services_of(team, provider, storage and storage.journal, tenant, clock)
    threads = services.threads if storage is None else storage.threads
    services = replace(services, threads=threads, elsewhere=elsewhere)
    if checkpointer is None and storage is not None:
        checkpointer = storage.checkpointer
    store = storage.store if store is None and storage is not None else store
    return _compiled(team, services, checkpointer, store, served=served)


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
    learn_environment(os.environ)
    if not isinstance(team, Team):
        from replan.team.team_file import read_team_file  # noqa: PLC0415 - a team in code has none

        read = read_team_file(Path(team), os.environ).with_model(None, base_url)
        team, models = read.config, models or read.models
    provider = models or models_from_environment(base_url)
    bound = services_of(team, provider, cast("Journal", CallJournal()), tenant, clock)
    services = replace(
        bound,
        accounts=CallAccounts(),
        threads=cast("ThreadRepository", CallThreads()),
        new_id=new_id or bound.new_id,
    )
    saver = MemorySaver(CallValues(), MemoryHolds())
    graph = _compiled(team, services, saver, store)
    return StatelessAgent(
        Workplace(
            graph=graph,
            places=call_places(graph, own_journal, partial(token_hex, 16)),
            clock=services.clock,
            new_id=services.new_id,
            key=key,
            kept_in=partial(_kept_in, team, replace(services, accounts=bound.accounts), store),
        )
    )


def _kept_in(team: Team, services: Services, store: BaseStore | None, storage: Storage) -> Graph:
    """The graph of an agent's team in a storage."""
    kept = replace(services, journal=storage.journal, threads=storage.threads)
    graph = _compiled(team, kept, storage.checkpointer, store or storage.store)
    # Its client keeps the answer first.
    graph.interrupt_before_nodes = ["summarise"]
    return graph


def _compiled(
    team: Team,
    services: Services,
    checkpointer: Any,
    store: BaseStore | None,
    *,
    served: bool = False,
) -> Graph:
    opened = frozenset(team.open_to_clients)
    services = replace(services, is_served=served, open_to_clients=opened, store=store)
    check_prices(team.limits, services)
    if services.remembers and store is None and not served:
        raise _without_store(team)
    graph = host_graph(services)
    SERIALIZER_LOG.addFilter(is_news)
    inner = [part for each in team.specialists for part in (each.invokable, each.streamable)]
    compiled = TeamGraph.of(
        graph.compile(checkpointer=saver_for(checkpointer, inner), store=store, name=team.name)
    )
    entrance = Entrance(
        partial(check_input, services=services),
        clock=services.clock,
        editable=EDITABLE | opened if served else None,
        shapes=services.shapes,
        services=services,
        tracing=team.traces and _tracing(team.traces),
    )
    compiled.channels[START] = entrance
    entrance.key = START
    return compiled


def _remembering(team: Team) -> list[str]:
    """The members of a team that remember facts, by the fields that configure it."""
    parts = {"host": team.host, **{f"specialists[{i}]": s for i, s in enumerate(team.specialists)}}
    return [f"{place}.remembers" for place, part in parts.items() if part.remembers]


def _without_store(team: Team) -> ConfigurationError:
    field, told = _remembering(team)[0], "there is no store for what is remembered"
    fix = "Give build_graph a storage from open_storage, or a LangGraph store."
    return ConfigurationError(field, "true", told, fix)


def _tracing(traces: Traces) -> Tracing:
    try:
        from replan.traces.tracing import tracing_of  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise not_installed(traces) from error
    return tracing_of(traces)


def services_of(
    team: Team,
    provider: ModelProvider,
    journal: Journal | None = None,
    tenant: str = "",
    clock: Callable[[], datetime] | None = None,
) -> Services:
    """Bind a team to live models, specialists, journal, clock and ids."""
    servers, missing = built_servers(team.tool_servers, os.environ)
    now = clock or partial(datetime.now, UTC)
    host, chats = team.host, Chats(provider, servers, tenant, os.environ, now)
    chats.mistakes += missing
    built = chats.built(team.chat_models)
    specialists: dict[str, SpecialistPort] = {}
    for index, specialist in enumerate(team.specialists):
        with chats.telling():
            specialists[specialist.name] = specialist.built(f"specialists[{index}]", chats)
    with chats.telling():
        direct = chat_with_tools(
            "host.tools",
            chats.of(host.model, "host.model"),
            host.tools,
            servers=servers,
            max_rounds=host.max_tool_rounds,
            checker=team.stream_tool_call_checker,
            remembers=host.remembers,
            seconds=team.limits.step_timeout,
        )
    knowledge = team.knowledge
    with chats.telling():
        knowledge = chats.with_embeddings(knowledge)
    if chats.mistakes:
        raise team.refusal(chats.mistakes)
    answering = built["host.model"]
    thinking = built.get("host.thinking_model", answering)
    planning = built.get("host.planning_model", thinking)
    feedback = built.get("host.feedback_model", thinking)
    merged = team.calls == "merged"
    memory = joined(team.memory, host.memory)
    parts = {HOST: host, **{each.name: each for each in team.specialists}}
    log_unused(memory)
    if team.knowledge is None:
        log_in_vain(team.rag, *(part.rag for part in parts.values()))
    workspace = Path(team.workspace or "")
    return Services(
        models=HostModels(
            thinking=thinking,
            planning=planning,
            feedback=feedback,
            answering=answering,
            direct=direct,
        ),
        specialists=specialists,
        prompts=HostPrompts(
            team=tuple(specialist.card for specialist in team.specialists),
            system=host.system_prompt,
            thinking=host.thinking_prompt or team.thinking_prompt_template,
            planning=host.planning_prompt,
            reflection=host.reflection_prompt or team.reflection_prompt_template,
            plan_template=team.plan_template,
            # What has a model or a prompt of its own is asked in a call of its own.
            merged_planning=merged and planning is thinking and not host.planning_prompt,
            merged_answer=merged and direct is thinking,
            merged_final_answer=merged and answering is feedback,
            remembers=host.remembers,
            output="" if host.shape is None else host.shape.asked,
            memory=memory,
        ),
        journal=journal or MemoryJournal(),
        settings=team.settings.replace(memory=memory),
        memory={
            each.name: own
            for each in team.specialists
            if (own := joined(team.memory, each.memory)) != memory
        },
        knowledge=cast("Retriever | None", knowledge),
        rag={name: joined(SEARCHED, team.rag, part.rag) for name, part in parts.items()},
        model_of=lambda name: chats.of(team.named_model(name), "memory.summary_model_id"),
        output=host.shape,
        remembers=bool(_remembering(team)),
        queues={each.name: each.queue for each in team.specialists if each.queue},
        tool_servers=servers,
        hooks=Hooks(tuple(team.callbacks), team.hook_timeout, _call_hook),
        workspace=None if team.workspace is None else Path(team.workspace),
        folders=Folders(workspace, Path(team.out) if team.out else workspace),
        clock=now,
        new_id=partial(token_hex, 16),
        prices=with_free_ones(team.prices),
        unpriced={
            field: one.names[0]
            for field, chat in built.items()
            for one in chat.chain
            if price_of(one.names, team.prices) is None
        }
        | _unpriced_embeddings(knowledge, team.prices),
        threads=MemoryThreads(most_closed=MOST_CLOSED),
        budgets={specialist.name: specialist.limits for specialist in team.specialists},
    )


def _unpriced_embeddings(knowledge: object, prices: Mapping[str, Price]) -> dict[str, str]:
    """The embedding model under its field, if it has no price."""
    embedding = getattr(knowledge, "embedding", None)
    if embedding is None or price_of(embedding.names, prices) is not None:
        return {}
    return {"knowledge.embeddings": embedding.names[0]}


async def _call_hook(hook: Hook, event: BaseEvent) -> None:
    await call(hook, event, {})


def viewer(storage: Storage) -> Graph:
    """Return a graph that can read every run's state, and run none: it takes no team and no key."""
    nobody = Specialist("nobody", "Does nothing.", run=_nothing)
    return build_graph(Team(FakeListChatModel(responses=[]), [nobody]), storage=storage)


def _nothing(_: object) -> str:
    return ""


def models_from_environment(
    base_url: str | None = None, environment: Mapping[str, str] = os.environ
) -> ModelProvider:
    """Build models by name, with keys from the environment."""
    learn_environment(environment)
    return LangChainModels(base_url=base_url, environment=environment)


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
        storage: Keeps threads and journal.
        served: Whether settings come from outside the process.
        clock: Returns the time, with a time zone.

    Raises:
        TeamFileError: The file has mistakes, or a model's key is missing.
    """
    from replan.team.team_file import read_team_file  # noqa: PLC0415 - a team in code has none

    read = read_team_file(path, environment, directory=directory, out=out)
    read = read.with_model(model, base_url)
    return build_graph(read.config, storage=storage, models=read.models, served=served, clock=clock)
