"""Write the outcomes of steps into a plan, and see whether the run makes progress."""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from pydantic import JsonValue

from replan.base.values import fields_in
from replan.plan.markdown.document import refresh_content
from replan.plan.model import PlanStep, PlanUpdate, TaskPlan

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


T = TypeVar("T")

_ABOUT_THE_WORK = ("description", "brief", "parameters", "assigned_to", "joined_by")


def gains(before: Container[T], after: Iterable[T]) -> bool:
    """Whether something became settled: the measure of progress, for plans and jobs."""
    return any(each not in before for each in after)


def made_progress(before: TaskPlan, after: TaskPlan) -> bool:
    """Whether a step became completed or skipped between two states of a plan."""
    finished = {step.id for step in before.steps if step.is_finished}
    return gains(finished, (step.id for step in after.steps if step.is_finished))


def repeats_revision(history: Sequence[PlanUpdate], revision: PlanUpdate) -> bool:
    """Whether the same changes were made before in a history.

    An added step is the same as an earlier one if it asks the same work of the same specialists,
    whatever its number and its place; removals and modifications are the same if they are about
    the same step.

    Args:
        history: The revisions so far; the revision itself may be the last of them.
        revision: A revision.
    """
    wanted = _signature(revision.changes)
    earlier = (update for update in history if update.version < revision.version)
    return any(_signature(update.changes) == wanted for update in earlier)


def _signature(record: Mapping[str, JsonValue]) -> str:
    """What the changes of a revision come to, as a text that can be compared."""
    added = record.get("added")
    works = sorted(_work(step) for step in added) if isinstance(added, list) else []
    return json.dumps({**record, "added": works}, sort_keys=True)


def _work(addition: JsonValue) -> str:
    """What an added step is to do, whatever its id, as a text that can be compared."""
    fields = fields_in(fields_in(addition).get("step"))
    return json.dumps({name: fields.get(name) for name in _ABOUT_THE_WORK}, sort_keys=True)
