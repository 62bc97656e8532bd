"""Write into a plan how its steps went."""

from collections.abc import Iterable
from datetime import datetime

from replan.plan.markdown.document import refresh_content
from replan.plan.model import PlanStep, StepStatus, TaskPlan

EXCERPT = 600
"""The most characters of a result that a plan keeps; the whole stands in the state's results."""


def excerpt(text: str, limit: int = EXCERPT) -> str:
    """Cut a text to a length, at a blank if there is one near the end; the cut shows as `…`."""
    text = text.strip()
    if len(text) <= limit:
        return text
    cut = text[: max(0, limit - 1)]
    shorter = cut.rsplit(None, 1)[0] if cut else ""
    return (shorter if len(shorter) > limit * 2 // 3 else cut.rstrip()) + "…"


def update_step_status(  # noqa: PLR0913 - one name for each thing that a result says
    plan: TaskPlan,
    step_id: int,
    *,
    succeeded: bool,
    result: str,
    error: str,
    duration: float,
    retry_count: int,
    at: datetime,
) -> TaskPlan:
    """Write a step's outcome into the plan: completed or failed, result, reason, duration.

    Args:
        plan: The plan.
        step_id: The step.
        succeeded: Whether at least one of its specialists succeeded.
        result: The result; the plan keeps an excerpt.
        error: Why it failed; empty if it did not.
        duration: Seconds that it took.
        retry_count: Tries beside the first that were used.
        at: The time of the outcome.

    Raises:
        UnknownStepError: No step has this id.
    """
    step = step_outcome(
        plan.step(step_id),
        succeeded=succeeded,
        result=result,
        error=error,
        duration=duration,
        retry_count=retry_count,
    )
    return with_statuses(plan, [step], at)


def step_outcome(
    step: PlanStep, *, succeeded: bool, result: str, error: str, duration: float, retry_count: int
) -> PlanStep:
    """Give a step with its outcome; `with_statuses` writes many of them into a plan at once."""
    return step.replace(
        status=StepStatus.COMPLETED if succeeded else StepStatus.FAILED,
        result=excerpt(result),
        feedback=excerpt(error),
        actual_duration=duration,
        retry_count=retry_count,
    )


def with_statuses(plan: TaskPlan, steps: Iterable[PlanStep], at: datetime) -> TaskPlan:
    """Put changed steps into the plan and write its document once.

    Args:
        plan: The plan.
        steps: The steps as they now are; those that did not change are left alone.
        at: The time of the change.

    Raises:
        UnknownStepError: The plan does not have one of the steps.
    """
    known = plan.by_id
    changed = [step.replace(updated_at=at) for step in steps if known.get(step.id) != step]
    if not changed:
        return plan
    return refresh_content(plan.with_steps(*changed).replace(updated_at=at))
