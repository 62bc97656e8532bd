"""Revise a plan as the host's feedback says: by a whole document, or by one structured change."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, assert_never

from replan.plan.applying import apply_valid
from replan.plan.changes import (
    AddStep,
    ModifyStep,
    PlanChange,
    RemoveStep,
    difference,
)
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.phrases import step_numbers
from replan.plan.markdown.title import read_title
from replan.plan.merging import matched, taken_over
from replan.plan.model import PlanStep, PlanUpdateType, StepStatus, TaskPlan
from replan.plan.order import run_order
from replan.plan.revision import next_free_id

UPDATED = "Plan updated from execution feedback."
"""The description of a revision without a reason."""


class PlanFeedback(Protocol):
    """What a host's feedback says about the plan."""

    @property
    def plan_update_suggestion(self) -> str:
        """What should change, in words."""
        ...

    @property
    def plan_update_type(self) -> PlanUpdateType | None:
        """What kind of change that is, if the host says it."""
        ...

    @property
    def revised_plan(self) -> str:
        """The whole revised document, or empty."""
        ...


def update_plan_dynamically(
    current_plan: TaskPlan, feedback: PlanFeedback, *, at: datetime
) -> TaskPlan:
    """Revise a plan from feedback; what cannot be applied is left out.

    A readable revised document counts; without one, the suggestion is turned into a change of the
    kind that the feedback names.

    Returns:
        The plan in its next version, or the very same plan if nothing changes or may change.
    """
    if not current_plan.allow_dynamic_update:
        return current_plan
    changes = _from_document(current_plan, feedback.revised_plan)
    if changes is None:
        changes = _from_suggestion(current_plan, feedback)
    reason = feedback.plan_update_suggestion.strip() or UPDATED
    return apply_valid(current_plan, changes, at=at, description=reason)[0]


def create_step_from_feedback(plan: TaskPlan, suggestion: str) -> PlanStep:
    """Make a step of a suggestion: its first line is read as a step's line, the rest is the brief.

    Dependencies on steps that the plan does not have are left out.
    """
    first, _, rest = suggestion.strip().partition("\n")
    title = read_title(first.strip())
    known = plan.by_id
    step_id = next_free_id(plan)
    names = title.attributes.specialists or ()
    condition = title.attributes.condition
    return PlanStep(
        id=step_id,
        description=title.description or f"Step {step_id}",
        brief=rest.strip(),
        assigned_to="".join(names[:1]),
        joined_by=names[1:],
        priority=title.attributes.priority or 0,
        dependencies=tuple(
            other for other in title.attributes.dependencies or () if other in known
        ),
        condition=condition if condition is not None and condition.step in known else None,
        optional=bool(title.attributes.optional),
        max_retries=title.attributes.max_retries,
        timeout=title.attributes.timeout,
        writes=title.attributes.writes or (),
    )


def modify_existing_step(plan: TaskPlan, suggestion: str) -> PlanStep | None:
    """Add a suggestion to the brief of the step that it is about.

    That is the step that it names ("step 3"), else the first failed one, else the first open one.

    Returns:
        The changed step; none if every step is finished.
    """
    known = plan.by_id
    named = [known[number] for number in step_numbers(suggestion) if number in known]
    failed = [step for step in plan.steps if step.status is StepStatus.FAILED]
    candidates = [*named, *failed, *plan.open_steps()]
    step = next((step for step in candidates if not step.is_finished), None)
    if step is None or not suggestion.strip():
        return None
    return step.replace(brief="\n\n".join(filter(None, [step.brief, suggestion.strip()])))


def reorder_steps(plan: TaskPlan) -> TaskPlan:
    """Put the steps into an order in which they can run, the more urgent first."""
    return plan.replace(steps=run_order(plan))


def _from_document(plan: TaskPlan, text: str) -> Sequence[PlanChange] | None:
    new = matched(plan, PlanDocument.recover(text, known=plan.by_id.keys()).plan)
    gone = {step.id for step in new.steps if step.status is StepStatus.SKIPPED}
    gone -= {step.id for step in plan.steps if step.is_finished}
    return difference(plan, taken_over(plan, new, gone)[0]) if new.steps else None


def _from_suggestion(plan: TaskPlan, feedback: PlanFeedback) -> Sequence[PlanChange]:
    suggestion = feedback.plan_update_suggestion
    match feedback.plan_update_type:
        case PlanUpdateType.ADD_STEP:
            step = create_step_from_feedback(plan, suggestion)
            return [AddStep(step=step, index=plan.total_steps)] if suggestion.strip() else []
        case PlanUpdateType.MODIFY_STEP:
            modified = modify_existing_step(plan, suggestion)
            return [] if modified is None else difference(plan, plan.with_steps(modified))
        case PlanUpdateType.REMOVE_STEP:
            return _removals(plan, set(step_numbers(suggestion)))
        case PlanUpdateType.REORDER_STEPS:
            return difference(plan, reorder_steps(plan))
        case PlanUpdateType.MODIFY_PLAN | None:
            return []
        case _:
            assert_never(feedback.plan_update_type)


def _removals(plan: TaskPlan, named: set[int]) -> Sequence[PlanChange]:
    """Remove steps, and what others wait for them."""
    gone = {step.id for step in plan.steps if step.id in named and not step.is_finished}
    changes: list[PlanChange] = []
    for step in plan.steps:
        if step.id not in gone and not step.is_finished and gone & set(step.awaits):
            lost = step.condition is not None and step.condition.step in gone
            kept = [other for other in step.dependencies if other not in gone]
            fields = {"dependencies": kept, **({"condition": None} if lost else {})}
            changes.append(ModifyStep.model_validate({"step_id": step.id, "fields": fields}))
    return [*changes, *(RemoveStep(step_id=step_id) for step_id in sorted(gone))]
