"""A run as JSON for programs."""

from typing import Any

from replan.log.calls import with_counted
from replan.log.step_reports import StepReport
from replan.runs.asked.pending import PendingQuestion
from replan.runs.reports import WholeReport
from replan.runs.usage import Usage


def run_record(run: WholeReport) -> dict[str, Any]:
    """All of a run but its long texts."""
    plan, used = run.plan, with_counted(run.usage, run.calls)
    kept = run.model_dump(
        mode="json", exclude={"plan", "events", "texts", "pending_questions", "usage"}
    )
    return {
        **kept,
        "seconds": round(run.seconds, 3),
        "idle_seconds": round(run.idle, 3),
        "waiting_seconds": round(run.waited, 3),
        "unknown_seconds": round(run.unknown, 3),
        "usage": {
            **Usage.of(run.calls, run.currency).model_dump(),
            "by": {name: count.model_dump(mode="json") for name, count in used.by.items()},
        },
        "plan": plan and {"version": plan.version, "markdown": plan.content},
        "steps": [_step(step, run.currency) for step in run.steps],
        "pending_questions": [
            PendingQuestion.of(question).model_dump(mode="json")
            for question in run.pending_questions
        ],
        "answered_questions": [
            question.model_dump(mode="json")
            for question in run.questions.values()
            if not question.is_open
        ],
        "history": [
            update.model_dump(mode="json") for update in (plan.update_history if plan else ())
        ],
        "ledger": [attempt.record for attempt in run.attempts],
        "events": [event.model_dump(mode="json") for event in run.events],
    }


def _step(each: StepReport, currency: str) -> dict[str, Any]:
    step = each.step
    return {
        "step": step.id,
        "description": step.description,
        "status": "removed" if each.removed else each.status_text,
        "specialists": list(each.specialists),
        "after": list(step.awaits),
        "started_at": each.began and each.began.isoformat(),
        "seconds": each.seconds,
        "attempts": len(each.attempts),
        "tools": len(each.tools),
        "usage": Usage.of(each.calls, currency).model_dump(),
    }
