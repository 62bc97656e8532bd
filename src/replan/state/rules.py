"""The rules above the models: when to continue, when to end, and how it ended.

All are pure functions of the state. A model may end a run early, never late, and never while a
required step can still run.
"""

import math
from collections.abc import Mapping

from replan.plan.dependencies import blocked_steps, ready_steps, steps_left_out, unmet_steps
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.order import run_order
from replan.state.enhanced import EnhancedState, plan_of, rounds_of, settings_of
from replan.state.limits import ClosingReserve, LimitHit, Limits, rounded_up
from replan.state.outcomes import CUTS, Outcome
from replan.state.questions import Question
from replan.state.results import (
    ActionType,
    ExecutionStatus,
    FeedbackResult,
    SpecialistResult,
    newest_results,
    round_results,
)
from replan.state.usage import Usage

MOST_MISSING = 50
"""Undone steps that an answer names one by one."""


def is_final(state: EnhancedState) -> bool:
    """Whether a run ended, and not because of a limit."""
    return bool(state.get("is_completed")) and state.get("limit_reached", "") in ("", *CUTS)


def within_limit(plan: TaskPlan, max_steps: int) -> TaskPlan:
    """The plan's first `max_steps` steps; the others are never started."""
    if plan.total_steps <= max_steps:
        return plan
    return plan.replace(steps=plan.steps[:max_steps])


def runnable_steps(state: EnhancedState) -> tuple[PlanStep, ...]:
    return ready_steps(within_limit(plan_of(state), settings_of(state).limits.max_steps))


def get_current_execution_step(plan: TaskPlan, state: EnhancedState) -> PlanStep | None:
    """The step that leads the running round, as it is in the plan now; None outside a round."""
    execution = state.get("current_execution")
    return None if execution is None else plan.by_id.get(execution.plan_step.id)


def asked_questions(state: EnhancedState) -> list[Question]:
    current = state.get("current_round", 0)
    return [q for q in state.get("questions", {}).values() if q.round == current and q.text]


def open_questions(state: EnhancedState) -> tuple[Question, ...]:
    """The unanswered questions of steps still to be done, by step."""
    questions = state.get("questions", {})
    if not questions:
        return ()
    steps = plan_of(state).by_id
    still_open = (
        question
        for question in questions.values()
        if question.is_open and question.step_id in steps and steps[question.step_id].status.is_open
    )
    return tuple(sorted(still_open, key=lambda question: question.step_id))


def waiting_steps(state: EnhancedState) -> frozenset[int]:
    """The open steps that wait for an answer, and those that wait for such steps."""
    waiting = {question.step_id for question in open_questions(state)}
    if not waiting:
        return frozenset()
    for step in run_order(plan_of(state)):
        if step.status.is_open and not waiting.isdisjoint(step.awaits):
            waiting.add(step.id)
    return frozenset(waiting)


def round_hits(state: EnhancedState) -> dict[str, LimitHit]:
    """The limits that prevented steps of the running round, by key."""
    current = state.get("current_round", 0)
    hits = state.get("limit_hits", {})
    return {key: hit for key, hit in hits.items() if hit.round == current}


def needs_model(state: EnhancedState) -> bool:
    """Whether a round needs judgement: nothing can run, a step failed, or a revision is wished."""
    plan = plan_of(state)
    sent = {assignment.step_id for assignment in state.get("dispatched", [])}
    return (
        not runnable_steps(state)
        or any(step.status is StepStatus.FAILED for step in plan.steps if step.id in sent)
        or any(result.replan_needed for result in round_results(state).values())
        or reached_limit(state) != ""
    )


def may_complete(state: EnhancedState) -> bool:
    """Whether the run may end if the model decides so: no required step can still run."""
    return reached_limit(state) != "" or not any(
        not step.optional for step in runnable_steps(state)
    )


def reached_limit(state: EnhancedState) -> str:
    """The limit that ends the run with work undone, or an empty text."""
    plan = plan_of(state)
    is_settled = not unmet_steps(plan) and not any(plan.open_steps())
    return "" if is_settled else spent_limit(state)


