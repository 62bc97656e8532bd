"""What a person sees of a plan that waits, and says of it; only the newest answer counts, once."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from difflib import unified_diff
from itertools import count
from typing import TypeVar

from langgraph.errors import GraphInterrupt
from langgraph.types import interrupt

from replan.base.errors import InputError, PlanChangeError, PlanDocumentError, Refusal
from replan.log.run_log import RunLog
from replan.nodes.host.plan_texts import with_fitting_document, with_team_names
from replan.plan.applying import apply
from replan.plan.changes import aligned, difference, unstarted
from replan.plan.markdown.document import PlanDocument
from replan.plan.model import PlanStep, StepStatus, TaskPlan
from replan.plan.statuses import with_statuses
from replan.state.limits import RunSettings
from replan.state.person.reviews import interrupt_about, schema_of
from replan.state.questions import PLAN, Question, fingerprint_of
from replan.state.step_options import plan_mistakes
from replan.state.team import SpecialistCard

T = TypeVar("T")

REFUSED = "refused/"
"""The prefix of notes that say why an answer could not be used."""


class RepeatedAnswerError(Exception):
    """An answer that was used before: an outer graph delivers it again with a newer one."""


async def newest_answer(
    log: RunLog,
    run_id: str,
    place: str,
    ask: Callable[[str, object], Sequence[Question]],
    judge: Callable[[object], T],
) -> T:
    """Ask until the newest answer can be used, and return its outcome.

    Each resumption delivers all answers again. A refused one stays refused, even if the team or
    the state has changed since.

    Args:
        log: Where refusals are on record.
        run_id: The run.
        place: What is asked, and at which checkpoint the answers are counted.
        ask: Gives what is asked, by the problem of the last answer and that answer.
        judge: Gives the outcome of an answer, or raises an error that says why it cannot be used,
            or that it was used before.
    """
    refused = await log.notes(run_id, place := f"{REFUSED}{place}/")
    newest, problem, last = list[T](), "", object()
    for number in count(1):
        questions = ask(problem, last)
        try:
            # The schema is for clients that draw a form: LangGraph checks nothing.
            last = interrupt(interrupt_about(questions), response_schema=schema_of(questions))
        except GraphInterrupt:
            if not newest:
                raise
            return newest[0]
        key = f"{place}{number}"
        before, newest, problem = newest, [], str(refused.get(key, ""))
        if problem:
            continue
        try:
            newest = [judge(last)]
        except RepeatedAnswerError:
            newest = before
        except InputError as error:
            # It may quote half of a character, which no storage takes.
            problem = str(error).encode("utf-8", "replace").decode()
            await log.note(run_id, key, problem)
    raise AssertionError("unreachable")  # pragma: no cover - counting does not end


BY_PERSON = "Changed by a person."
"""The reason in the plan's history for a document that a person changed at approval."""

_CONTEXT = 2


def first_plan_waits(settings: RunSettings, *, by_model: bool) -> bool:
    """Whether a new plan needs approval; a person's plan only if all plans do."""
    return settings.approval == "always" or (settings.approval == "plan" and by_model)


def revision_waits(settings: RunSettings) -> bool:
    return settings.approval in ("revisions", "always")


def approval_of(
    plan: TaskPlan, current_round: int, *, before: TaskPlan | None = None, reason: str = ""
) -> Question:
    """Ask whether a plan may run; of a revision, show the difference from the previous plan."""
    # A plan may come back unchanged after it was rejected, so the round counts.
    is_first = (plan.version, current_round) == (1, 1)
    key = PLAN if is_first else f"{PLAN}/{plan.version}/{current_round}"
    old = [] if before is None else before.content.splitlines()
    lines = unified_diff(old, plan.content.splitlines(), "before", "after", n=_CONTEXT, lineterm="")
    changes = "" if before is None else "\n".join(lines)
    return Question(
        key=key,
        kind="plan",
        text=plan.content,
        details={"version": plan.version, "reason": reason, "changes": changes},
        fingerprint=fingerprint_of(key, plan.version, plan.content),
    )


def changed_by_person(
    plan: TaskPlan, text: str, team: Sequence[SpecialistCard] | None, at: datetime
) -> TaskPlan:
    """Take a person's changed document byte for byte: all of it, or nothing and every mistake."""
    if not text.strip():
        raise InputError("The changed plan is missing. Give the whole document under 'plan'.")
    # A person may change what the model may not.
    old = plan.replace(allow_dynamic_update=True)
    document = PlanDocument.recover(text)
    mistakes = plan_mistakes(document, team, plan)
    if document.mistakes:
        # What cannot be read may be missing among the steps: their changes say nothing yet.
        raise PlanDocumentError(mistakes)
    new = aligned(old, document.plan)
    new = new.replace(steps=tuple(_with_names(step, old, team or ()) for step in new.steps))
    refused = [*_changed_finished_steps(old, new)]
    changed = old
    try:
        changed = apply(
            old, difference(old, new), at=at, by="person", description=BY_PERSON, team=None
        )
    except PlanChangeError as error:
        refused += error.refusals
    if refused:
        reasons = [_with_line(refusal, document) for refusal in refused]
        raise InputError("\n".join([*reasons, *map(str, mistakes)]))
    if mistakes:
        raise PlanDocumentError(mistakes)
    marked = [
        _with_mark(changed.step(step.id), step)
        for step in new.steps
        if step.id in old.by_id and _shown_status(step) is not _shown_status(old.step(step.id))
    ]
    changed = with_statuses(changed, marked, at)
    return with_fitting_document(
        changed.replace(content=text, allow_dynamic_update=plan.allow_dynamic_update)
    )


def _with_line(refusal: Refusal, document: PlanDocument) -> str:
    """A refusal with the line of its step, if the document has the step."""
    line = None if refusal.step_id is None else document.line_of(refusal.step_id)
    return refusal.reason if line is None else f"line {line}: {refusal.reason}"


def _with_names(step: PlanStep, old: TaskPlan, team: Sequence[SpecialistCard]) -> PlanStep:
    before = old.by_id.get(step.id)
    duration = None if before is None else before.estimated_duration
    return with_team_names(step, team).replace(estimated_duration=duration)


def _changed_finished_steps(old: TaskPlan, new: TaskPlan) -> Iterator[Refusal]:
    """Changes of a document to finished steps, and others that a plan cannot take."""
    steps, shown = new.by_id, PlanDocument.recover(old.content).plan.by_id
    for step in old.steps:
        if not step.is_finished or step.id not in steps:
            continue
        now, problem = steps[step.id], ""
        if _shown_status(now) is not step.status:
            problem = f"is {step.status.value} and cannot be taken back. Leave its mark"
        elif step.id in shown and now.result.split() != shown[step.id].result.split():
            problem = f"is {step.status.value}, so its result stays as it is. Leave it"
        if problem:
            reason = f"Step {step.id} {problem}, and add a new step."
            yield Refusal(code="finished_step", step_id=step.id, reason=reason)


def _with_mark(step: PlanStep, shown: PlanStep) -> PlanStep:
    if _shown_status(shown) is StepStatus.PENDING:
        return unstarted(step)
    return step.replace(status=shown.status, result=shown.result, feedback=shown.feedback)


def _shown_status(step: PlanStep) -> StepStatus:
    return StepStatus.PENDING if step.status.is_open else step.status
