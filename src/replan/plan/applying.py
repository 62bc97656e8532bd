"""Check and apply the changes of a plan: a new version of it, with the revision in its history."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from replan.base.errors import PlanChangeError, Refusal
from replan.plan.changes import PlanChanges, changed, difference, unstarted
from replan.plan.markdown.document import refresh_content
from replan.plan.markdown.rendering import normalised_step
from replan.plan.model import Author, PlanStep, PlanUpdate, TaskPlan
from replan.plan.order import misfits

_WAITS = frozenset(("dependencies", "condition"))


class Refused(NamedTuple):
    """A refusal, and the step whose change is to blame; None: the plan's title or order."""

    blamed: int | None
    refusal: Refusal


def apply(
    plan: TaskPlan,
    changes: PlanChanges,
    *,
    at: datetime,
    by: Author = "model",
    description: str = "",
    team: Collection[str] | None = None,
) -> TaskPlan:
    """Apply all changes, or none of them.

    Args:
        plan: The plan; it stays as it is.
        changes: What is to change.
        at: The time of the revision.
        by: Who made it. Steps that a model adds are pending, whatever it says about them.
        description: What the revision is for.
        team: The names of all specialists; none: any name will do.

    Returns:
        The plan in its next version, or the very same plan if nothing changes.

    Raises:
        PlanChangeError: Changes are refused; the error has every reason, with its fix.
    """
    if refused := _refused(plan, changes, team):
        raise PlanChangeError([*dict.fromkeys(refusal for _, refusal in refused)])
    return _next_version(plan, changed(plan, changes), at, by, description)


def apply_valid(  # noqa: PLR0913 - one name for each thing that a revision says
    plan: TaskPlan,
    changes: PlanChanges,
    *,
    at: datetime,
    by: Author = "model",
    description: str = "",
    team: Collection[str] | None = None,
    misread: Collection[int] = (),
) -> tuple[TaskPlan, tuple[Refusal, ...]]:
    """Apply the valid ones of some changes, and return why the others are refused.

    All changes of a step are refused together, and with them each change that depends on them:
    that of a step that waits for a step whose own change is refused.

    Args:
        plan: The plan; it stays as it is.
        changes: What is to change.
        at: The time of the revision.
        by: Who made it.
        description: What the revision is for.
        team: The names of all specialists; none: any name will do.
        misread: Steps whose changes are already known to be unusable.

    Returns:
        The plan in its next version (or the same plan), and the reasons against the rest.
    """
    left, refusals = applicable_part(plan, changes, team=team, misread=misread)
    return _next_version(plan, changed(plan, left), at, by, description), refusals


def applicable_part(
    plan: TaskPlan,
    changes: PlanChanges,
    *,
    team: Collection[str] | None = None,
    misread: Collection[int] = (),
) -> tuple[PlanChanges, tuple[Refusal, ...]]:
    """Divide changes as `apply_valid` does: into those to apply, and the refusals of the others."""
    wanted = _changed_steps(plan, changes)
    left, gone, refusals = changes, set[int | None](misread), dict[Refusal, None]()
    # Of what is refused for itself the first one counts: the next may only follow from it.
    while refused := [*_dependent(left, wanted, gone)] or _refused(plan, left, team)[:1]:
        refusals |= {refusal: None for _, refusal in refused}
        lost = {step for step, _ in refused}
        # A step that must not be removed stays, and others may wait for it.
        gone |= lost & (left.fresh.keys() | left.modified.keys())
        left = left.without(lost)
    return left, tuple(refusals)


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
        plan = changed(plan, PlanChanges.model_validate(update.changes)).replace(
            version=update.version,
            updated_at=update.timestamp,
            update_history=(*plan.update_history, update),
        )
    return refresh_content(plan) if history else plan


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
    return refresh_content(
        new.next_version(description, at, by=by, kind=net.kind, changes=net.record)
    )


def _stamped(step: PlanStep, before: PlanStep | None, at: datetime, by: Author) -> PlanStep:
    """Set the times of a step's creation and change; reset the progress of a model's new step."""
    if before is None:
        fresh = unstarted(step) if by == "model" else step
        return fresh.replace(created_at=step.created_at or at)
    return step if step == before else step.replace(updated_at=at)


def _changed_steps(plan: TaskPlan, changes: PlanChanges) -> dict[int, PlanStep]:
    """The added and the modified steps as the changes want them, possible or not."""
    steps_by_id = plan.by_id
    modified = {
        step_id: steps_by_id[step_id].replace(**fields)
        for step_id, fields in changes.modified.items()
        if step_id in steps_by_id
    }
    return changes.fresh | modified


