"""The typed state of the graph: one key for everything that a run knows."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_type_hints

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.types import Overwrite
from pydantic import ConfigDict, JsonValue

# pydantic makes no schema of the TypedDict of Python 3.11.
from typing_extensions import TypedDict

from replan.base.values import described
from replan.plan.model import Author, PlanUpdate, TaskPlan
from replan.state.changed_steps import PlanChannel, after_writes
from replan.state.channels import (
    Checked,
    CheckedDelta,
    Conversation,
    appended,
    conversation,
    latest,
    merged,
)
from replan.state.knowledge import Knowledge
from replan.state.limits import LimitHit, RunSettings
from replan.state.options import Summary
from replan.state.outcomes import Outcome
from replan.state.questions import Decision, Question, still_asked
from replan.state.results import (
    Assignment,
    CollectedResults,
    ExecutionContext,
    ExecutionRecord,
    FeedbackResult,
    Generation,
    SpecialistResult,
    ThinkingResult,
    UnreadableReply,
)
from replan.state.usage import Usage

_DEFAULTS = RunSettings()

PlanAuthor = Literal["model", "person"]
"""Who wrote a plan that is handed in."""


@dataclass(frozen=True)
class PerRun:
    """Marks a key of the state that belongs to one run."""

    first: Any  # its value when a run begins


class GraphInput(TypedDict, total=False):
    """What a caller hands to the graph.

    Keys:
        messages: The conversation; the request is the last message.
        plan: A plan document (Markdown) to run as it is.
        plan_by: Who wrote it. A `model`'s plan is treated as the host's own: it needs the same
            approval, and its marks, results, retries of unsafe work and longer times do not count.
            By default it is a `person`'s.
        answers: Answers to questions that the run will ask, by the questions' keys.
    """

    __pydantic_config__ = ConfigDict(json_schema_extra=described)  # type: ignore[misc] - pydantic's way

    messages: Annotated[list[AnyMessage], Conversation(conversation)]
    plan: Annotated[str | None, Checked, PerRun(None)]
    plan_by: Annotated[PlanAuthor | None, Checked, PerRun(None)]
    answers: Annotated[dict[str, JsonValue] | None, Checked, PerRun(None)]


class EnhancedState(GraphInput, total=False):
    """Everything that a run knows; keys without `PerRun` outlive it.

    Keys:
        messages: The conversation of the thread, answers included.
        plan: The plan document that was handed in.
        plan_by: Who wrote the document that was handed in; None means a person.
        answers: Answers that were handed in, by the keys of the questions that they are for.
        thinking_history: The host's judgements of requests, one for each run.
        execution_history: The rounds of all runs.
        unreadable_replies: Replies that could not be read, and what was done instead.
        memory_summary: The summary of the beginning of the conversation, if there is one.
        previous_plan: The unfinished plan of an earlier run of the thread, until `think` is over.
        run_id: The run.
        settings: The settings of the run, resolved once.
        max_rounds: The bound of `current_round`.
        current_round: Counted from 1; 0 before there is a plan.
        stalls: Rounds in a row that finished no step.
        is_simple_task: Whether the request was answered without a plan.
        is_completed: Whether the run is over.
        outcome: How it ended.
        limit_reached: The limit that ended the run; `reply_length`, `unfinished_reply` or
            `content_filter` if its answer is incomplete, `no_answer` without one; or empty.
        warnings: What happened that a person may not expect, one sentence each.
        limit_hits: The limits that stopped steps, the newest by the key of a result.
        final_answer: The answer.
        output: The answer's value, if the host has an `output_type`.
        current_thinking_result: The newest thinking.
        current_plan: The plan; nodes write only changes.
        plan_author: Who wrote the plan, before it was revised.
        plan_history: The revisions of the plan.
        approval: The question whether the plan may run, while it waits for a person's decision.
        decision: The last decision of a person about a plan.
        current_execution: The context of the step that leads the round, without the conversation.
        dispatched: Every step and specialist that the round sends.
        current_specialist_results: The newest whole results by `"<step id>/<specialist>"`.
        generations: How often each step was settled before; steps that never were are omitted.
        source_run_id: The run that has the whole results of the plan that was handed in, or empty.
        carried_results: Whole results of an earlier run, for steps with an excerpt in the document.
        questions: The questions of steps, with answers, by `"<step id>/<specialist>/<ordinal>"`.
        current_collected_results: The digest of the newest round.
        current_feedback_result: The judgement of the newest round.
        knowledge: The knowledge that was found for the request.
        usage: Model calls, tokens and money of the run.
    """

    __pydantic_config__ = ConfigDict(json_schema_extra=described)  # type: ignore[misc] - pydantic's way

    thinking_history: Annotated[list[ThinkingResult], CheckedDelta(appended)]
    execution_history: Annotated[list[ExecutionRecord], CheckedDelta(appended)]
    unreadable_replies: Annotated[list[UnreadableReply], CheckedDelta(appended)]
    memory_summary: Annotated[Summary | None, CheckedDelta(latest)]
    previous_plan: Annotated[str, Checked, PerRun("")]
    run_id: Annotated[str, Checked, PerRun("")]
    settings: Annotated[RunSettings, Checked, PerRun(_DEFAULTS)]
    max_rounds: Annotated[int, Checked, PerRun(0)]
    current_round: Annotated[int, Checked, PerRun(0)]
    stalls: Annotated[int, Checked, PerRun(0)]
    is_simple_task: Annotated[bool, Checked, PerRun(first=False)]
    is_completed: Annotated[bool, Checked, PerRun(first=False)]
    outcome: Annotated[Outcome | None, Checked, PerRun(None)]
    limit_reached: Annotated[str, Checked, PerRun("")]
    warnings: Annotated[list[str], CheckedDelta(appended), PerRun([])]
    limit_hits: Annotated[dict[str, LimitHit], CheckedDelta(merged), PerRun({})]
    final_answer: Annotated[AIMessage | None, CheckedDelta(latest), PerRun(None)]
    output: Annotated[JsonValue, CheckedDelta(latest), PerRun(None)]
    current_thinking_result: Annotated[ThinkingResult | None, CheckedDelta(latest), PerRun(None)]
    current_plan: Annotated[TaskPlan | None, PlanChannel(after_writes), PerRun(None)]
    plan_author: Annotated[Author, Checked, PerRun("model")]
    plan_history: Annotated[list[PlanUpdate], CheckedDelta(appended), PerRun([])]
    approval: Annotated[Question | None, CheckedDelta(latest), PerRun(None)]
    decision: Annotated[Decision | None, CheckedDelta(latest), PerRun(None)]
    current_execution: Annotated[ExecutionContext | None, CheckedDelta(latest), PerRun(None)]
    dispatched: Annotated[list[Assignment], CheckedDelta(latest), PerRun([])]
    current_specialist_results: Annotated[
        dict[str, SpecialistResult], CheckedDelta(merged), PerRun({})
    ]
    generations: Annotated[dict[int, Generation], CheckedDelta(merged), PerRun({})]
    source_run_id: Annotated[str, Checked, PerRun("")]
    carried_results: Annotated[dict[str, SpecialistResult], CheckedDelta(merged), PerRun({})]
    questions: Annotated[dict[str, Question], CheckedDelta(merged), PerRun({})]
    current_collected_results: Annotated[
        CollectedResults | None, CheckedDelta(latest), PerRun(None)
    ]
    current_feedback_result: Annotated[FeedbackResult | None, CheckedDelta(latest), PerRun(None)]
    knowledge: Annotated[Knowledge | None, CheckedDelta(latest), PerRun(None)]
    usage: Annotated[Usage, Checked, PerRun(Usage())]


def settings_of(state: EnhancedState) -> RunSettings:
    """What the run may do; `begin` resolves it before anything else."""
    return state.get("settings", _DEFAULTS)


def rounds_of(state: EnhancedState) -> int:
    max_rounds = state.get("max_rounds")
    return settings_of(state).limits.max_rounds if max_rounds is None else max_rounds


def plan_of(state: EnhancedState) -> TaskPlan:
    """The plan of the run; an empty one before it has a plan."""
    return state.get("current_plan") or _no_plan()


@cache
def _no_plan() -> TaskPlan:
    return TaskPlan()


def with_history(plan: TaskPlan, state: EnhancedState) -> TaskPlan:
    """The plan with its revisions: a run keeps them apart from it, so that each is stored once."""
    history = tuple(state.get("plan_history", []))
    return plan if history == plan.update_history else plan.replace(update_history=history)


def without_history(plan: TaskPlan) -> TaskPlan:
    """The plan as the state holds it while a run continues."""
    return plan.replace(update_history=()) if plan.update_history else plan


def new_version(
    new: TaskPlan, old: TaskPlan, state: EnhancedState, asked: Collection[str] = ()
) -> EnhancedState:
    """The update for a revised plan: its new revisions, and without questions that it answers.

    Steps that began with it have `asked` the questions with these keys.
    """
    update: EnhancedState = {
        "current_plan": without_history(new),
        "plan_history": [*new.update_history[len(old.update_history) :]],
    }
    questions = state.get("questions", {})
    kept = still_asked(questions, old, new, asked)
    if kept != questions:
        update["questions"] = Overwrite(kept)  # pyright: ignore[reportGeneralTypeIssues]
    return update


def fresh_run(run_id: str, settings: RunSettings) -> dict[str, Any]:
    """The update that starts a run on a thread: the keys of one run again, the histories kept."""
    named = {"run_id": run_id, "settings": settings, "max_rounds": settings.limits.max_rounds}
    return {**_resets(), **named}


@cache
def first_values() -> dict[str, Any]:
    """What the keys of one run hold before it begins."""
    return {key: each.first for key, (_, each) in _marks_of_runs().items()}


@cache
def _resets() -> dict[str, Any]:
    return {
        key: each.first if Checked in marks else Overwrite(each.first)
        for key, (marks, each) in _marks_of_runs().items()
    }


def _marks_of_runs() -> dict[str, tuple[tuple[Any, ...], PerRun]]:
    """The marks of the keys that belong to one run, and the one that says so."""
    hints = get_type_hints(EnhancedState, include_extras=True)
    marks = {key: getattr(kind, "__metadata__", ()) for key, kind in hints.items()}
    return {
        key: (each, mark)
        for key, each in marks.items()
        for mark in each
        if isinstance(mark, PerRun)
    }
