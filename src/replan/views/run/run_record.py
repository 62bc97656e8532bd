"""A run as JSON for programs."""

from typing import Any, cast

from replan.runs.course.attempts import attempts_of
from replan.runs.course.story import StepStory, story_of
from replan.runs.course.whole_run import WholeRun
from replan.runs.log.call_counts import Calls


def run_record(run: WholeRun) -> dict[str, Any]:
    """All of a run but its long texts."""
    story, plan = story_of(run), run.plan
    kept = run.model_dump(
        mode="json", exclude={"plan", "events", "texts", "pending_questions", "ledger"}
    )
    return {
        **kept,
        "seconds": round(story.seconds, 3),
        "idle_seconds": round(story.idle, 3),
        "waiting_seconds": round(story.waited, 3),
        "unknown_seconds": round(story.unknown, 3),
        "calls": _calls(story.calls),
        "plan": plan and {"version": plan.version, "markdown": plan.content},
        "steps": [_step(each) for each in story.steps],
        "pending_questions": [
            {"key": ask.key, "kind": ask.kind, "text": ask.text, "details": ask.details}
            for ask in run.pending_questions
        ],
        "answered_questions": [
            each.model_dump(mode="json") for each in run.questions.values() if not each.is_open
        ],
        "history": [each.model_dump(mode="json") for each in (plan.update_history if plan else ())],
        "ledger": [
            {**each.entry.model_dump(mode="json", exclude={"run_id"}), "outcome": each.outcome}
            for each in attempts_of(run)
        ],
        "events": [
            {"at": each.at and each.at.isoformat(timespec="milliseconds"), "round": each.round}
            | {"type": each.type, **cast("dict[str, Any]", each.details), "seq": each.seq}
            for each in run.events
        ],
        "artifacts": [each.model_dump(mode="json") for each in run.artifacts],
    }


def _step(story: StepStory) -> dict[str, Any]:
    step = story.step
    return {
        "step": step.id,
        "description": step.description,
        "status": "removed" if story.removed else story.status_text,
        "specialists": list(story.specialists),
        "after": list(step.awaits),
        "started_at": story.began and story.began.isoformat(),
        "seconds": story.seconds,
        "attempts": len(story.attempts),
        "tools": len(story.tools),
        "calls": _calls(story.calls),
    }


def _calls(calls: Calls) -> dict[str, Any]:
    return {
        "number": calls.number,
        "tokens": calls.tokens,
        "cost": calls.cost,
        "uncounted_cost": calls.uncounted_cost,
        "unfinished": calls.unfinished,
        "unfinished_cost": calls.unfinished_cost,
    }
