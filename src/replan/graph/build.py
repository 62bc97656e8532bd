r"""The graph, top to bottom.

```
START -> begin -> think -> [complexity_branch] -> direct_answer -> END, or summarise
                                              \-> plan_creation -> [approval_branch]
[approval_branch] -> plan_execution
                 \-> plan_approval -> [decision_branch] -> plan_execution
                                                       |-> plan_update
                                                       \-> final_answer
plan_execution -> [specialist_branch] -> specialist_<name> (one node each) -> result_collector
                                     \-> user_input -> plan_execution
result_collector -> feedback -> [reflection_branch] -> plan_update -> [approval_branch]
                                                   \-> final_answer -> END, or summarise
summarise -> END
```
"""
# LangGraph leaves some type arguments of StateGraph open, so its methods read as partly unknown,
# and declares no node that takes both the runtime and the configuration, though it runs them.
# pyright: reportUnknownMemberType=false, reportArgumentType=false, reportCallIssue=false

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from replan.base.values import texts_of
from replan.graph.branches import (
    approval_branch,
    complexity_branch,
    decision_branch,
    is_summary_due,
    reflection_branch,
    specialist_branch,
    specialist_node,
)
from replan.graph.in_one import Way, in_one
from replan.nodes.begin import begin
from replan.nodes.direct_answer import direct_answer
from replan.nodes.feedback import feedback
from replan.nodes.final_answer import final_answer
from replan.nodes.host.new_settings import Node
from replan.nodes.plan_approval import plan_approval
from replan.nodes.plan_creation import plan_creation
from replan.nodes.plan_execution import plan_execution
from replan.nodes.plan_update import plan_update
from replan.nodes.result_collector import result_collector
from replan.nodes.specialist import specialist
from replan.nodes.summarise import summarise
from replan.nodes.think import think
from replan.nodes.user_input import user_input
from replan.ports.specialist_port import SpecialistPort
from replan.prompts.host import HostPrompts
from replan.specialists.services import Services
from replan.specialists.steps.board import Boards, Sent
from replan.state.enhanced import EnhancedState, GraphInput
from replan.state.limits import RunSettings

HostGraph = StateGraph[EnhancedState, RunSettings, GraphInput, EnhancedState]


Seen = Literal["always", "answered", "at_rest", "never"]
"""When a thread's state is seen.

After each node; but for the judgement with which the answer came (`answered`); when its work rests;
or not at all.
"""


def host_graph(services: Services, *, seen: Seen = "always") -> HostGraph:
    """Put the graph together: nodes in running order, then edges in running order.

    Args:
        services: The live things.
        seen: When the state is seen; the less, the more nodes run in one super-step.
    """
    # No output schema: a server filters what Studio shows by it.
    graph: HostGraph = StateGraph(EnhancedState, RunSettings, input_schema=GraphInput)
    specialists = {card.name: specialist_node(card.name) for card in services.team}

    def bound(node: Node, **more: Any) -> Node:
        return partial(node, services=services, **more)

    def last(node: Node) -> Node:
        return _with_summary(bound(node), services.prompts)

    behind = ("summarise", END)
    one = _in_one(graph, services, seen)
    leaves = ("plan_approval", *specialists.values(), *_ENTRIES[1:], *behind)

    def add(name: str, node: Node) -> None:
        drawn: dict[str, Any] = {"destinations": leaves} if name in one else {}
        graph.add_node(name, one.get(name, bound(node)), **drawn)

    add("begin", begin)
    add("think", think)
    graph.add_node("direct_answer", last(direct_answer), destinations=behind)
    add("plan_creation", plan_creation)
    graph.add_node("plan_approval", bound(plan_approval))
    graph.add_node("plan_execution", bound(plan_execution))
    add("user_input", user_input)
    boards = Boards()
    for card in services.team:
        graph.add_node(
            specialists[card.name],
            _drawn_with_its_graph(
                bound(specialist, boards=boards), services.specialists[card.name]
            ),
            metadata={"specialist": card.name, "intended_use": card.intended_use},
        )
    add("result_collector", result_collector)
    add("feedback", feedback)
    add("plan_update", plan_update)
    graph.add_node("final_answer", last(final_answer), destinations=behind)
    graph.add_node("summarise", bound(summarise))
    _add_edges(graph, list(specialists.values()), one)
    for key, text in texts_of(EnhancedState).items():
        cast("Any", graph.channels[key]).text = text
    return graph


_ENTRIES = ("begin", "user_input", "result_collector")
"""The nodes at which a super-step begins in a team without a host."""

_ASKING = ("think", "plan_creation", "feedback", "plan_update")
"""The nodes that ask a model, but for the answer where there is one."""


