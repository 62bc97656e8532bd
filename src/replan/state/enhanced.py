"""The typed state of the graph: one key for everything that a run knows."""

from typing import Annotated, Any

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.types import Overwrite
from pydantic import Field, JsonValue

# pydantic makes no schema of the TypedDict of Python 3.11.
from typing_extensions import TypedDict

from replan.plan.model import PlanUpdate, TaskPlan
from replan.state.channels import (
    Checked,
    CheckedDelta,
    Conversation,
    Largest,
    appended,
    conversation,
    latest,
    merged,
)
from replan.state.generations import Generation
from replan.state.limits import LimitHit, RunSettings
from replan.state.patches import PlanChannel, patched
from replan.state.questions import Approval, Decision, Question
from replan.state.results import (
    Assignment,
    CollectedResults,
    ExecutionContext,
    ExecutionRecord,
    FeedbackResult,
    Outcome,
    SpecialistResult,
    ThinkingResult,
    UnreadableReply,
)
from replan.state.usage import Usage


class GraphInput(TypedDict, total=False):
    """What a caller hands to the graph.

    Keys:
        messages: The conversation, the request last.
        plan: A plan document in Markdown; it is run as it is, without planning.
        answers: Answers to questions that the run will ask, by the questions' keys.
    """

    messages: Annotated[
        list[AnyMessage],
        Conversation(conversation),
        Field(description="The conversation; the request is the last message."),
    ]
    plan: Annotated[
        str | None, Checked, Field(description="A plan document (Markdown) to run as it is.")
    ]
    answers: Annotated[
        dict[str, JsonValue] | None,
        Checked,
        Field(description="Answers to questions that the run will ask, by the questions' keys."),
    ]


class EnhancedState(GraphInput, total=False):
    """Everything that a run knows; the first four keys outlive it, the others belong to one run.

    Keys:
        messages: The conversation of the thread, answers included.
        thinking_history: What the host thought, one entry a run.
        execution_history: The rounds of all runs.
        unreadable_replies: Replies that could not be read, and what was done instead.
        run_id: The run.
        settings: What the run may do, resolved once.
        max_rounds: The bound of `current_round`.
        current_round: Counted from 1; 0 before there is a plan.
        stalls: Rounds in a row that finished no step.
        event_seq: The number of the newest event.
        is_simple_task: Whether the request was answered without a plan.
        is_completed: Whether the run is over.
        outcome: How it ended.
        limit_reached: The limit that ended the run; `reply_length` or `content_filter` where its
            answer is not whole; or empty.
        warnings: What the run told that a person may not expect, a sentence each.
        limit_hits: The limits that kept steps from being done, newest by the key of a result.
        final_answer: The answer.
        current_thinking_result: The newest thinking.
        current_plan: The plan; nodes write what changed of it.
        plan_history: The revisions of the plan.
        approval: The plan that waits for a person's decision, and why.
        decision: What a person decided about a plan last.
        current_execution: The context of the step that leads the round, without the conversation.
        dispatched: Every step and specialist that the round sends.
        current_specialist_results: The newest result by `"<step id>/<specialist>"`, whole.
        generations: How often each step was settled before; one that never was is left out.
        kept_from: The run that has the whole results of the plan that was handed in, or empty.
        kept_results: Whole results of an earlier run, of steps whose document has an excerpt.
        questions: What the steps asked, and the answers, by `"<step id>/<specialist>/<ordinal>"`.
        current_collected_results: The digest of the newest round.
        current_feedback_result: The judgement of the newest round.
        usage: Model calls and tokens of the run.
    """

    thinking_history: Annotated[list[ThinkingResult], CheckedDelta(appended)]
    execution_history: Annotated[list[ExecutionRecord], CheckedDelta(appended)]
    unreadable_replies: Annotated[list[UnreadableReply], CheckedDelta(appended)]
    run_id: Annotated[str, Checked]
    settings: Annotated[RunSettings, Checked]
    max_rounds: Annotated[int, Checked]
    current_round: Annotated[int, Checked]
    stalls: Annotated[int, Checked]
    event_seq: Annotated[int, Largest(int, max)]
    is_simple_task: Annotated[bool, Checked]
    is_completed: Annotated[bool, Checked]
    outcome: Annotated[Outcome | None, Checked]
    limit_reached: Annotated[str, Checked]
    warnings: Annotated[list[str], CheckedDelta(appended)]
    limit_hits: Annotated[dict[str, LimitHit], CheckedDelta(merged)]
    final_answer: Annotated[AIMessage | None, CheckedDelta(latest)]
    current_thinking_result: Annotated[ThinkingResult | None, CheckedDelta(latest)]
    current_plan: Annotated[TaskPlan | None, PlanChannel(patched)]
    plan_history: Annotated[list[PlanUpdate], CheckedDelta(appended)]
    approval: Annotated[Approval | None, CheckedDelta(latest)]
    decision: Annotated[Decision | None, CheckedDelta(latest)]
    current_execution: Annotated[ExecutionContext | None, CheckedDelta(latest)]
    dispatched: Annotated[list[Assignment], CheckedDelta(latest)]
    current_specialist_results: Annotated[dict[str, SpecialistResult], CheckedDelta(merged)]
    generations: Annotated[dict[int, Generation], CheckedDelta(merged)]
    kept_from: Annotated[str, Checked]
    kept_results: Annotated[dict[str, SpecialistResult], CheckedDelta(merged)]
    questions: Annotated[dict[str, Question], CheckedDelta(merged)]
    current_collected_results: Annotated[CollectedResults | None, CheckedDelta(latest)]
    current_feedback_result: Annotated[FeedbackResult | None, CheckedDelta(latest)]
    usage: Annotated[Usage, Checked]


def settings_of(state: EnhancedState) -> RunSettings:
    """What the run may do; `think` resolves it before anything else."""
    return state["settings"] if "settings" in state else RunSettings()


def rounds_of(state: EnhancedState) -> int:
    """The bound of the run's rounds."""
    known = state.get("max_rounds")
    return settings_of(state).limits.max_rounds if known is None else known


def fresh_run(run_id: str, settings: RunSettings) -> dict[str, Any]:
    """The update that starts a run on a thread: per-run keys anew, the histories kept."""
    return {
        "run_id": run_id,
        "settings": settings,
        "max_rounds": settings.limits.max_rounds,
        "current_round": 0,
        "stalls": 0,
        "event_seq": Overwrite(0),
        "is_simple_task": False,
        "is_completed": False,
        "outcome": None,
        "limit_reached": "",
        "warnings": Overwrite([]),
        "limit_hits": Overwrite({}),
        "final_answer": None,
        "current_plan": None,
        "plan_history": Overwrite([]),
        "approval": None,
        "decision": None,
        "current_execution": None,
        "dispatched": [],
        "current_specialist_results": Overwrite({}),
        "generations": Overwrite({}),
        "kept_from": "",
        "kept_results": Overwrite({}),
        "questions": Overwrite({}),
        "current_collected_results": None,
        "current_feedback_result": None,
        "usage": Usage(),
        "plan": None,
        "answers": None,
    }
