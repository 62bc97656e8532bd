"""Apply changes to a plan: a new version of it, with the revision in its history."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from replan.errors import PlanChangeError, Refusal
from replan.plan.changes import (
    AddStep,
    ModifyStep,
    PlanChange,
    ReorderSteps,
    difference,
    from_record,
    to_record,
    update_type,
)
from replan.plan.markdown.document import refresh_content
from replan.plan.model import Author, PlanStep, PlanUpdate, TaskPlan
from replan.plan.revision import Refused, apply_changes, check_changes, unstarted


def apply(
    plan: TaskPlan,
    changes: Sequence[PlanChange],
    *,
    at: datetime,
    by: Author = "model",
    description: str = "",
    team: Collection[str] | None = None,
) -> TaskPlan:
    """Apply all changes, or none of them.

    Args:
        plan: The plan; it stays as it is.
        changes: What is to change, in order.
        at: The time of the revision.
        by: Who made it. Steps that a model adds are pending, whatever it says about them.
        description: What the revision is for.
        team: The names of all specialists; none: any name will do.

    Returns:
        The plan in its next version, or the very same plan if nothing changes.

    Raises:
        PlanChangeError: Changes are refused; the error has every reason, with its fix.
    """
    draft, refused = check_changes(plan, changes, team)
    if refused:
        raise PlanChangeError([each.refusal for each in refused])
    return _next_version(plan, draft, at, by, description)


def apply_valid(  # noqa: PLR0913 - one name for each thing that a revision says
    plan: TaskPlan,
    changes: Sequence[PlanChange],
    *,
    at: datetime,
    by: Author = "model",
    description: str = "",
    team: Collection[str] | None = None,
    misread: Collection[int] = (),
) -> tuple[TaskPlan, tuple[Refusal, ...]]:
    """Apply the valid ones of some changes, and return why the others are refused.

    A change is refused as a whole, and with it each change that depends on it: that of a step
    that waits for a step whose own change is refused.

    Args:
        plan: The plan; it stays as it is.
        changes: What is to change, in order.
        at: The time of the revision.
        by: Who made it.
        description: What the revision is for.
        team: The names of all specialists; none: any name will do.
        misread: Steps whose changes are already known to be unusable.

    Returns:
        The plan in its next version (or the same plan), and the reasons against the rest.
    """
    left, refusals = applicable_part(plan, changes, team=team, misread=misread)
    draft, _ = check_changes(plan, left, team)
    return _next_version(plan, draft, at, by, description), refusals


def applicable_part(
    plan: TaskPlan,
    changes: Sequence[PlanChange],
    *,
    team: Collection[str] | None = None,
    misread: Collection[int] = (),
) -> tuple[list[PlanChange], tuple[Refusal, ...]]:
    """Divide changes as `apply_valid` does: into those to apply, and the refusals of the others."""
    gone = set(misread)
    left, refusals = list(changes), dict[Refusal, None]()
    wanted = _wanted_steps(plan, changes)
    # Of what is refused for itself the first one counts: the next may only follow from it.
    while (
        refused := [*_refused_for_others(left, wanted, gone)]
        or check_changes(plan, left := _without_lost_ids(plan, left, gone), team)[1][:1]
    ):
        refusals |= {each.refusal: None for each in refused}
        places = {each.change for each in refused}
        gone |= {step for at in places if (step := needed_step(left[at])) is not None}
        left = [change for at, change in enumerate(left) if at not in places]
    return left, tuple(refusals)


def _next_version(
    plan: TaskPlan, draft: TaskPlan, at: datetime, by: Author, description: str
) -> TaskPlan:
    """Return the plan after a revision, with the revision in its history."""
    before = plan.by_id
    steps = [_stamped(step, before.get(step.id), at, by) for step in draft.steps]
    new = draft.replace(steps=tuple(steps))
    # What is recorded is the difference in effect, so that replaying it is exact, however many
    # changes cancelled each other out.
    net = difference(plan, new)
    if not net:
        return plan
    update = PlanUpdate(
        version=plan.version + 1,
        update_type=update_type(net),
        description=description,
        timestamp=at,
        changes=to_record(net),
        by=by,
    )
    return refresh_content(
        new.replace(
            version=update.version,
            updated_at=at,
            update_history=(*plan.update_history, update),
        )
    )


def _stamped(step: PlanStep, before: PlanStep | None, at: datetime, by: Author) -> PlanStep:
    """Set the times of a step's creation and change; reset the progress of a model's new step."""
    if before is None:
        fresh = unstarted(step) if by == "model" else step
        return fresh.replace(created_at=step.created_at or at)
    return step if step == before else step.replace(updated_at=at)


def replay(first: TaskPlan, history: Sequence[PlanUpdate]) -> TaskPlan:
    """Apply the revisions of a history to the plan that it began with.

    Args:
        first: The plan in its first version.
        history: Its revisions, the oldest first.

    Returns:
        A plan with the structure, title, version and history of the current one; how its steps
        went is not part of a history.

    Raises:
        pydantic.ValidationError: A revision's changes were not written by `apply`.
    """
    plan = first
    for update in history:
        plan = apply_changes(plan, from_record(update.changes)).replace(
            version=update.version,
            updated_at=update.timestamp,
            update_history=(*plan.update_history, update),
        )
    return refresh_content(plan) if history else plan


def needed_step(change: PlanChange) -> int | None:
    """Return the step that a change adds or modifies, so that others may need it; else None."""
    return change.step_id if isinstance(change, AddStep | ModifyStep) else None


def _without_lost_ids(
    plan: TaskPlan, changes: Sequence[PlanChange], gone: set[int]
) -> list[PlanChange]:
    """Take the steps out of each new order that no change adds any longer."""
    lost = gone - plan.by_id.keys() - {c.step.id for c in changes if isinstance(c, AddStep)}
    return [
        change.replace(order=tuple(each for each in change.order if each not in lost))
        if lost and isinstance(change, ReorderSteps)
        else change
        for change in changes
    ]


def _wanted_steps(plan: TaskPlan, changes: Sequence[PlanChange]) -> dict[int, PlanStep]:
    """Return the steps as the changes want them, possible or not."""
    steps = dict(plan.by_id)
    for change in changes:
        if isinstance(change, AddStep):
            steps.setdefault(change.step.id, change.step)
        elif isinstance(change, ModifyStep) and change.step_id in steps:
            steps[change.step_id] = steps[change.step_id].replace(**change.fields)
    return steps


def _refused_for_others(
    changes: Sequence[PlanChange], wanted: dict[int, PlanStep], gone: set[int]
) -> Iterator[Refused]:
    """Refuse each change whose step, or a step that it waits for, has a refused change."""
    for at, change in enumerate(changes):
        step_id = needed_step(change)
        awaited = gone.intersection(wanted[step_id].awaits if step_id in wanted else ())
        if step_id in gone:
            reason = f"Step {step_id} stays as it is: a part of its change is refused."
        elif awaited:
            reason = f"Step {step_id} waits for step {min(awaited)}, whose change is refused."
        else:
            continue
        refusal = Refusal(code="depends_on_refused", step_id=step_id, reason=reason)
        yield Refused(at, refusal)
