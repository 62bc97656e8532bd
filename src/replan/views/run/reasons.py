"""Why a run ended, or has its status: the limit, the steps, the judgement, or who stopped it."""

from replan.runs.course.story import Story
from replan.runs.step_status import INCOMPLETE, failures, not_run
from replan.state.cuts import CUTS
from replan.views.cells import counted, one_line
from replan.views.run.error_lines import error_of
from replan.views.run.history import time_text

_KEPT_FOR_ANSWER = ("max_cost", "max_model_calls", "max_seconds", "max_tokens")


def why_ended(story: Story, *, has_failures: bool = True) -> str:
    """Why a run ended, or has its status, in a sentence.

    Without `has_failures`, what is to be said beside the steps that failed.
    """
    run, pauses = story.run, story.pauses
    if run.outcome == "running":
        return (
            f"it waits for {counted(len(run.pending_questions), 'answer')}"
            if run.pending_questions
            else ""
        )
    if not run.limit_reached and pauses and pauses[-1].ended is None:
        return _stopped_why(story)
    limit = [_limit_why(story)] if run.limit_reached else []
    failed, left = _undone(story, has_limit=bool(limit))
    if limit or failed or left:
        return "; ".join([*limit, *(failed if has_failures else ()), *left])
    if run.outcome == "rejected":
        return _rejected_why(story)
    judged = [e.details for e in run.events if e.type == "feedback_generated"]
    return one_line(str(judged[-1].get("feedback", ""))) if judged else ""


def _rejected_why(story: Story) -> str:
    """Who rejected the plan, and why."""
    answers = (e.details for e in story.run.events if e.type == "answer_received")
    decided = [each for each in answers if each.get("kind") == "plan"]
    by, why = (
        one_line(str(decided[-1].get(name) or "")) if decided else "" for name in ("by", "text")
    )
    return f"{by or 'a person'} rejected the plan{f': {why}' if why else ''}"


def _limit_why(story: Story) -> str:
    """The limit that was reached, its value, and why less than that was used."""
    limit = story.run.limit_reached
    own = (e.details for e in story.run.events if e.type == "limit_reached")
    reached = [e for e in own if (e.get("limit"), e.get("scope")) == (limit, "run")]
    if limit in CUTS:
        why = one_line(str(reached[-1].get("reason") or "")) if reached else ""
        return f"{CUTS[limit]}{why and f': {why}'}"
    value = reached[-1].get("value") if reached else None
    if not isinstance(value, int | float):
        return f"{one_line(limit)} was reached"
    number = f"{value:.0f}" if value == int(value) else f"{value:g}"
    if why := one_line(str(reached[-1].get("reason") or "")):
        return f"{one_line(limit)}={number} was reached: {why}"
    kept = "; a part of it is kept for the answer" if limit in _KEPT_FOR_ANSWER else ""
    return f"{one_line(limit)}={number} was reached{kept}"


def _undone(story: Story, *, has_limit: bool) -> tuple[list[str], list[str]]:
    """The steps that failed, with the reason, or did not run, if a run missed its goal."""
    if story.run.outcome not in INCOMPLETE:
        return [], []
    failed = failures([(each.step, error_of(each)) for each in story.planned])
    return failed, [] if failed or has_limit else not_run([each.step for each in story.planned])


def _stopped_why(story: Story) -> str:
    last, at = story.pauses[-1], time_text(story.pauses[-1].began, story.began)
    keys = {each.key for each in story.run.pending_questions}
    asked_at = [e.at for e in story.run.events if e.details.get("key") in keys and e.at]
    stops = [e.details for e in story.run.events if e.type == "run_stopped"]
    match last.why:
        case "waiting":
            since = time_text(asked_at[0], story.began) if asked_at else at
            return (
                f"it waits for {counted(len(story.run.pending_questions), 'answer')}, since {since}"
            )
        case "interrupted":
            by = one_line(str(stops[-1].get("by", "")))
            return f"it was stopped at {at}{f' by {by}' if by else ''}"
        case "failed":
            return f"it broke off at {at}: {one_line(str(stops[-1].get('error', '')))}"
        case _ if story.run.pending_questions:
            # A killed process could not say when it ended.
            asked = counted(len(story.run.pending_questions), "answer")
            return (
                f"it waits for {asked}; when its process ended is unknown, at {at} at the earliest"
            )
        case _:
            return f"its process was killed, at {at} at the earliest"
