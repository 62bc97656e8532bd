"""The one place that chooses adapters: from a configuration to a compiled graph."""
# LangGraph leaves the type arguments of savers open, so `compile` reads as partly unknown.
# pyright: reportUnknownMemberType=false

import logging
import os
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, overload

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.serde import jsonplus
from langgraph.constants import START
from langgraph.graph.state import CompiledStateGraph

from replan.adapters.journal import MemoryJournal
from replan.adapters.models import LangChainModels, without_own_retries
from replan.adapters.storage.serializer import is_news, saver_for
from replan.calling import TeamGraph
from replan.events.callbacks import Hook
from replan.events.hooks import Hooks
from replan.events.types import BaseEvent
from replan.graph.build import host_graph
from replan.graph.config import Host, MultiAgentConfig, Specialist
from replan.nodes.run_start import check_input
from replan.nodes.scopes import check_prices
from replan.ports.chat import Chat
from replan.ports.journal import Journal
from replan.ports.models import ModelProvider
from replan.ports.prices import price_of
from replan.ports.services import HostModels, Services
from replan.ports.specialist import SpecialistPort
from replan.ports.storage import Storage
from replan.prompts.host import HostPrompts
from replan.secrets.sources import learn_environment, learn_model
from replan.specialists.effects import effects_of_work
from replan.specialists.foreign import call
from replan.specialists.function import FunctionSpecialist
from replan.specialists.prompted import PromptedSpecialist
from replan.specialists.runnable import RunnableAnswer
from replan.specialists.tools import chat_with_tools
from replan.state.entrance import Entrance
from replan.state.team import Effects, SpecialistCard
from replan.state.tightening import EDITABLE

Graph = CompiledStateGraph[Any, Any, Any, Any]


class Chats:
    """One `Chat` a model, so that a model given twice is known to be the same."""

    def __init__(self, provider: ModelProvider) -> None:
        self._provider = provider
        self._chats: dict[str | int, Chat] = {}

    @overload
    def of(self, model: BaseChatModel | str) -> Chat: ...
    @overload
    def of(self, model: BaseChatModel | str | None) -> Chat | None: ...
    def of(self, model: BaseChatModel | str | None) -> Chat | None:
        """The chat of a model or of a model's name; none for none."""
        if model is None:
            return None
        key = model if isinstance(model, str) else id(model)
        if key not in self._chats:
            built = self._provider.chat_model(model) if isinstance(model, str) else model
            learn_model(built)
            built, retries = without_own_retries(built)
            self._chats[key] = Chat(built, model if isinstance(model, str) else "", retries)
        return self._chats[key]


def build_graph(
    config: MultiAgentConfig,
    *,
    storage: Storage | None = None,
    checkpointer: Any = None,
    base_url: str | None = None,
    models: ModelProvider | None = None,
    served: bool = False,
) -> Graph:
    """Compile the host graph of a team.

    Args:
        config: The team.
        storage: From `open_storage`: keeps threads and journal, so that a run outlives its process.
        checkpointer: A LangGraph saver in the place of the storage's; the journal is the storage's
            then, or lives in memory. None on a server, which brings its own.
        base_url: The OpenAI-compatible server of models that are given by name.
        models: Builds models from names, in the place of the server and the environment.
        served: Whether settings come from outside of the process, as on LangGraph's server: they
            may tighten what the team has, its defaults included, and loosen nothing.

    Raises:
        ConfigurationError: Names the field, the value and the mend.
    """
    config.check()
    learn_environment(os.environ)
    provider = models or models_from_environment(base_url)
    services = services_of(config, provider, storage and storage.journal)
    opened = frozenset(config.open_to_clients)
    services = replace(services, is_served=served, open_to_clients=opened)
    check_prices(config.limits, services)
    graph = host_graph(services)
    if checkpointer is None and storage is not None:
        checkpointer = storage.checkpointer
    logging.getLogger(jsonplus.__name__).addFilter(is_news)
    inner = [part for each in config.specialists for part in (each.invokable, each.streamable)]
    compiled = TeamGraph.of(
        graph.compile(checkpointer=saver_for(checkpointer, inner), name=config.name)
    )
    entrance = Entrance(
        partial(check_input, services=services), editable=EDITABLE | opened if served else None
    )
    compiled.channels[START] = entrance
    entrance.key = START
    return compiled


def services_of(
    config: MultiAgentConfig, provider: ModelProvider, journal: Journal | None = None
) -> Services:
    """Bind a configuration to live models, specialists, journal, clock and ids."""
    host, chats = config.host, Chats(provider)
    answering = chats.of(host.tool_calling_model)
    thinking = chats.of(host.thinking_model) or answering
    planning = chats.of(host.planning_model) or thinking
    feedback = chats.of(host.feedback_model) or thinking
    direct = chat_with_tools(
        "host.tools",
        answering,
        host.tools,
        max_rounds=host.max_tool_rounds,
        checker=config.stream_tool_call_checker,
        seconds=config.limits.step_timeout,
    )
    merged = config.calls == "merged"
    return Services(
        models=HostModels(
            thinking=thinking,
            planning=planning,
            feedback=feedback,
            answering=answering,
            direct=direct,
        ),
        specialists={
            specialist.name: _specialist(f"specialists[{index}]", specialist, chats)
            for index, specialist in enumerate(config.specialists)
        },
        prompts=HostPrompts(
            team=tuple(specialist.card for specialist in config.specialists),
            system=host.system_prompt,
            thinking=host.thinking_prompt or config.thinking_prompt_template,
            planning=host.planning_prompt,
            reflection=host.reflection_prompt or config.reflection_prompt_template,
            plan_template=config.plan_template,
            # What has a model or a prompt of its own is asked in a call of its own.
            merged_planning=merged and planning is thinking and not host.planning_prompt,
            merged_answer=merged and direct is thinking,
            merged_final_answer=merged and answering is feedback,
        ),
        journal=journal or MemoryJournal(),
        settings=config.settings,
        hooks=Hooks(tuple(config.callbacks), config.hook_timeout, _call_hook),
        workspace=None if config.workspace is None else Path(config.workspace),
        clock=lambda: datetime.now(UTC),
        new_id=lambda: uuid.uuid4().hex,
        prices=dict(config.prices),
        unpriced=_unpriced(config, chats),
        budgets={specialist.name: specialist.limits for specialist in config.specialists},
    )


