"""A team bound to live models, specialists, knowledge, hooks, clock and ids."""
# LangGraph leaves the type arguments of savers open, so `compile` reads as partly unknown.
# pyright: reportUnknownMemberType=false

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from replan.assembly.environment import now, random_id
from replan.base.errors import ConfigurationError, Mistake, mistake
from replan.base.user_code import call
from replan.log.events.callbacks import Hook
from replan.log.events.emitter import Hooks
from replan.log.events.types import BaseEvent
from replan.log.run_log import RunLog
from replan.models.chat import Chat
from replan.models.spending.scopes import price_of, with_free_ones
from replan.ports.model_provider import ModelProvider
from replan.ports.retriever import Retriever
from replan.ports.run_context import Folders
from replan.ports.specialist_port import SpecialistPort
from replan.prompts.host import HostPrompts
from replan.prompts.replies.keys import FEEDBACK_REPLY, THINK_REPLY
from replan.prompts.sections import Caller
from replan.specialists.given_tools import chat_with_tools
from replan.specialists.services import HOST, HostModels, Services
from replan.state.knowledge import SEARCHED, log_unused_knowledge_options
from replan.state.limits import Price
from replan.state.options import MemoryOptions, joined, log_unused
from replan.storage.memory_log import memory_log
from replan.storage.memory_threads import MOST_CLOSED, MemoryThreads
from replan.team.chats import Chats
from replan.team.team import Team
from replan.team.tool_server import build_servers


def services_of(
    team: Team,
    provider: ModelProvider,
    log: RunLog | None = None,
    tenant: str = "",
    clock: Callable[[], datetime] | None = None,
) -> Services:
    """Bind a team to live models, specialists, log, clock and ids."""
    servers, missing = build_servers(team.tool_servers, os.environ)
    clock = clock or now
    host, chats = team.host, Chats(provider, servers, tenant, os.environ, clock)
    host = host.replace(model=NoHost()) if team.is_direct else host
    chats.mistakes += [*missing, *_missing_workspace(team)]
    built = chats.built(team.chat_models)
    unpriced = _unpriced(built, team.prices)
    if team.is_direct:
        built["host.model"] = chats.of(host.model, "host.model")
    specialists: dict[str, SpecialistPort] = {}
    for index, specialist in enumerate(team.specialists):
        with chats.collecting():
            specialists[specialist.name] = specialist.built(f"specialists[{index}]", chats)
    with chats.collecting():
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
    if chats.mistakes:
        raise team.refusal(chats.mistakes)
    models = _host_models(built, direct)
    memory = joined(team.memory, host.memory)
    prompts = _host_prompts(team, models, memory)
    if host.structured_output:
        models = _enforcing(models)
    parts = {HOST: host, **{specialist.name: specialist for specialist in team.specialists}}
    log_unused(memory)
    if team.knowledge is None:
        log_unused_knowledge_options(team.rag, *(part.rag for part in parts.values()))
    workspace = Path(team.workspace or "")
    return Services(
        models=models,
        specialists=specialists,
        identity=team.identity.replace(unsafe=_unsafe(team, specialists)),
        prompts=prompts,
        log=log or memory_log(),
        settings=team.settings.replace(memory=memory),
        memory={
            specialist.name: memory_of_specialist
            for specialist in team.specialists
            if (memory_of_specialist := joined(team.memory, specialist.memory)) != memory
        },
        knowledge=cast("Retriever | None", team.knowledge),
        rag={name: joined(SEARCHED, team.rag, part.rag) for name, part in parts.items()},
        model_of=lambda name: chats.of(team.named_model(name), "memory.summary_model_id"),
        output=(team.specialists[0] if team.is_direct else host).shape,
        early_members=_early_members(team),
        is_direct=team.is_direct,
        remembers=any(part.remembers for part in parts.values()),
        queues={
            specialist.name: specialist.queue for specialist in team.specialists if specialist.queue
        },
        tool_servers=servers,
        hooks=Hooks(tuple(team.callbacks), team.hook_timeout, _call_hook),
        workspace=None if team.workspace is None else Path(team.workspace),
        folders=Folders(workspace, Path(team.out) if team.out else workspace),
        clock=clock,
        new_id=random_id,
        prices=with_free_ones(team.prices),
        unpriced=unpriced | _unpriced_embeddings(team.knowledge, team.prices),
        threads=MemoryThreads(most_closed=MOST_CLOSED),
        budgets={specialist.name: specialist.limits for specialist in team.specialists},
    )