def spent_limit(state: EnhancedState) -> str:
    """The limit that leaves no room for another round, or an empty text."""
    limits = settings_of(state).limits
    plan = plan_of(state)
    usage = state.get("usage", Usage())
    # A step that has its answer may need no call: one for which there is no room is refused.
    is_asking = bool(open_questions(state))
    kept = ClosingReserve() if is_asking else limits.kept
    for hit in round_hits(state).values():
        if limit_value(state, hit.limit) <= hit.value:
            return hit.limit
    spent = {
        "max_stalls": state.get("stalls", 0) >= limits.max_stalls,
        # A round that asked ends with the answers, which need no round of their own.
        "max_rounds": state.get("current_round", 0) >= rounds_of(state) and not is_asking,
        "max_steps": plan.total_steps > limits.max_steps and not runnable_steps(state),
        "max_model_calls": _is_spent(usage.calls, limits.max_model_calls, kept.calls),
        "max_tokens": _is_spent(usage.total_tokens, limits.max_tokens, kept.tokens),
        # What of it is kept depends on prices; a call for which there is no room is refused.
        "max_cost": _is_spent(usage.known_cost, limits.max_cost, 0.0),
    }
    return next((name for name, is_spent in spent.items() if is_spent), "")


def limit_value(state: EnhancedState, limit: str) -> float:
    if limit == "max_rounds":
        return rounds_of(state)
    value = getattr(settings_of(state).limits, limit)
    return math.inf if value is None else value


def why_reached(state: EnhancedState, limit: str) -> str:
    """The figures of a limit that prevented steps of the running round."""
    return next((hit.reason for hit in _hits_at(state, limit) if hit.reason), "")


def least_value(state: EnhancedState, limit: str) -> float:
    """The least value of a limit with which the next call has room; 0 if unknown."""
    usage = state.get("usage", Usage())
    spent = {
        "max_model_calls": usage.calls,
        "max_tokens": usage.total_tokens,
        "max_cost": usage.known_cost,
    }.get(limit, 0.0)
    hits = [hit for hit in _hits_at(state, limit) if hit.wants]
    if limit == "max_model_calls":
        return min((spent + hit.wants + hit.kept for hit in hits), default=0.0)
    # What is kept back grows with the limit, but its share of it does not.
    needs = ((spent + hit.wants) / (1 - hit.kept / hit.value) for hit in hits)
    return min(needs, default=0.0)


def larger_limit(state: EnhancedState) -> str:
    """A value of the limit that ended a run with which it has room; empty where none helps."""
    limit = state.get("limit_reached", "")
    value = limit_value(state, limit) if limit in Limits.model_fields else math.inf
    if value == math.inf:
        return ""
    if limit == "max_steps":
        return f"{max(plan_of(state).total_steps, value):g}"
    return rounded_up(2 * max(value, least_value(state, limit)))


def _hits_at(state: EnhancedState, limit: str) -> list[LimitHit]:
    return [hit for hit in round_hits(state).values() if hit.limit == limit]


def should_continue_execution(feedback_result: FeedbackResult, state: EnhancedState) -> bool:
    """Whether another round follows a judgement."""
    if spent_limit(state):
        return False
    if any(not step.optional for step in runnable_steps(state)):
        return True
    if not may_be_revised(state) and not runnable_steps(state):
        return False
    if not asks_for_revision(feedback_result) and not any(plan_of(state).open_steps()):
        return False
    return feedback_result.should_continue


def asks_for_revision(feedback_result: FeedbackResult) -> bool:
    """Whether a judgement contains another plan, or says what should change."""
    return bool(feedback_result.revised_plan or feedback_result.plan_update_suggestion)


def may_be_revised(state: EnhancedState) -> bool:
    """Whether the plan may change while it runs."""
    return plan_of(state).allow_dynamic_update


def cut_off_by(feedback_result: FeedbackResult, state: EnhancedState) -> str:
    """The limit that prevents a revision that a verdict requests, or empty."""
    wants = asks_for_revision(feedback_result)
    return spent_limit(state) if wants and feedback_result.should_continue else ""


def proposed_in(state: EnhancedState) -> str:
    """One line for each change that the host requested last and that was not made."""
    judged, limit = state.get("current_feedback_result"), state.get("limit_reached", "")
    if judged is None or judged.by == "person" or (may_be_revised(state) and not limit):
        return ""
    done = plan_of(state)
    asked = PlanDocument.recover(judged.revised_plan).plan.steps
    done_steps = {(step.id, step.description) for step in done.steps}
    lines = [
        f"{step.id}. {step.description}"
        for step in asked
        if not step.is_finished and (step.id, step.description) not in done_steps
    ] or [judged.plan_update_suggestion or ("a revision of the plan" if asked else "")]
    kept = f"the limit {limit} was reached" if limit else "the plan must not be revised"
    why = f"proposed by the host and not done, {kept}"
    return "\n".join(f"- {line}: {why}" for line in lines[:MOST_MISSING] if line)


