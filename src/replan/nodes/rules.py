"""The rules that stand above the models: when to go on, when to end, and how it ended.

All are pure functions of the state. A model may end a run early, never late, and never while a
required step can still run.
"""

from replan.plan.dependencies import blocked_steps, ready_steps, unmet_steps
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.state.enhanced import EnhancedState, rounds_of, settings_of
from replan.state.results import (
    ActionType,
    FeedbackResult,
    Outcome,
    SpecialistResult,
)
from replan.state.usage import Usage

MOST_MISSING = 50
"""Undone steps that an answer names one by one."""


def within_limit(plan: TaskPlan, max_steps: int) -> TaskPlan:
    """The plan's first `max_steps` steps; the others are never started."""
    if plan.total_steps <= max_steps:
        return plan
    return plan.replace(steps=plan.steps[:max_steps])


def runnable_steps(state: EnhancedState) -> tuple[PlanStep, ...]:
    """The steps that could start now."""
    return ready_steps(_limited(state))


def get_current_execution_step(plan: TaskPlan, state: EnhancedState) -> PlanStep | None:
    """The step that leads the running round, as the plan has it now; none outside a round."""
    execution = state.get("current_execution")
    return None if execution is None else plan.by_id.get(execution.plan_step.id)


def round_results(state: EnhancedState) -> dict[str, SpecialistResult]:
    """The results of the running round, by key."""
    current = state.get("current_round", 0)
    results = state.get("current_specialist_results", {})
    return {key: result for key, result in results.items() if result.round == current}


def needs_model(state: EnhancedState) -> bool:
    """Whether a round needs judgement: nothing can run, a step failed, or a revision is wished."""
    plan = state.get("current_plan") or TaskPlan()
    sent = {assignment.step_id for assignment in state.get("dispatched", [])}
    return (
        not runnable_steps(state)
        or any(step.status is StepStatus.FAILED for step in plan.steps if step.id in sent)
        or any(result.replan_needed for result in round_results(state).values())
        or reached_limit(state) != ""
    )


def may_complete(state: EnhancedState) -> bool:
    """Whether the run may end if the model says so: no required step can still run."""
    return reached_limit(state) != "" or not any(
        not step.optional for step in runnable_steps(state)
    )


def reached_limit(state: EnhancedState) -> str:
    """The limit that ends the run with work undone, or an empty text."""
    plan = state.get("current_plan") or TaskPlan()
    is_settled = not unmet_steps(plan) and not any(plan.open_steps())
    return "" if is_settled else spent_limit(state)


def spent_limit(state: EnhancedState) -> str:
    """The limit that leaves no room for another round, or an empty text."""
    limits = settings_of(state).limits
    plan = state.get("current_plan") or TaskPlan()
    spent = {
        "max_stalls": state.get("stalls", 0) >= limits.max_stalls,
        "max_rounds": state.get("current_round", 0) >= rounds_of(state),
        "max_steps": plan.total_steps > limits.max_steps and not runnable_steps(state),
        "max_model_calls": state.get("usage", Usage()).calls >= limits.max_model_calls - 1,
    }
    return next((name for name, is_spent in spent.items() if is_spent), "")


def limit_value(state: EnhancedState, limit: str) -> float:
    """The value of a limit, as this run has it."""
    if limit == "max_rounds":
        return rounds_of(state)
    return getattr(settings_of(state).limits, limit)


def should_continue_execution(feedback_result: FeedbackResult, state: EnhancedState) -> bool:
    """Whether another round follows a judgement."""
    if spent_limit(state):
        return False
    if any(not step.optional for step in runnable_steps(state)):
        return True
    revision = feedback_result.revised_plan or feedback_result.plan_update_suggestion
    if not revision and _is_terminal(state.get("current_plan") or TaskPlan()):
        return False
    return feedback_result.should_continue


def outcome_of(plan: TaskPlan) -> Outcome:
    """How a run with a plan ended."""
    if not unmet_steps(plan):
        return "completed"
    return "partial" if plan.completed_steps else "failed"


def missing_from(state: EnhancedState) -> str:
    """One line for each required step that was not done, and why; empty if all were."""
    plan = state.get("current_plan") or TaskPlan()
    blocked = {step.id for step in blocked_steps(plan)}
    limit = state.get("limit_reached", "") or reached_limit(state)
    unmet = unmet_steps(plan)
    lines = [
        f"- {step.id}. {step.description}: {_why(step, limit, blocked=step.id in blocked)}"
        for step in unmet[:MOST_MISSING]
    ]
    more = len(unmet) - MOST_MISSING
    return "\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])])


def fallback_feedback(state: EnhancedState, feedback: str) -> FeedbackResult:
    """The judgement by step status, where no model gives one."""
    return FeedbackResult(
        feedback=feedback,
        should_continue=bool(runnable_steps(state)) and not reached_limit(state),
        suggested_action=ActionType.EXECUTE_STEP if runnable_steps(state) else None,
        by="rule",
    )


def _limited(state: EnhancedState) -> TaskPlan:
    plan = state.get("current_plan") or TaskPlan()
    return within_limit(plan, settings_of(state).limits.max_steps)


def _is_terminal(plan: TaskPlan) -> bool:
    return not any(plan.open_steps())


def _why(step: PlanStep, limit: str, *, blocked: bool) -> str:
    if step.status is StepStatus.FAILED:
        return step.feedback or "failed"
    if blocked:
        return "a step that it needs failed"
    return f"not run, the limit {limit} was reached" if limit else "not run"
