"""Why a run ended, or has its status: the limit, the steps, the judgement, or who stopped it."""

from replan.log.report import RunReport
from replan.runs.step_status import INCOMPLETE, failures, not_run
from replan.state.cuts import CUTS
from replan.views.cells import counted, one_line
from replan.views.run.error_lines import error_of
from replan.views.run.history import time_text

_KEPT_FOR_ANSWER = ("max_cost", "max_model_calls", "max_seconds", "max_tokens")


def why_ended(report: RunReport, *, has_failures: bool = True) -> str:
    """Why a run ended, or has its status, in a sentence.

    Without `has_failures`, what is to be said beside the steps that failed.
    """
    pauses = report.pauses
    if report.outcome == "running":
        return (
            f"it waits for {counted(len(report.pending_questions), 'answer')}"
            if report.pending_questions
            else ""
        )
    if not report.limit_reached and pauses and pauses[-1].ended is None:
        return _stopped_why(report)
    limit = [_limit_why(report)] if report.limit_reached else []
    failed, left = _undone(report, has_limit=bool(limit))
    if limit or failed or left:
        return "; ".join([*limit, *(failed if has_failures else ()), *left])
    if report.outcome == "rejected":
        return _rejected_why(report)
    judged = report.fold.judged
    return one_line(judged.text) if judged else ""


def _rejected_why(report: RunReport) -> str:
    """Who rejected the plan, and why."""
    decision = report.fold.decision
    by = one_line(decision.by) if decision else ""
    why = one_line(decision.text) if decision else ""
    return f"{by or 'a person'} rejected the plan{why and f': {why}'}"


def _limit_why(report: RunReport) -> str:
    """The limit that was reached, its value, and why less than that was used."""
    limit = report.limit_reached
    own = (each for each in report.fold.limits if each.scope == "run")
    reached = [each for each in own if each.limit == limit]
    why = one_line(reached[-1].reason) if reached else ""
    if limit in CUTS:
        return f"{CUTS[limit]}{why and f': {why}'}"
    if not reached:
        return f"{one_line(limit)} was reached"
    value = reached[-1].value
    number = f"{value:.0f}" if value == int(value) else f"{value:g}"
    if why:
        return f"{one_line(limit)}={number} was reached: {why}"
    kept = "; a part of it is kept for the answer" if limit in _KEPT_FOR_ANSWER else ""
    return f"{one_line(limit)}={number} was reached{kept}"


def _undone(report: RunReport, *, has_limit: bool) -> tuple[list[str], list[str]]:
    """The steps that failed, with the reason, or did not run, if a run missed its goal."""
    if report.outcome not in INCOMPLETE:
        return [], []
    failed = failures([(each.step, error_of(each)) for each in report.planned])
    return failed, [] if failed or has_limit else not_run([each.step for each in report.planned])


def _stopped_why(report: RunReport) -> str:
    last, at = report.pauses[-1], time_text(report.pauses[-1].began, report.began)
    keys = {each.key for each in report.pending_questions}
    asked_at = [moment for key, moment in report.fold.asked_at.items() if key in keys]
    stopped = report.fold.stopped
    match last.why:
        case "waiting":
            since = time_text(asked_at[0], report.began) if asked_at else at
            return f"it waits for {counted(len(report.pending_questions), 'answer')}, since {since}"
        case "interrupted":
            by = one_line(stopped.by) if stopped else ""
            return f"it was stopped at {at}{f' by {by}' if by else ''}"
        case "failed":
            return f"it broke off at {at}: {one_line(stopped.error) if stopped else ''}"
        case _ if report.pending_questions:
            # A killed process could not say when it ended.
            asked = counted(len(report.pending_questions), "answer")
            return (
                f"it waits for {asked}; when its process ended is unknown, at {at} at the earliest"
            )
        case _:
            return f"its process was killed, at {at} at the earliest"