def _dependent(
    changes: PlanChanges, wanted: Mapping[int, PlanStep], gone: Collection[int | None]
) -> Iterator[Refused]:
    """Refuse each change whose step, or a step that it waits for, has a refused change."""
    for step_id in (*changes.fresh, *changes.modified):
        awaits = wanted[step_id].awaits if step_id in wanted else ()
        awaited = [step_id for step_id in awaits if step_id in gone]
        if step_id in gone:
            reason = f"Step {step_id} stays as it is: a part of its change is refused."
        elif awaited:
            reason = f"Step {step_id} waits for step {min(awaited)}, whose change is refused."
        else:
            continue
        yield _refuse(step_id, "depends_on_refused", reason)


def _refused(plan: TaskPlan, changes: PlanChanges, team: Collection[str] | None) -> list[Refused]:
    """Refuse changes: each for itself, then for how the steps fit together with the rest."""
    if changes and not plan.allow_dynamic_update:
        reason = "This plan must not change while it runs; only its steps' statuses do."
        refusal = Refusal(code="not_allowed", step_id=None, reason=reason)
        every = (*changes.removed, *changes.fresh, *changes.modified, None)
        return [Refused(step_id, refusal) for step_id in every]
    found = [*_refused_alone(plan, changes, team)]
    sound = changes.without({step_id for step_id, _ in found})
    return [*found, *_misfits(changed(plan, sound), sound)]


def _refused_alone(
    plan: TaskPlan, changes: PlanChanges, team: Collection[str] | None
) -> Iterator[Refused]:
    """Refuse changes, and explain how they would be possible."""
    steps, fresh = plan.by_id, changes.fresh
    wanted = _changed_steps(plan, changes)
    same = {key for key, new in wanted.items() if normalised_step(new) == steps.get(key)}
    instead = f"Add a new step; the next free number is {max((*steps, *fresh), default=0) + 1}."
    for step_id in (*changes.removed, *changes.modified):
        if step_id not in steps:
            yield _unknown(step_id, steps)
        elif steps[step_id].is_finished and step_id not in same:
            reason = f"Step {step_id} is {steps[step_id].status} and cannot change. {instead}"
            yield _refuse(step_id, "finished_step", reason)
    times = Counter(addition.step.id for addition in changes.added)
    for step_id in fresh:
        if step_id in steps or times[step_id] > 1:
            reason = f"The number {step_id} is taken. {instead}"
            yield _refuse(step_id, "duplicate_step", reason)
    for step_id, new in wanted.items():
        if step_id in fresh or new.specialists != steps[step_id].specialists:
            yield from _strangers(new, team)
    yield from _refused_order(changes, (steps.keys() - set(changes.removed)) | fresh.keys())


def _strangers(step: PlanStep, team: Collection[str] | None) -> Iterator[Refused]:
    if team is None:
        return
    for name in step.specialists:
        if name not in team:
            members = ", ".join(sorted(team)) or "nobody"
            reason = f"Nobody is called '{name}' (step {step.id}). The team is: {members}."
            yield _refuse(step.id, "unknown_specialist", reason)


def _refused_order(changes: PlanChanges, known: Collection[int]) -> Iterator[Refused]:
    for step_id, times in sorted(Counter(changes.reordered).items()):
        if step_id not in known:
            yield _unknown(step_id, known)._replace(blamed=None)
        if times > 1:
            reason = f"The order has step {step_id} twice. Name each step once."
            yield _refuse(step_id, "duplicate_step", reason)._replace(blamed=None)


def _unknown(step_id: int, known: Collection[int]) -> Refused:
    names = ", ".join(map(str, sorted(known))) or "none"
    reason = f"This plan has no step {step_id}. Use one of: {names}."
    return _refuse(step_id, "unknown_step", reason)


def _refuse(step_id: int, code: str, reason: str) -> Refused:
    return Refused(step_id, Refusal(code=code, step_id=step_id, reason=reason))


def _misfits(draft: TaskPlan, changes: PlanChanges) -> Iterator[Refused]:
    """Yield what is wrong with the steps after changes, each with the step that is to blame."""
    modified = (key for key, fields in changes.modified.items() if not _WAITS.isdisjoint(fields))
    rewired = dict.fromkeys((*changes.removed, *changes.fresh, *modified))
    for found in misfits(draft.steps):
        pair = (step_id for step_id in (found.step, found.awaited) if step_id in rewired)
        # Of the steps in a cycle, the change that was made last closed it.
        ring = (step_id for step_id in reversed(rewired) if step_id in found.cycle)
        if (blamed := next(ring if found.cycle else pair, None)) is not None:
            refused = _refuse(found.step, found.code, f"{found.reason} {found.fix}")
            yield refused._replace(blamed=blamed)
