"""The forks of the graph: pure and total functions of the state."""

from typing import Literal

from langchain_core.runnables import RunnableConfig
from langgraph.types import Send

from replan.nodes.superstep import argument
from replan.state.enhanced import EnhancedState
from replan.state.results import TaskComplexity


def complexity_branch(state: EnhancedState) -> Literal["direct_answer", "plan_creation"]:
    """A simple request, or one that was not judged, is answered; every other gets a plan."""
    thinking = state.get("current_thinking_result")
    if thinking is None or thinking.complexity is TaskComplexity.SIMPLE:
        return "direct_answer"
    return "plan_creation"


def specialist_branch(
    state: EnhancedState, config: RunnableConfig
) -> list[Send] | Literal["result_collector"]:
    """Every step of the round goes to its specialists at once; without one, to the collector."""
    return [
        Send(specialist_node(assignment.specialist), argument(assignment, state, config))
        for assignment in state.get("dispatched", [])
    ] or "result_collector"


def reflection_branch(state: EnhancedState) -> Literal["plan_update", "final_answer"]:
    """Another round if the judgement says so; a missing judgement ends the run."""
    judged = state.get("current_feedback_result")
    return "plan_update" if judged is not None and judged.should_continue else "final_answer"


def specialist_node(name: str) -> str:
    """The name of a specialist's node."""
    return f"specialist_{name}"
