"""Replay the history of a plan."""

from collections.abc import Sequence

from replan.plan.changes import from_record
from replan.plan.markdown.document import refresh_content
from replan.plan.model import PlanUpdate, TaskPlan
from replan.plan.revision import carry_out


def replay(first: TaskPlan, history: Sequence[PlanUpdate]) -> TaskPlan:
    """Carry the revisions of a history out on the plan that it began with.

    Args:
        first: The plan in its first version.
        history: Its revisions, the oldest first.

    Returns:
        A plan with the structure, title, version and history of the current one; how its steps
        went is no part of a history.

    Raises:
        pydantic.ValidationError: A revision's changes were not written by `apply`.
    """
    plan = first
    for update in history:
        draft = carry_out(plan, from_record(update.changes))
        plan = plan.replace(
            steps=tuple(draft.steps),
            title=draft.title,
            version=update.version,
            updated_at=update.timestamp,
            update_history=(*plan.update_history, update),
        )
    return refresh_content(plan) if history else plan
