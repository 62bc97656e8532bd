"""Write the outcomes of steps into a plan."""

from collections.abc import Iterable
from datetime import datetime

from replan.plan.markdown.document import refresh_content
from replan.plan.model import PlanStep, TaskPlan

EXCERPT = 600
"""The most characters of a result that a plan keeps; the whole is in the state's results."""


def excerpt(text: str, limit: int = EXCERPT) -> str:
    """Cut a text to a length, at a blank if there is one near the end; the cut shows as `…`."""
    text = text.strip()
    if len(text) <= limit:
        return text
    cut = text[: max(0, limit - 1)]
    shorter = cut.rsplit(None, 1)[0] if cut else ""
    return (shorter if len(shorter) > limit * 2 // 3 else cut.rstrip()) + "…"


def with_statuses(plan: TaskPlan, steps: Iterable[PlanStep], at: datetime) -> TaskPlan:
    """Put changed steps into the plan and write its document once.

    Args:
        plan: The plan.
        steps: The steps as they now are; those that did not change are left alone.
        at: The time of the change.

    Raises:
        UnknownStepError: The plan does not have one of the steps.
    """
    steps_by_id = plan.by_id
    stamp = {"updated_at": at}
    changed = [step.model_copy(update=stamp) for step in steps if steps_by_id.get(step.id) != step]
    if not changed:
        return plan
    return refresh_content(plan.with_steps(*changed).model_copy(update=stamp))
