"""Apply changes to a plan: a new version of it, with the revision in its history."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from replan.errors import PlanChangeError, Refusal
from replan.plan.changes import (
    AddStep,
    ModifyStep,
    PlanChange,
    difference,
    to_record,
    update_type,
)
from replan.plan.document import refresh_content
from replan.plan.model import Author, PlanStep, PlanUpdate, StepStatus, TaskPlan
from replan.plan.revision import WAITS, Draft, Refused, attempt

_SPECIALISTS = ("assigned_to", "joined_by")


def apply(
    plan: TaskPlan,
    changes: Sequence[PlanChange],
    *,
    at: datetime,
    by: Author = "model",
    description: str = "",
    team: Collection[str] | None = None,
) -> TaskPlan:
    """Apply changes, all or none of them.

    Args:
        plan: The plan; it stays as it is.
        changes: What is to change, in order.
        at: The time of the revision.
        by: Who made it. Steps that a model adds are pending, whatever it says of them.
        description: What the revision is for.
        team: The names of all specialists; none: any name will do.

    Returns:
        The plan in its next version, or the very same plan if nothing changes.

    Raises:
        PlanChangeError: Changes are refused; the error has every reason, with its mend.
    """
    draft, refused = attempt(plan, changes, team)
    if refused:
        raise PlanChangeError([each.refusal for each in refused])
    return _next_version(plan, draft, _Revision(at, by, description))


def apply_valid(
    plan: TaskPlan,
    changes: Sequence[PlanChange],
    *,
    at: datetime,
    by: Author = "model",
    description: str = "",
    team: Collection[str] | None = None,
) -> tuple[TaskPlan, tuple[Refusal, ...]]:
    """Apply what can be applied of some changes, and tell what cannot.

    The first refused change is mended or dropped, then the rest is tried again: a modification
    loses the fields that cannot be, an addition the specialists that do not exist; any other
    refused change goes as a whole.

    Returns:
        The plan in its next version (or the same plan), and the reasons against the rest.
    """
    left = list(changes)
    refusals: dict[Refusal, None] = {}
    while True:
        draft, refused = attempt(plan, left, team)
        if not refused:
            return _next_version(plan, draft, _Revision(at, by, description)), tuple(refusals)
        first = refused[0]
        refusals[first.refusal] = None
        mended = _mended(left[first.change], first, team)
        left[first.change : first.change + 1] = [] if mended is None else [mended]


@dataclass(frozen=True, slots=True)
class _Revision:
    at: datetime
    by: Author
    description: str


def _mended(
    change: PlanChange, refused: Refused, team: Collection[str] | None
) -> PlanChange | None:
    code = refused.refusal.code
    if isinstance(change, AddStep) and code == "unknown_specialist":
        names = [name for name in change.step.specialists if team is None or name in team]
        step = change.step.replace(assigned_to="".join(names[:1]), joined_by=tuple(names[1:]))
        return change.replace(step=step)
    if isinstance(change, ModifyStep):
        dropped = {
            "unknown_specialist": _SPECIALISTS,
            "unknown_dependency": WAITS,
            "self_dependency": WAITS,
            "cycle": WAITS,
        }.get(code, tuple(change.fields))
        fields = {name: value for name, value in change.fields.items() if name not in dropped}
        if fields and len(fields) < len(change.fields):
            return change.replace(fields=fields)
    return None


def _next_version(plan: TaskPlan, draft: Draft, revision: _Revision) -> TaskPlan:
    before = plan.by_id
    steps = [_stamped(step, before.get(step.id), revision) for step in draft.steps]
    new = plan.replace(steps=tuple(steps), title=draft.title)
    # What is recorded is the difference in effect, so that replaying it is exact, however many
    # changes cancelled each other out.
    net = difference(plan, new)
    if not net:
        return plan
    update = PlanUpdate(
        version=plan.version + 1,
        update_type=update_type(net),
        description=revision.description,
        timestamp=revision.at,
        changes=to_record(net),
        by=revision.by,
    )
    return refresh_content(
        new.replace(
            version=update.version,
            updated_at=revision.at,
            update_history=(*plan.update_history, update),
        )
    )


def _stamped(step: PlanStep, before: PlanStep | None, revision: _Revision) -> PlanStep:
    """Give a step the times of its making and changing, and a model's new step a fresh start."""
    if before is None:
        fresh = unstarted(step) if revision.by == "model" else step
        return fresh.replace(created_at=step.created_at or revision.at)
    return step if step == before else step.replace(updated_at=revision.at)


def unstarted(step: PlanStep) -> PlanStep:
    """Give a step as if it had never run."""
    return step.replace(
        status=StepStatus.PENDING,
        result="",
        feedback="",
        actual_duration=None,
        retry_count=0,
    )
