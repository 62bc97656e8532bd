"""What a person is shown of a plan that waits, and what a changed document makes of it."""

from collections.abc import Sequence
from datetime import datetime
from difflib import unified_diff

from replan.errors import InputError
from replan.nodes.plan_texts import written
from replan.plan.applying import apply, unstarted
from replan.plan.changes import aligned, difference
from replan.plan.document import PlanDocument
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.statuses import with_statuses
from replan.state.limits import RunSettings
from replan.state.questions import Approval
from replan.state.team import SpecialistCard, find_specialist

BY_PERSON = "Changed by a person before it ran."
"""What the plan's history says of a document that a person changed at the gate."""

_CONTEXT = 2
_PENDING = (StepStatus.PENDING, StepStatus.EXECUTING)


def first_plan_waits(settings: RunSettings, *, handed_in: bool) -> bool:
    """Whether a new plan waits for approval; one that a person handed in only if all plans do."""
    return settings.approval == "always" or (settings.approval == "plan" and not handed_in)


def revision_waits(settings: RunSettings) -> bool:
    """Whether a revised plan waits for approval."""
    return settings.approval in ("revisions", "always")


def approval_of(
    plan: TaskPlan, *, before: TaskPlan | None = None, reason: str = "", problem: str = ""
) -> Approval:
    """What to show of a plan; of a revision, also the difference from the plan before it."""
    old = [] if before is None else before.content.splitlines()
    lines = unified_diff(old, plan.content.splitlines(), "before", "after", n=_CONTEXT, lineterm="")
    return Approval(
        approve=plan.content,
        version=plan.version,
        reason=reason,
        changes="" if before is None else "\n".join(lines),
        problem=problem,
    )


def changed_by_person(
    plan: TaskPlan, text: str, team: Sequence[SpecialistCard], at: datetime
) -> TaskPlan:
    """Take a person's changed document: all of it, or nothing and every mistake with its place.

    The document is kept byte for byte. Marks count for steps that were not finished: one that a
    person marks as done or skipped is not run.

    Raises:
        InputError: The document is empty, or takes back what is finished.
        PlanDocumentError: The document has mistakes.
        PlanChangeError: A change cannot be made.
    """
    if not text.strip():
        raise InputError("There is no changed plan. Give the whole document under 'plan'.")
    # The gate is there so that a person can change what the model may not.
    old = plan.replace(allow_dynamic_update=True)
    new = aligned(old, PlanDocument.parse(text).plan)
    new = new.replace(steps=tuple(_named(step, old, team) for step in new.steps))
    _check_finished(old, new)
    names = [card.name for card in team]
    changed = apply(
        old, difference(old, new), at=at, by="person", description=BY_PERSON, team=names
    )
    marked = [
        _marked(changed.step(step.id), step)
        for step in new.steps
        if step.id in old.by_id and _status(step) is not _status(old.step(step.id))
    ]
    changed = with_statuses(changed, marked, at)
    return written(changed.replace(content=text, allow_dynamic_update=plan.allow_dynamic_update))


def _named(step: PlanStep, old: TaskPlan, team: Sequence[SpecialistCard]) -> PlanStep:
    """The step with names as the team writes them, and with what no document can say."""
    names = tuple(dict.fromkeys(find_specialist(name, team) or name for name in step.specialists))
    before = old.by_id.get(step.id)
    return step.replace(
        assigned_to=names[0] if names else "",
        joined_by=names[1:],
        estimated_duration=None if before is None else before.estimated_duration,
    )


def _check_finished(old: TaskPlan, new: TaskPlan) -> None:
    steps = new.by_id
    for step in old.steps:
        if step.is_finished and step.id in steps and _status(steps[step.id]) is not step.status:
            raise InputError(
                f"Step {step.id} is {step.status.value} and cannot be taken back. "
                "Leave its mark, and add a new step."
            )


def _marked(step: PlanStep, shown: PlanStep) -> PlanStep:
    if _status(shown) is StepStatus.PENDING:
        return unstarted(step)
    return step.replace(status=shown.status, result=shown.result, feedback=shown.feedback)


def _status(step: PlanStep) -> StepStatus:
    return StepStatus.PENDING if step.status in _PENDING else step.status
