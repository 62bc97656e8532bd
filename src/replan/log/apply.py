"""The report of a run after one more event: one pure function, for live events and kept ones."""

from typing import Any, TypeVar

from replan.log.calls import with_counted
from replan.log.events.types import (
    AnswerReceived,
    AnswerReset,
    AnswerToken,
    ApprovalRequested,
    Event,
    InputRequested,
    PhaseEntered,
    PlanEvent,
    RunResumed,
    RunStopped,
    SpecialistCompleted,
    SpecialistInvoked,
    SpecialistToken,
    StepEvent,
    StepsInvalidated,
    TaskCompleted,
)
from replan.log.fold import Fold
from replan.log.report import RunReport
from replan.plan.model import StepStatus, TaskPlan
from replan.state.questions import Question

Report = TypeVar("Report", bound=RunReport)

PENDING = StepStatus.PENDING


def apply(report: Report, event: Event) -> Report:
    """Return the report of a run after one more event; the former one is as it was.

    What the events told so far is handed on, so that a long run is not folded again for each. Of a
    live event also what is in no log counts: a plan, a question, a piece of text.
    """
    fold = report.fold
    match event:
        case SpecialistToken():
            text = report.drafts.get(_step_and_specialist(event), "") + event.text
            changed: dict[str, Any] = {
                "drafts": {**report.drafts, _step_and_specialist(event): text}
            }
        case AnswerToken():
            changed = {"answer": report.answer + event.text}
        case _:
            changed = _facts_after(report, event)
            changed["events"] = (*report.events, event)
            changed["last_seen_at"] = max(report.last_seen_at, event.at or report.last_seen_at)
            fold.apply(event)
            plan = changed.get("plan", report.plan)
            changed["plan"] = plan and _plan_after(plan, event, fold)
    # The former report folds its own events, if it is asked again.
    del vars(report)["fold"]
    after = report.model_copy(update=changed)
    vars(after)["fold"] = fold
    return after


def _facts_after(report: RunReport, event: Event) -> dict[str, Any]:  # noqa: PLR0911 - one for each kind
    """What an event changes beside the events."""
    match event:
        case RunStopped() | RunResumed():
            return {"outcome": event.outcome, "drafts": {}}
        case TaskCompleted():
            return _facts_at_end(report, event)
        case AnswerReset():
            return {"answer": ""}
        case StepEvent() | PhaseEntered():
            # Whatever else a step does ends what it wrote.
            others = {
                at: text for at, text in report.drafts.items() if at != _step_and_specialist(event)
            }
            return {"drafts": others, **_facts_of_step(report, event)}
        case PlanEvent(plan=TaskPlan() as plan):
            return {"plan": plan}
        case ApprovalRequested(question=Question() as asked):
            return {"pending_questions": (*report.questions_without(asked.key), asked)}
        case AnswerReceived():
            return {"pending_questions": report.questions_without(event.key)}
        case _:
            return {}


def _facts_at_end(report: RunReport, event: TaskCompleted) -> dict[str, Any]:
    facts: dict[str, Any] = {"outcome": event.outcome, "warnings": event.warnings}
    if event.answer is None:
        return facts  # It is read from a log, which has no more.
    usage = with_counted(event.usage, report.calls)
    return {**facts, "answer": event.text, "output": event.output, "usage": usage}


def _facts_of_step(report: RunReport, event: StepEvent | PhaseEntered) -> dict[str, Any]:
    match event:
        case SpecialistInvoked():
            return {"answered": report.answered - {event.step_id}}
        case InputRequested(question=Question() as asked):
            question = asked.replace(step_id=event.step_id)
            questions = (*report.questions_without(asked.key), question)
            return {"pending_questions": questions, "answered": report.answered - {event.step_id}}
        case SpecialistCompleted() if event.result is not None:
            files = {
                artifact.path: artifact for artifact in (*report.artifacts, *event.result.artifacts)
            }
            return {"artifacts": tuple(files.values())}
        case _:
            return {}


def _step_and_specialist(event: StepEvent | PhaseEntered) -> tuple[int, str]:
    return event.step_id or 0, event.specialist


def _plan_after(plan: TaskPlan, event: Event, fold: Fold) -> TaskPlan:
    """The plan with the marks that its next version will have."""
    match event:
        case StepsInvalidated():
            again = (plan.by_id[rerun.step] for rerun in event.reruns if rerun.step in plan.by_id)
            return plan.with_steps(*(step.replace(status=PENDING, feedback="") for step in again))
        case SpecialistCompleted() if event.step_id in plan.by_id:
            return plan.with_steps(fold.marked(plan.by_id[event.step_id], event.error))
        case PlanEvent() if event.plan is not None:
            # Some of its steps may be done: they began before it was complete.
            early = (step for step in plan.open_steps() if fold.end_of(step) is not None)
            return plan.with_steps(*map(fold.marked, early))
        case _:
            return plan
