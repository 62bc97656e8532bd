"""The outline of a plan: what is kept of it in the event that reports it, and the plan again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.secrets.known import KNOWN

if TYPE_CHECKING:
    from pydantic import JsonValue

    from replan.runs.log.run_event import RunEvent

_KEPT = {"id", "description", "assigned_to", "joined_by", "dependencies", "condition"}
_REVISES = ("steps_invalidated", "run_corrected")
_ENDS = {"success": StepStatus.COMPLETED, "failed": StepStatus.FAILED}


def outlined(plan: TaskPlan) -> dict[str, JsonValue]:
    """Return the title and the steps of a plan, as planned, without known secrets."""
    steps = [
        each.model_dump(mode="json", include=_KEPT, exclude_defaults=True) for each in plan.steps
    ]
    masked = [{**each, "description": KNOWN.masked(each["description"])} for each in steps]
    return {"title": KNOWN.masked(plan.title), "outline": cast("JsonValue", masked)}


def plan_in(events: Sequence[RunEvent]) -> TaskPlan | None:
    """Return the plan of a run that is over, with its marks, from its events alone.

    None where they do not tell all of it: it was revised, or a step has no end of its own, or
    several.
    """
    ends: list[Any] = [e.details for e in events if e.type == "specialist_completed"]
    ended = {each["step_id"]: each for each in ends}
    plans: list[Any] = [e.details for e in events if e.type == "plan_created"]
    outline = plans[-1].get("outline") if plans else None
    is_revised = any(e.type in _REVISES or e.details.get("changes") for e in events)
    if outline is None or is_revised or len(ended) < len(ends):
        return None
    steps = [PlanStep.model_validate(each) for each in outline]
    has_one_end = (ended.get(step.id, {}).get("status") in _ENDS for step in steps)
    if not all(has_one_end) or any(step.joined_by for step in steps):
        return None
    settled = (
        step.replace(status=_ENDS[ended[step.id]["status"]], feedback=ended[step.id]["error"])
        for step in steps
    )
    title, version = str(plans[-1]["title"]), plans[-1]["version"]
    return TaskPlan(title=title, version=version, steps=tuple(settled))


@dataclass(frozen=True)
class Outline:
    """A plan as its events describe it: the title, and the reported fields of each step."""

    title: str = ""
    steps: tuple[Mapping[str, Any], ...] = ()

    def after(self, event: RunEvent) -> Outline:
        said = cast("Mapping[str, Any]", event.details)
        if event.type == "plan_created":
            return Outline(str(said.get("title", "")), tuple(said.get("outline") or ()))
        changes = cast("Mapping[str, Any]", said.get("changes") or {})
        return self._changed(changes) if event.type == "plan_updated" and changes else self

    def _changed(self, changes: Mapping[str, Any]) -> Outline:
        """Apply the changes of a revision in the order of `replan.plan.changes`."""
        removed = {int(each) for each in changes.get("removed") or ()}
        steps = [step for step in self.steps if step["id"] not in removed]
        for each in changes.get("added") or ():
            steps.insert(each.get("index", len(steps)), each["step"])
        modified: dict[int, Any] = {int(n): f for n, f in changes.get("modified", {}).items()}
        steps = [{**step, **modified.get(step["id"], {})} for step in steps]
        place: dict[int, int] = {step: at for at, step in enumerate(changes.get("reordered") or ())}
        if place:
            steps.sort(key=lambda step: place.get(step["id"], len(place)))
        return Outline(str(changes.get("title", self.title)), tuple(steps))
