"""The outline of a plan: what is kept of it in the event that tells of it, and the plan again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.secrets.known import KNOWN

if TYPE_CHECKING:
    from pydantic import JsonValue

    from replan.runs.run_event import RunEvent

_KEPT = {"id", "description", "assigned_to", "dependencies", "condition"}
_ENDS = {"success": StepStatus.COMPLETED, "failed": StepStatus.FAILED}


def outlined(plan: TaskPlan) -> dict[str, JsonValue]:
    """Give the title and the steps of a plan, as planned, without known secrets."""
    steps = [
        each.model_dump(mode="json", include=_KEPT, exclude_defaults=True) for each in plan.steps
    ]
    masked = [{**each, "description": KNOWN.masked(each["description"])} for each in steps]
    return {"title": KNOWN.masked(plan.title), "outline": cast("JsonValue", masked)}


def plan_in(events: Sequence[RunEvent]) -> TaskPlan | None:
    """Give the plan of a run that is over, with its marks, from its events alone.

    None where they do not tell all of it: it was revised, or a step has no end of its own.
    """
    ended = dict[int, Mapping[str, Any]]()
    made: dict[str, Any] = {}
    for event in events:
        said = cast("Mapping[str, Any]", event.details)
        if event.type == "plan_created":
            made = dict(said)
        elif event.type == "specialist_completed":
            ended[said["step_id"]] = said
        elif event.type in ("steps_reopened", "run_corrected") or said.get("changes"):
            return None
    outline: Any = made.get("outline")
    if outline is None:
        return None
    steps = [PlanStep.model_validate(each) for each in outline]
    if not all(ended.get(step.id, {}).get("status") in _ENDS for step in steps):
        return None
    settled = (
        step.replace(status=_ENDS[ended[step.id]["status"]], feedback=ended[step.id]["error"])
        for step in steps
    )
    return TaskPlan(title=str(made["title"]), steps=tuple(settled))
