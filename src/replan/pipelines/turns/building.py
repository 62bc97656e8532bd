"""A pipeline built once: its phases checked at every level, and assembled as a graph."""
# LangGraph leaves some type arguments of StateGraph open, so its methods read as partly unknown.
# pyright: reportUnknownMemberType=false

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypedDict
from weakref import WeakSet

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from replan.base.errors import ConfigurationError
from replan.pipelines.phases.agent_and_handler import BaseAgent, StateHandler
from replan.pipelines.sub_threads.sub_thread_agent import SubThreadAgent
from replan.pipelines.sub_threads.sub_thread_handlers import sub_thread_agent_of
from replan.pipelines.turns.main_turn import MainTurn
from replan.ports.run_context import here
from replan.state.pipeline.threads import COMPLETED

PhaseGraph = CompiledStateGraph[Any, Any, Any, Any]


class Walk(TypedDict):
    """Where a turn is."""

    phase: str  # the phase that works next; empty if nothing is left to do


def phase_graph(
    name: str, handlers: Mapping[str, StateHandler], inner: Mapping[str, PhaseGraph]
) -> PhaseGraph:
    """Make one node for each phase of an agent, which does the phase.

    Phases of sub-threads are drawn below the phase that starts them, whose agent walks them.
    """
    graph: StateGraph[Walk] = StateGraph(Walk)
    # LangGraph draws no two graphs inside nodes of one name, wherever these are.
    nodes = {phase: f"{name}.{phase}" if phase in inner else phase for phase in handlers}
    for phase, handler in handlers.items():
        graph.add_node(nodes[phase], _node(phase, inner.get(phase)))
        ways = {nodes[phase] for phase in handler.following if phase != COMPLETED}
        graph.add_conditional_edges(nodes[phase], _next_node_of(nodes, ways), [*sorted(ways), END])
    graph.add_conditional_edges(
        START, _next_node_of(nodes, set(nodes.values())), [*nodes.values(), END]
    )
    return graph.compile(name=name)


def _node(phase: str, inner: PhaseGraph | None) -> Any:
    async def work(_: Walk) -> Walk:
        turn = here().turn
        if not isinstance(turn, MainTurn):
            raise TypeError("a phase is at work without a turn")
        while turn.phase == phase:
            await turn.step()
        return {"phase": turn.phase or ""}

    async def work_with_sub_thread(walk: Walk) -> Walk:
        # LangGraph finds here that a sub-thread belongs to the phase, and draws it.
        return await work(walk) if inner is not None else walk

    return work if inner is None else work_with_sub_thread


def _next_node_of(nodes: Mapping[str, str], ways: set[str]) -> Callable[[Walk], Awaitable[str]]:
    # LangGraph would hand a function that is not async to a thread.
    async def way(walk: Walk) -> str:
        node = nodes.get(walk["phase"], END)
        return node if node in ways else END

    return way


_DEEPEST = 20

_checked: WeakSet[type[BaseAgent]] = WeakSet()


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
    if agent not in _checked:
        await _built(agent, (), agent.__name__)
        _checked.add(agent)


async def _built(agent: type[BaseAgent], above: tuple[type[BaseAgent], ...], name: str) -> Pipeline:
    if agent in above or len(above) >= _DEEPEST:
        levels = " -> ".join(level.__name__ for level in (*above, agent))
        problem, fix = "its sub-threads have no end", "Let the deepest level start none."
        raise ConfigurationError(f"{above[0].__name__}.sub_thread_agent", levels, problem, fix)
    made = await agent.create()
    inner: dict[str, Pipeline] = {}
    for phase, handler in made.state_handlers.items():
        if (below := sub_thread_agent_of(handler)) is not None:
            inner[phase] = await _built(below, (*above, agent), f"{name}.{phase}")
    graphs = {phase: pipeline.graph for phase, pipeline in inner.items()}
    graph = phase_graph(name, made.state_handlers, graphs)
    return Pipeline(agent, graph, _most_calls(agent, made.state_handlers, inner))


def _most_calls(
    agent: type[BaseAgent], handlers: "dict[str, Any]", inner: dict[str, Pipeline]
) -> int:
    if issubclass(agent, SubThreadAgent):
        dearest = max([agent.calls_of_unit, *(pipeline.most_calls for pipeline in inner.values())])
        return agent.max_units * dearest
    return sum(inner[phase].most_calls if phase in inner else 1 for phase in handlers)