def has_reports(state: EnhancedState) -> bool:
    """Whether any step, failed ones too, told what it could find."""
    return any(result.text for result in newest_results(state).values())


def can_be_answer(result: SpecialistResult, steps: Mapping[int, PlanStep]) -> bool:
    """Whether a result is whole and of a finished step, so that it may be the answer as it is."""
    step = steps.get(result.step_id)
    is_whole = not (result.cut or result.excerpt) and result.text.strip() != ""
    is_success = result.status is ExecutionStatus.SUCCESS
    return is_success and is_whole and step is not None and step.status is StepStatus.COMPLETED


def went_as_planned(state: EnhancedState) -> bool:
    """Whether every step of the model's first plan succeeded at once, and nobody had to decide."""
    plan, results = plan_of(state), newest_results(state).values()
    is_first = plan.version == 1 and state.get("plan_author") == "model"
    decided = any(question.is_decision for question in state.get("questions", {}).values())
    return (
        is_first
        and all(step.status is StepStatus.COMPLETED for step in plan.steps)
        and all(_is_plain_success(result) for result in results)
        and not (decided or state.get("decision") or state.get("warnings"))
        and not reached_limit(state)
    )


def _is_plain_success(result: SpecialistResult) -> bool:
    is_success = result.status is ExecutionStatus.SUCCESS and not result.cut
    return is_success and not (result.retry_count or result.replan_needed)


def outcome_of(plan: TaskPlan, limit: str = "", *, is_reported: bool = False) -> Outcome:
    """The outcome of a run with a plan.

    It is partial if a limit prevented steps, or if `is_reported`: the host's answer tells what the
    steps could find.
    """
    unmet = unmet_steps(plan)
    if not unmet:
        return "completed"
    blocked = {step.id for step in blocked_steps(plan)}
    # What cut the answer off has kept no step from being tried.
    untried = limit not in ("", *CUTS) and any(
        step.status is StepStatus.PENDING and step.id not in blocked for step in unmet
    )
    return "partial" if plan.completed_steps or untried or is_reported else "failed"


def is_rejected(state: EnhancedState) -> bool:
    """Whether a person did not let the plan run."""
    decision = state.get("decision")
    return decision is not None and decision.action == "reject"


def missing_from(state: EnhancedState) -> str:
    """One line for each required step that was not done, and why; empty if all were."""
    plan = plan_of(state)
    if not (unmet := unmet_steps(plan)):
        return ""
    blocked = {step.id for step in blocked_steps(plan)}
    limit = state.get("limit_reached", "")
    if not limit and not is_rejected(state):
        limit = reached_limit(state)
    stopped = {key.partition("/")[0]: hit.limit for key, hit in round_hits(state).items()}
    lines = [
        f"- {step.id}. {step.description}: "
        f"{_why_undone(step, stopped.get(str(step.id), limit), blocked=step.id in blocked)}"
        for step in unmet
    ]
    return _limited_list(lines)


def left_out_of(state: EnhancedState) -> str:
    """One line for each required step that a person skipped; empty without any."""
    plan = plan_of(state)
    lines = [
        f"- {step.id}. {step.description}: {step.feedback or 'skipped'}"
        for step in steps_left_out(plan)
    ]
    return _limited_list(lines)


def _limited_list(lines: list[str]) -> str:
    more = len(lines) - MOST_MISSING
    return "\n".join([*lines[:MOST_MISSING], *([f"- and {more} more"] if more > 0 else [])])


def fallback_feedback(state: EnhancedState, feedback: str) -> FeedbackResult:
    """The verdict by the statuses of the steps, if no model gives one."""
    return FeedbackResult(
        feedback=feedback,
        should_continue=bool(runnable_steps(state)) and not reached_limit(state),
        suggested_action=ActionType.EXECUTE_STEP if runnable_steps(state) else None,
        by="rule",
    )


def _is_spent(used: float, limit: float | None, kept: float) -> bool:
    return limit is not None and used >= limit - kept


def _why_undone(step: PlanStep, limit: str, *, blocked: bool) -> str:
    if step.status is StepStatus.FAILED:
        return step.feedback or "failed"
    if blocked:
        return "a step that it needs failed"
    return f"not run, the limit {limit} was reached" if limit else "not run"
