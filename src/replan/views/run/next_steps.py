"""What a person can type next about a run, as commands."""

from collections.abc import Iterator

from replan.log.report import RunReport
from replan.plan.model import StepStatus
from replan.state.cuts import CUTS

_SHORT, _MOST_STEPS = 8, 5
_SAFE = "what was cut off is taken up again; you are asked before an effect is repeated"


def next_lines(report: RunReport, option: str = "") -> list[str]:
    """The commands that continue a run, or repeat what failed; `option` names its storage.

    The command that most people want is last.
    """
    run = f"{report.run_id[:_SHORT]}{option}"
    if report.outcome == "running":
        return [f"stop it with: replan stop {run}"]
    failed = [*corrections(report, option)]
    if report.pending_questions:
        from replan.views.run.open_asks import ways_to_answer  # noqa: PLC0415 - imports LangGraph

        return [*failed, *ways_to_answer(report.pending_questions, f"replan resume {run}")]
    if not report.is_over:
        is_cut_off = any(each.is_cut_off for each in report.planned)
        return [*failed, *([_SAFE] if is_cut_off else ()), f"continue with: replan resume {run}"]
    limit = report.limit_reached
    if limit and limit not in CUTS:
        return [*failed, f"continue with: replan resume {run} --set {limit}=NUMBER"]
    return failed


def corrections(report: RunReport, option: str = "") -> Iterator[str]:
    """The commands that repeat a failed step, or leave it out."""
    run = report.run_id[:_SHORT]
    steps = [each.step.id for each in report.planned if each.status is StepStatus.FAILED]
    for step in steps[:_MOST_STEPS]:
        yield f"do step {step} again with: replan retry {run} {step}{option}"
        yield f"leave it out with: replan skip {run} {step}{option}"
    if len(steps) > _MOST_STEPS:
        yield f"{len(steps) - _MOST_STEPS} more failed: write their numbers instead"
