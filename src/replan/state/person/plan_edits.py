"""What a person edits in the state: the plan's document, or its steps, never two that disagree.

In Studio or by `update_state`: an edit is honoured or refused, with the places of its mistakes.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from langgraph.errors import InvalidUpdateError

from replan.plan.changes import unstarted
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.rendering import VISIBLE, render
from replan.plan.markdown.writing import shows
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.state.channels import checked
from replan.state.step_options import option_mistakes
from replan.state.team import SpecialistCard, refusal_text, unknown_names

KEY = "current_plan"
"""The key of the state with the plan."""

_OUTCOME_FIELDS = ("status", "result", "feedback")
"""The fields of a document that show a step's outcome; the others are its task."""


def edited_plan(before: TaskPlan | None, edit: Any, team: Sequence[SpecialistCard]) -> TaskPlan:
    """Return the plan that an edit makes of the plan that is there.

    Raises:
        InvalidUpdateError: Names every mistake of the edit with its place, and unknown names.
    """
    plan: TaskPlan = checked(KEY, TaskPlan, edit)
    if refusals := "\n".join(_refusals(before, plan, team)):
        raise InvalidUpdateError(f"State key '{KEY}' cannot take this plan.\n{refusals}")
    return _with_edited_document(before, plan)


def _with_edited_document(before: TaskPlan | None, plan: TaskPlan) -> TaskPlan:
    if not _has_edited_document(before, plan):
        return plan
    old = before or TaskPlan()
    document = PlanDocument.recover(plan.content).plan
    shown = PlanDocument.recover(old.content).plan.by_id
    steps = tuple(
        _edited_step(step, old.by_id.get(step.id), shown.get(step.id)) for step in document.steps
    )
    whole = plan if plan.steps else old.replace(**dict(_set_fields(plan)))
    return whole.replace(steps=steps, title=document.title)


def _has_edited_document(before: TaskPlan | None, plan: TaskPlan) -> bool:
    if not plan.content.strip():
        return False
    old = before or TaskPlan()
    is_edited = plan.content != old.content and not (plan.steps and plan.steps != old.steps)
    return (is_edited or not plan.steps) and not shows(plan)


def _set_fields(plan: TaskPlan) -> Iterator[tuple[str, Any]]:
    empty = TaskPlan()
    yield from ((name, value) for name, value in plan if value != getattr(empty, name))


def _edited_step(new: PlanStep, old: PlanStep | None, shown: PlanStep | None) -> PlanStep:
    """Return a step as a document has it now; what that does not show stays."""
    if old is None or shown is None:
        return new
    changed = _changed(shown, new)
    if not changed:
        return old
    step = old.replace(**{name: getattr(new, name) for name in changed})
    is_again = old.status is StepStatus.FAILED and not changed <= set(_OUTCOME_FIELDS)
    is_open = new.status is StepStatus.PENDING
    if (is_open and "status" in changed) or (is_again and "status" not in changed):
        return unstarted(step)
    return step


def _changed(shown: PlanStep, new: PlanStep) -> set[str]:
    return {name for name in VISIBLE if getattr(shown, name) != getattr(new, name)}


def _refusals(
    before: TaskPlan | None, plan: TaskPlan, team: Sequence[SpecialistCard]
) -> Iterator[str]:
    """Explain why an edit is refused: its mistakes, and its unknown names."""
    if before is None and plan.steps:
        return
    old = before or TaskPlan()
    if not _has_edited_document(before, plan):
        yield from _refusals_of_steps(old, plan, team)
        return
    document = PlanDocument.recover(plan.content)
    yield from map(str, (*document.mistakes, *option_mistakes(document, old)))
    if plan.title not in ("", old.title, document.plan.title):
        yield "Its document and its title say different things. Change one of them."
    yield from _changed_finished_steps(old, document)
    fresh = [step for step in _with_edited_document(before, plan).steps if step not in old.steps]
    yield from (refusal_text(refusal, document) for refusal in unknown_names(fresh, team))


def _refusals_of_steps(
    old: TaskPlan, plan: TaskPlan, team: Sequence[SpecialistCard]
) -> Iterator[str]:
    """Explain why a plan with other steps is refused; those have no place in a document."""
    if plan.content not in ("", old.content) and not shows(plan):
        yield "Its document and its steps say different things. Change one of them."
    for mistake in PlanDocument.recover(render(plan)).mistakes:
        yield f"{mistake.reason} {mistake.fix}"
    fresh = [step for step in plan.steps if step not in old.steps]
    yield from (
        f"Step {refusal.step_id} {refusal.reason}" for refusal in unknown_names(fresh, team)
    )


def _changed_finished_steps(old: TaskPlan, document: PlanDocument) -> Iterator[str]:
    """Name which finished steps are asked something else and not marked as open."""
    shown = PlanDocument.recover(old.content).plan.by_id
    for step in document.plan.steps:
        before = shown.get(step.id)
        is_done = before is not None and before.is_finished and step.is_finished
        if before is not None and is_done and not _changed(before, step) <= set(_OUTCOME_FIELDS):
            yield (
                f"line {document.line_of(step.id)}: step {step.id} is {before.status.value}. "
                "Mark it [ ] to have it done again, or add a new step."
            )
