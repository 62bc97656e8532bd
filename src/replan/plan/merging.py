"""What a whole plan document from a model means for the plan that it revises."""

from datetime import datetime

from replan.plan.applying import unstarted
from replan.plan.changes import STRUCTURAL, aligned, title_key
from replan.plan.document import refresh_content
from replan.plan.model import PlanStep, TaskPlan
from replan.plan.seal import unsealed


def as_new_plan(plan: TaskPlan, at: datetime) -> TaskPlan:
    """Give a model's first plan a fresh start: marks, results and seals of its own do not count.

    Args:
        plan: The plan as its document shows it.
        at: The time of its making.
    """
    steps = tuple(unstarted(step).replace(created_at=at, updated_at=at) for step in plan.steps)
    content = unsealed(plan.content)
    return refresh_content(plan.replace(steps=steps, content=content, created_at=at, updated_at=at))


def merge_revision(old: TaskPlan, new: TaskPlan) -> TaskPlan:
    """Read a model's whole revised plan as a revision of the old one.

    Steps are matched as `compare` does. A kept step keeps how it went; the marks and results in
    the revised document do not count. A finished step that the document leaves out stays in its
    place; one that it repeats under its title stays as it is. No title means the old title.

    Returns:
        The steps and the title as the model wants them, with everything but the structure from
        the old plan, and with the old plan's document. It may still ask for what cannot be:
        `compare` and `apply` tell.
    """
    before = old.by_id
    new = aligned(old, new)
    steps = [_merged(before.get(step.id), step) for step in new.steps]
    mentioned = {step.id for step in steps}
    for at, step in enumerate(old.steps):
        if step.is_finished and step.id not in mentioned:
            steps.insert(_place_after(old.steps[:at], steps), step)
            mentioned.add(step.id)
    return old.replace(steps=tuple(steps), title=new.title or old.title)


def _merged(old: PlanStep | None, new: PlanStep) -> PlanStep:
    if old is None:
        return unstarted(new)
    if old.is_finished and title_key(old) == title_key(new):
        return old
    said = {name: getattr(new, name) for name in STRUCTURAL if name != "estimated_duration"}
    return old.replace(**said)


def _place_after(before: tuple[PlanStep, ...], steps: list[PlanStep]) -> int:
    """Find the place behind the nearest of the steps that stood before."""
    places = {step.id: at for at, step in enumerate(steps)}
    return next((places[step.id] + 1 for step in reversed(before) if step.id in places), 0)
