"""The phases of an agent as a graph of LangGraph, one node for each.

Nodes of the main thread do its phases. Those of sub-threads are drawn below the phase that starts
them, whose agent walks them in every form of a pipeline: in a plan, in a session and alone.
"""
# LangGraph leaves some type arguments of StateGraph open, so its methods read as partly unknown.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from replan.state.pipeline.threads import COMPLETED
from replan.threads.phases.agent_and_handler import StateHandler
from replan.threads.turns.main_turn import Turn

turn_at_work: ContextVar[Turn] = ContextVar("replan_turn")
"""The turn that the nodes of a graph take; its thread determines what is next."""

PhaseGraph = CompiledStateGraph[Any, Any, Any, Any]


class Walk(TypedDict):
    """Where a turn is."""

    phase: str  # the phase that works next; empty if nothing is left to do


def phase_graph(
    name: str, handlers: Mapping[str, StateHandler], inner: Mapping[str, PhaseGraph]
) -> PhaseGraph:
    """Put the phases of an agent together, with the graphs of the sub-threads that they start."""
    graph: StateGraph[Walk] = StateGraph(Walk)
    # LangGraph draws no two graphs inside nodes of one name, wherever these are.
    nodes = {phase: f"{name}.{phase}" if phase in inner else phase for phase in handlers}
    for phase, handler in handlers.items():
        graph.add_node(nodes[phase], _node(phase, inner.get(phase)))
        ways = {nodes[each] for each in handler.following if each != COMPLETED}
        graph.add_conditional_edges(nodes[phase], _way(nodes, ways), [*sorted(ways), END])
    graph.add_conditional_edges(START, _way(nodes, set(nodes.values())), [*nodes.values(), END])
    return graph.compile(name=name)


def _node(phase: str, inner: PhaseGraph | None) -> Any:
    async def work(_: Walk) -> Walk:
        turn = turn_at_work.get()
        while turn.phase == phase:
            await turn.step()
        return {"phase": turn.phase or ""}

    async def work_with_sub_thread(walk: Walk) -> Walk:
        # LangGraph finds here that a sub-thread belongs to the phase, and draws it.
        return await work(walk) if inner is not None else walk

    return work if inner is None else work_with_sub_thread


def _way(nodes: Mapping[str, str], ways: set[str]) -> Callable[[Walk], str]:
    def way(walk: Walk) -> str:
        node = nodes.get(walk["phase"], END)
        return node if node in ways else END

    return way