def _in_one(graph: HostGraph, services: Services, seen: Seen) -> dict[str, Node]:
    """The nodes that go on as far as they can in their own super-step.

    Without a host, no model is asked between them. Where the state is seen at rest, a super-step
    asks a model once, so that a failure leaves what was asked before it; and `begin` is not in the
    one that asks first, so that a turn can continue whose first call failed or was stopped.
    """
    if seen == "always" and not services.is_direct:
        return {}

    async def after_answer(state: EnhancedState, _: RunnableConfig) -> str:
        return "summarise" if is_summary_due(state, {}, services.prompts) else END

    ways: dict[str, tuple[Node, Way]] = {
        "begin": (begin, _to("think")),
        "think": (think, _by(complexity_branch)),
        "direct_answer": (direct_answer, after_answer),
        "plan_creation": (plan_creation, _by(approval_branch)),
        "plan_execution": (plan_execution, specialist_branch),
        "result_collector": (result_collector, _to("feedback")),
        "feedback": (feedback, _by(reflection_branch)),
        "plan_update": (plan_update, _by(approval_branch)),
        "final_answer": (final_answer, after_answer),
    }
    entries, asking, steps = _ENTRIES, (), dict[str, Node]()
    if services.is_direct:
        ways["user_input"] = (user_input, _to("plan_execution"))
    elif seen == "answered":
        entries = asking = ("think",)
        ways = {name: ways[name] for name in ("think", "direct_answer")}
        ways = {name: (node, _before_asking(way, services)) for name, (node, way) in ways.items()}
    elif seen == "at_rest":
        entries, asking = (*_ENTRIES[1:], *_ASKING), _ASKING
        ways = {name: (node, _before_asking(way, services)) for name, (node, way) in ways.items()}
    if seen == "never":
        names = (card.name for card in services.team)
        steps = {specialist_node(name): partial(specialist, services=services) for name in names}
    stages = {name: (partial(node, services=services), way) for name, (node, way) in ways.items()}
    channels = cast("Any", graph.channels)
    return {
        name: in_one(name, asking, stages, channels, steps) for name in entries if name in stages
    }


def _before_asking(way: Way, services: Services) -> Way:
    """The same way, which ends the super-step where an answer has to be asked for."""

    async def ending(state: EnhancedState, config: RunnableConfig) -> Any:
        following = await way(state, config)
        judged = state.get("current_feedback_result")
        answer = judged and judged.final_answer
        answer = state.get("final_answer") if following == "direct_answer" else answer
        is_there = answer is not None and services.output is None
        is_answer = following in ("direct_answer", "final_answer")
        return [following] if is_answer and not is_there else following

    return ending


def _to(node: str) -> Way:
    async def way(_: EnhancedState, __: RunnableConfig) -> str:
        return node

    return way


def _by(branch: Callable[[EnhancedState], Awaitable[str]]) -> Way:
    async def way(state: EnhancedState, _: RunnableConfig) -> str:
        return await branch(state)

    return way


def _with_summary(node: Node, host: HostPrompts) -> Node:
    """Let a node that ends the run go on to the summary if it is due.

    A branch of LangGraph's would copy all channels of the state for each run.
    """

    async def ending(
        state: EnhancedState, runtime: Runtime[RunSettings], config: RunnableConfig
    ) -> EnhancedState | Command[Any]:
        update = await node(state, runtime=runtime, config=config)
        return (
            Command(update=update, goto="summarise")
            if is_summary_due(state, update, host)
            else update
        )

    return ending


def _drawn_with_its_graph(node: Node, specialist: SpecialistPort) -> Node:
    """Return the node of a specialist; one that is a graph is drawn, since it is found inside."""
    graph = getattr(specialist, "graph", None)
    if graph is None:
        return node

    async def work(
        sent: Sent, runtime: Runtime[RunSettings], config: RunnableConfig
    ) -> EnhancedState:
        return await node(sent, runtime, config) if graph else {}

    return work


_BEHIND = {"begin": "think", "user_input": "plan_execution", "result_collector": "feedback"}
_FORKS = {
    "think": complexity_branch,
    "plan_creation": approval_branch,
    "plan_approval": decision_branch,
    "feedback": reflection_branch,
    "plan_update": approval_branch,
}


def _add_edges(graph: HostGraph, specialists: list[str], one: Collection[str]) -> None:
    """Add the edges; what goes on in its own super-step has none."""
    graph.add_edge(START, "begin")
    for node, following in (*_BEHIND.items(), ("summarise", END)):
        if node not in one:
            graph.add_edge(node, following)
    for node, branch in _FORKS.items():
        if node not in one:
            graph.add_conditional_edges(node, branch)
    graph.add_conditional_edges(
        "plan_execution",
        specialist_branch,
        [*specialists, "user_input", "result_collector"],
    )
    for node in specialists:
        graph.add_edge(node, "result_collector")
