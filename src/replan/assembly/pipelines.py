"""Pipelines by themselves: a message in, its response out; or as the agent of a session."""

from collections.abc import Mapping
from functools import partial
from secrets import token_hex
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig

from replan.assembly.agents import build_agent
from replan.assembly.environment import now
from replan.models.chat import Chat
from replan.pipelines.host_utils import AIAdapter, HostUtils
from replan.pipelines.phases.agent_and_handler import BaseAgent
from replan.pipelines.response import Response
from replan.pipelines.turns.building import check_levels
from replan.pipelines.turns.main_turn import exclusively, turn_on
from replan.ports.thread_repository import ThreadRepository
from replan.sessions.stateless_agent import StatelessAgent
from replan.state.limits import Limits, Price
from replan.storage.memory_threads import MemoryThreads
from replan.team.specialist import Specialist
from replan.team.team import Team

_short_id = partial(token_hex, 8)


async def run_pipeline(  # noqa: PLR0913 - what a pipeline alone needs
    agent: type[BaseAgent],
    text: str | None = None,
    *,
    thread_id: str = "main",
    repository: ThreadRepository | None = None,
    model: BaseChatModel | None = None,
    config: RunnableConfig | None = None,
    retry: bool = False,
) -> Response:
    """Let a pipeline work on a thread until nothing is left to do.

    Args:
        agent: The class of the pipeline's main agent.
        text: The user's message; None does the remaining work, such as after a kill.
        thread_id: The thread; it is created if it does not exist.
        repository: Where threads are stored, such as `storage.threads`; None stores nothing.
        model: The model behind `agent.ai_adapter`.
        config: A LangChain configuration for the calls of the model.
        retry: Whether to repeat the last task: its phase stays, its sub-thread is replaced.

    Returns:
        The last response. If a phase failed, it has the `failure`, and a retry is possible.

    Raises:
        ConfigurationError: The phases of the pipeline never reach an end.
        ThreadError: The thread cannot be used: another caller works on it, it is of another version
            of the pipeline, or there is nothing to do.
    """
    repository = repository or MemoryThreads()
    utils = HostUtils(
        thread_repository=repository,
        ai_adapter=AIAdapter(None if model is None else Chat(model), config),
        clock=now,
        new_id=_short_id,
    )
    await check_levels(agent)
    with exclusively(repository, thread_id):
        turn = await turn_on(agent, thread_id, utils)
        await turn.begin(text, retry=retry)
        return await turn.run_to_end()


def pipeline_agent(
    agent: type[BaseAgent],
    *,
    model: BaseChatModel | str | None = None,
    base_url: str | None = None,
    limits: Limits | None = None,
    prices: Mapping[str, Price] | None = None,
    context_key: str | bytes | None = None,
) -> StatelessAgent:
    """Build an agent from a pipeline: each turn of a session is a message to the pipeline.

    It is the agent of a team without a host, whose one specialist is the pipeline.

    The context carries the pipeline's threads under `threads` in `project_state`. A question of the
    pipeline is the response of a turn, and the next turn answers it.

    Args:
        agent: The class of the pipeline's main agent.
        model: The model behind `agent.ai_adapter`: a chat model or its name.
        base_url: The OpenAI-compatible server of a model that is given by name.
        limits: What a turn may spend: calls, tokens, money and seconds; a later turn continues.
            And how many questions one message may lead to, over all turns.
        prices: The prices of models, by their names.
        context_key: As for `build_agent`: it signs turns that wait.

    Raises:
        ConfigurationError: The phases of the pipeline never reach an end, or the model cannot be
            used.
    """
    fields = {"limits": limits, "prices": prices}
    set_fields = {name: value for name, value in fields.items() if value is not None}
    team = pipeline_team(agent, model=model, **set_fields)
    return build_agent(team, base_url=base_url, context_key=context_key)


def pipeline_team(
    agent: type[BaseAgent], *, model: BaseChatModel | str | None = None, **fields: Any
) -> Team:
    """The team of a pipeline alone, without a host.

    Args:
        agent: The class of the pipeline's main agent.
        model: The model behind `agent.ai_adapter`.
        fields: Other fields of the team.
    """
    name = agent.__name__
    walker = Specialist(name, "Walks the pipeline.", pipeline=agent, unit_model=model)
    return Team([walker], name=name, **fields)