async def _call_hook(hook: Hook, event: BaseEvent) -> None:
    await call(hook, event, {})


def _unpriced(config: MultiAgentConfig, chats: Chats) -> dict[str, str]:
    """The configured models without a price, by the field that they stand in."""
    names = ("tool_calling_model", "thinking_model", "planning_model", "feedback_model")
    models = {f"host.{name}": getattr(config.host, name) for name in names}
    for index, specialist in enumerate(config.specialists):
        models[f"specialists[{index}].chat_model"] = specialist.chat_model
    built = {field: chats.of(model) for field, model in models.items()}
    return {
        field: chat.names[0]
        for field, chat in built.items()
        if chat is not None and price_of(chat.names, config.prices) is None
    }


def local_graph(  # noqa: PLR0913 - what the environment leaves open
    *,
    directory: Path,
    out: Path | None = None,
    model: str = "offline",
    base_url: str | None = None,
    environment: Mapping[str, str] = os.environ,
    storage: Storage | None = None,
    served: bool = False,
) -> Graph:
    """Compile the host graph of the local team, whose specialists need no model.

    Args:
        directory: The folder whose files they read.
        out: The folder for reports; else `directory`.
        model: The host's model.
        base_url: An OpenAI-compatible server.
        environment: Where the model's key stands.
        storage: Keeps threads and journal.
        served: Whether settings come from outside of the process.

    Raises:
        ConfigurationError: The model is unknown or its key is missing.
    """
    config = local_config(directory=directory, out=out, model=model)
    models = models_from_environment(base_url, environment)
    return build_graph(config, storage=storage, models=models, served=served)


def local_config(
    *, directory: Path, out: Path | None = None, model: str = "offline"
) -> MultiAgentConfig:
    """The configuration of the local team; see `local_graph`."""
    from replan.specialists.local import local_specialists  # noqa: PLC0415 - few teams have it

    team = [
        Specialist(
            name=port.card.name,
            intended_use=port.card.intended_use,
            capabilities=port.card.capabilities,
            effects=port.card.effects,
            run=port.run,
        )
        for port in local_specialists(directory, out)
    ]
    return MultiAgentConfig(
        host=Host(tool_calling_model=model), specialists=team, workspace=directory
    )


def models_from_environment(
    base_url: str | None = None, environment: Mapping[str, str] = os.environ
) -> ModelProvider:
    """Build models by name, with keys from the environment."""
    learn_environment(environment)
    return LangChainModels(base_url=base_url, environment=environment)


def _specialist(place: str, given: Specialist, chats: Chats) -> SpecialistPort:
    if given.run is not None:
        return FunctionSpecialist(_card(given, effects_of_work(given.run)), given.run)
    chat = chats.of(given.chat_model)
    if chat is None:
        answer = RunnableAnswer(given.invokable, given.streamable)
        work = given.invokable if given.streamable is None else given.streamable
        learn_model(work)
        card = _card(given, effects_of_work(work))
    else:
        answer = chat_with_tools(
            f"{place}.tools",
            chat,
            given.tools,
            max_rounds=given.max_tool_rounds,
            effects=given.effects or "unsafe",
            approve=given.approve,
        ).reply
        # What its tools do is told of each of them, and kept on record call by call.
        card = given.card if given.tools else _card(given, "pure")
    return PromptedSpecialist(
        card=card,
        answer=answer,
        system_prompt=given.system_prompt,
        input_processor=given.input_processor,
        output_processor=given.output_processor,
        # The tools of a chat are on record: none that was called is called again.
        can_answer_again=chat is not None or card.effects == "pure",
    )


def _card(given: Specialist, effects: Effects) -> SpecialistCard:
    """Its card, with the effects that it declares, else with these."""
    is_declared = given.effects is not None
    return given.card.replace(effects=given.effects or effects, is_declared=is_declared)


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
) -> Graph:
    """Compile the host graph of a team file.

    Args:
        path: The team file.
        directory: The folder that specialists may read and write; else the file's `workspace`.
        out: The folder for reports; else the same.
        model: The host's model, in the place of the file's.
        base_url: An OpenAI-compatible server for models that have none of their own.
        environment: Where the models' keys stand.
        storage: Keeps threads and journal.
        served: Whether settings come from outside of the process.

    Raises:
        TeamFileError: The file has mistakes, or a model's key is missing.
    """
    from replan.team.team_file import read_team_file  # noqa: PLC0415 - a team in code has none

    team = read_team_file(path, environment, directory=directory, out=out)
    team = team.with_model(model, base_url)
    return build_graph(team.config, storage=storage, models=team.models, served=served)
