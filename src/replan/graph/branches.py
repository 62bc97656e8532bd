"""The forks of the graph: pure and total functions of the state.

Each reads what its first parameter names: LangGraph reads no more of the state for it.
LangGraph would hand functions that are not async to a thread, which takes longer than they do.
"""

from typing import Literal, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.types import Send

from replan.prompts.host import HostPrompts
from replan.specialists.steps.board import argument
from replan.specialists.steps.on_record import stale_steps
from replan.state.conversation.conversation import is_due_after
from replan.state.enhanced import EnhancedState
from replan.state.questions import Decision, Question
from replan.state.results import FeedbackResult, TaskComplexity, ThinkingResult
from replan.state.rules import open_questions
from replan.state.team import specialist_node


class Thought(TypedDict, total=False):
    """What of the state says whether a request is simple."""

    current_thinking_result: ThinkingResult | None


class Gate(TypedDict, total=False):
    """What of the state says whether a plan waits for a person."""

    approval: Question | None


class Decided(TypedDict, total=False):
    """What of the state says what a person decided."""

    decision: Decision | None
    current_feedback_result: FeedbackResult | None


async def complexity_branch(state: Thought) -> Literal["direct_answer", "plan_creation"]:
    """A simple request, or one that was not judged, is answered; every other gets a plan."""
    thinking = state.get("current_thinking_result")
    if thinking is None or thinking.complexity is TaskComplexity.SIMPLE:
        return "direct_answer"
    return "plan_creation"


async def approval_branch(state: Gate) -> Literal["plan_approval", "plan_execution"]:
    """A plan that waits for a person goes to the gate, every other one is executed."""
    return "plan_execution" if state.get("approval") is None else "plan_approval"


async def decision_branch(
    state: Decided,
) -> Literal["plan_execution", "plan_update", "final_answer"]:
    """A plan that was rejected is planned again or ends the run, every other one is carried out."""
    decision = state.get("decision")
    if decision is None or decision.action != "reject":
        return "plan_execution"
    return _next_node(state.get("current_feedback_result"))


async def specialist_branch(
    state: EnhancedState, config: RunnableConfig
) -> list[Send] | Literal["user_input", "result_collector"]:
    """Send every step of the round to its specialists."""
    # Without one, a person is asked what is open; and if nothing is, the collector is next.
    dispatched = state.get("dispatched", [])
    return [
        Send(specialist_node(assignment.specialist), argument(assignment, state, config))
        for assignment in dispatched
        if not assignment.refused
    ] or ("user_input" if open_questions(state) and not dispatched else "result_collector")


async def reflection_branch(state: EnhancedState) -> Literal["plan_update", "final_answer"]:
    """Start another round if the verdict says so, or if results were edited."""
    judged = state.get("current_feedback_result")
    return "plan_update" if judged is not None and stale_steps(state) else _next_node(judged)


def is_summary_due(state: EnhancedState, update: EnhancedState, host: HostPrompts) -> bool:
    """Whether a summary of the conversation is to be written after the answer."""
    after: EnhancedState = {**state, **update, "messages": state.get("messages", [])}
    return is_due_after(after, update.get("messages", []), host.memory_in(after))


def _next_node(judged: FeedbackResult | None) -> Literal["plan_update", "final_answer"]:
    return "plan_update" if judged is not None and judged.should_continue else "final_answer"