def _missing_workspace(team: Team) -> list[Mistake]:
    """A folder may be made after its team, but not after what works in it."""
    if team.workspace is None or Path(team.workspace).is_dir():
        return []
    problem, fix = "there is no such folder", "Create it, or name another folder."
    return [mistake("workspace", str(team.workspace), problem, fix, "no_folder")]


def _host_models(built: Mapping[str, Chat], direct: Chat) -> HostModels:
    """Who does what the host does; what has no model of its own takes that of the wider work."""
    answering = built["host.model"]
    thinking = built.get("host.thinking_model", answering)
    return HostModels(
        thinking=thinking,
        planning=built.get("host.planning_model", thinking),
        feedback=built.get("host.feedback_model", thinking),
        answering=answering,
        direct=direct,
    )


def _unsafe(team: Team, built: Mapping[str, SpecialistPort]) -> tuple[str, ...]:
    """The specialists whose work, or a call of whose tools, must not happen twice."""
    return tuple(
        specialist.name
        for specialist in team.specialists
        if "unsafe" in (specialist.effects, built[specialist.name].card.effects)
        or specialist.approve
    )


def _early_members(team: Team) -> frozenset[str]:
    is_on = team.host.early_steps and not team.is_direct
    return frozenset(
        specialist.name for specialist in team.specialists if is_on and specialist.begins_early
    )


def _enforcing(models: HostModels) -> HostModels:
    """The models, whose providers enforce the form of judgements where they can."""
    return replace(
        models,
        thinking=models.thinking.enforcing(THINK_REPLY),
        feedback=models.feedback.enforcing(FEEDBACK_REPLY),
    )


def _host_prompts(team: Team, models: HostModels, memory: MemoryOptions) -> HostPrompts:
    host, merged = team.host, team.calls == "merged"
    # What has a model or a prompt of its own is asked in a call of its own.
    is_planned_at_once = models.planning is models.thinking and not host.planning_prompt
    return HostPrompts(
        team=tuple(specialist.card for specialist in team.specialists),
        system=host.system_prompt,
        thinking=host.thinking_prompt or team.thinking_prompt_template,
        planning=host.planning_prompt,
        reflection=host.reflection_prompt or team.reflection_prompt_template,
        plan_template=team.plan_template,
        merged_planning=merged and is_planned_at_once,
        merged_answer=merged and models.direct is models.thinking,
        merged_final_answer=merged and models.answering is models.feedback,
        remembers=host.remembers,
        output="" if host.shape is None else host.shape.instruction,
        memory=memory,
        as_json=_enforced(models) if host.structured_output else frozenset(),
        foresees=host.judge == "when_needed" and host.shape is None,
    )


def _unpriced(built: Mapping[str, Chat], prices: Mapping[str, Price]) -> dict[str, str]:
    """The models without a price under their fields."""
    return {
        field: one.names[0]
        for field, chat in built.items()
        for one in chat.chain
        if price_of(one.names, prices) is None
    }


def _enforced(models: HostModels) -> frozenset[Caller]:
    """Whose replies are of a form that a provider enforces."""
    judges: Mapping[Caller, Chat] = {"think": models.thinking, "feedback": models.feedback}
    return frozenset(node for node, chat in judges.items() if chat.can_enforce)


def _unpriced_embeddings(knowledge: object, prices: Mapping[str, Price]) -> dict[str, str]:
    """The embedding model under its field, if it has no price."""
    names: Sequence[str] | None = getattr(knowledge, "embedding_names", None)
    if not names or price_of(names, prices) is not None:
        return {}
    return {"knowledge": names[0]}


async def _call_hook(hook: Hook, event: BaseEvent) -> None:
    await call(hook, event, {})


class NoHost(BaseChatModel):
    """In the place of the model of a host that does not exist."""

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        del messages
        raise ConfigurationError("host", None, "the team has no host", "Give the team a host.")

    @property
    def _llm_type(self) -> str:
        return "none"
