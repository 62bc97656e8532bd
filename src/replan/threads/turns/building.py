"""A pipeline built once: its phases checked at every level, and assembled as a graph."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from replan.errors import ConfigurationError
from replan.threads.phases.agent_and_handler import BaseAgent
from replan.threads.sub_threads.sub_thread_agent import SubThreadAgent
from replan.threads.sub_threads.sub_thread_handlers import sub_thread_agent_of
from replan.threads.turns.phase_graph import PhaseGraph, phase_graph

_DEEPEST = 20

_walked: WeakSet[type[BaseAgent]] = WeakSet()


@dataclass(frozen=True)
class Pipeline:
    """A pipeline that can be walked."""

    agent: type[BaseAgent]  # the class of its main agent
    graph: PhaseGraph  # its phases, with those of its sub-threads
    most_calls: int  # the most model calls of one request, if each unit makes as many as it says


def built_pipeline(agent: type[BaseAgent], name: str = "") -> Pipeline:
    """Build a pipeline, from synchronous code, too.

    Args:
        agent: The class of its main agent.
        name: What tells its graph from those of other pipelines; by default the agent's name.

    Raises:
        ConfigurationError: Phases of a level cannot be walked, or levels have no end.
    """
    # In a loop of its own, whether or not one runs here.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _built(agent, (), name or agent.__name__)).result()


async def check_levels(agent: type[BaseAgent]) -> None:
    """Check a pipeline as `built_pipeline` does, once.

    Raises:
        ConfigurationError: Phases of a level cannot be walked, or levels have no end.
    """
    if agent not in _walked:
        await _built(agent, (), agent.__name__)
        _walked.add(agent)


async def _built(agent: type[BaseAgent], above: tuple[type[BaseAgent], ...], name: str) -> Pipeline:
    if agent in above or len(above) >= _DEEPEST:
        levels = " -> ".join(each.__name__ for each in (*above, agent))
        problem, fix = "its sub-threads have no end", "Let the deepest level start none."
        raise ConfigurationError(f"{above[0].__name__}.sub_thread_agent", levels, problem, fix)
    made = await agent.create()
    inner: dict[str, Pipeline] = {}
    for phase, handler in made.state_handlers.items():
        if (below := sub_thread_agent_of(handler)) is not None:
            inner[phase] = await _built(below, (*above, agent), f"{name}.{phase}")
    graphs = {phase: each.graph for phase, each in inner.items()}
    graph = phase_graph(name, made.state_handlers, graphs)
    return Pipeline(agent, graph, _most_calls(agent, made.state_handlers, inner))


def _most_calls(
    agent: type[BaseAgent], handlers: "dict[str, Any]", inner: dict[str, Pipeline]
) -> int:
    if issubclass(agent, SubThreadAgent):
        dearest = max([agent.calls_of_unit, *(each.most_calls for each in inner.values())])
        return agent.max_units * dearest
    return sum(inner[phase].most_calls if phase in inner else 1 for phase in handlers)
