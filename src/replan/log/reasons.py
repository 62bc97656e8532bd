"""Why a run ended, or has its status, in the words that all doors use."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from replan.base.texts.signs import one_line
from replan.log.events.types import ToolInvoked
from replan.log.fold import Fold, Pause
from replan.log.labels import VERSION
from replan.log.step_reports import StepReport
from replan.plan.model import PlanStep, StepStatus
from replan.state.outcomes import CUTS, INCOMPLETE, RunOutcome
from replan.state.questions import Question

_MOST_FAILURES = _MOST_CUT_OFF = 3
_KEPT_FOR_ANSWER = ("max_cost", "max_model_calls", "max_seconds", "max_tokens")


class Reported(Protocol):
    """What of the report of a run tells why it ended.

    To a type checker, a cached property is not a property of a protocol, so callers cast.
    """

    @property
    def outcome(self) -> RunOutcome: ...
    @property
    def limit_reached(self) -> str: ...
    @property
    def currency(self) -> str: ...
    @property
    def labels(self) -> Mapping[str, str]: ...
    @property
    def unanswered(self) -> Sequence[Question]: ...
    @property
    def pauses(self) -> Sequence[Pause]: ...
    @property
    def planned(self) -> Sequence[StepReport]: ...
    @property
    def fold(self) -> Fold: ...


def _failures(steps: Sequence[tuple[PlanStep, str]]) -> list[str]:
    """Name which steps failed, each with its reason, which may be empty."""
    failed = [
        step_and_reason
        for step_and_reason in steps
        if step_and_reason[0].status is StepStatus.FAILED
    ]
    failures = [f"step {step.id} failed{f': {why}' if why else ''}" for step, why in failed]
    more = (
        [f"{len(failures) - _MOST_FAILURES} more failed"] if len(failures) > _MOST_FAILURES else []
    )
    return [*failures[:_MOST_FAILURES], *more]


def _not_run(steps: Sequence[PlanStep]) -> list[str]:
    left = [str(step.id) for step in steps if step.status is not StepStatus.COMPLETED]
    verb = "step {} was" if len(left) == 1 else "steps {} were"
    return [f"{verb.format(', '.join(left))} not run"] if left else []


def why_ended(
    report: Reported, *, when: Callable[[datetime], str] | None = None, has_failures: bool = True
) -> str:
    """Why a run ended, or has its status, in a sentence; `when` writes the times in it.

    Without `has_failures`, what is to be said beside the steps that failed.
    """
    pauses = report.pauses
    if report.outcome == "running":
        return _waits(report) if report.unanswered else ""
    if not report.limit_reached and pauses and pauses[-1].ended is None:
        return _stopped_why(report, when)
    limit = [_limit_why(report)] if report.limit_reached else []
    failed, left = _undone(report, has_limit=bool(limit))
    if limit or failed or left:
        return "; ".join([*limit, *(failed if has_failures else ()), *left])
    if report.outcome == "rejected":
        return _rejected_why(report)
    judged = report.fold.judged
    reasons = [one_line(judged.text)] if judged and judged.text else []
    if has_failures:
        # What failed in spite of which it is complete was optional.
        reasons += _failures([(step.step, one_line(step.error)) for step in report.planned])
    return "; ".join(reasons)


def _rejected_why(report: Reported) -> str:
    """Who rejected the plan, and why."""
    decision = report.fold.decision
    by = one_line(decision.by) if decision else ""
    why = one_line(decision.text) if decision else ""
    return f"{by or 'a person'} rejected the plan{why and f': {why}'}"


def _limit_why(report: Reported) -> str:
    """The limit that was reached, its value, and why less than that was used."""
    limit = report.limit_reached
    limits_of_run = (event for event in report.fold.limits if event.scope == "run")
    reached = [event for event in limits_of_run if event.limit == limit]
    why = one_line(reached[-1].reason) if reached else ""
    if limit in CUTS:
        return f"{CUTS[limit]}{why and f': {why}'}"
    if not reached:
        return f"{one_line(limit)} was reached"
    value = reached[-1].value
    number = f"{value:.0f}" if value == int(value) else f"{value:g}"
    number += f" {report.currency}".rstrip() if limit == "max_cost" else ""
    if why:
        return f"{one_line(limit)}={number} was reached: {why}"
    kept = "; a part of it is kept for the answer" if limit in _KEPT_FOR_ANSWER else ""
    return f"{one_line(limit)}={number} was reached{kept}"


def _undone(report: Reported, *, has_limit: bool) -> tuple[list[str], list[str]]:
    """The steps that failed, with the reason, or did not run, if a run missed its goal."""
    if report.outcome not in INCOMPLETE:
        return [], []
    failed = _failures([(step.step, one_line(step.error)) for step in report.planned])
    return failed, [] if failed or has_limit else _not_run([step.step for step in report.planned])


def _stopped_why(report: Reported, when: Callable[[datetime], str] | None) -> str:
    pause, stopped = report.pauses[-1], report.fold.stopped

    def at(words: str, moment: datetime = pause.began) -> str:
        return words.format(when(moment)) if when else ""

    match pause.why:
        case "waiting":
            keys = {question.key for question in report.unanswered}
            times = [moment for key, moment in report.fold.asked_at.items() if key in keys]
            return f"{_waits(report)}{at(', since {}', *times[:1]) if keys else ''}"
        case "interrupted":
            by = one_line(stopped.by) if stopped else ""
            return f"it was stopped{at(' at {}')}{by and f' by {by}'}{_cut_off(report)}"
        case "failed":
            return f"it broke off{at(' at {}')}: {one_line(stopped.error) if stopped else ''}"
        case _ if report.unanswered:
            # A killed process could not say when it ended.
            unknown = "; when its process ended is unknown, at {} at the earliest"
            return f"{_waits(report)}{at(unknown)}"
        case _ if VERSION in report.labels:
            return f"it waits in the queue for a worker{_cut_off(report)}"
        case _:
            return f"its process was killed{at(', at {} at the earliest')}{_cut_off(report)}"


def _cut_off(report: Reported) -> str:
    """Which steps were cut off, and in which calls of tools."""
    reasons = list[str]()
    for step in (step for step in report.planned if step.is_cut_off):
        calls = step.attempts[-1].calls
        tools = dict.fromkeys(call.tool for call in calls if isinstance(call, ToolInvoked))
        where = f" in its call of {', '.join(map(one_line, tools))}" if tools else ""
        reasons.append(f"; step {step.step.id} was cut off{where}")
    more = f"; {len(reasons) - _MOST_CUT_OFF} more were" if len(reasons) > _MOST_CUT_OFF else ""
    return f"{''.join(reasons[:_MOST_CUT_OFF])}{more}"


def _waits(report: Reported) -> str:
    number = len(report.unanswered)
    if not number:
        return "what it asked is answered; it has not continued since"
    return f"{number} answer{'' if number == 1 else 's'} needed"
