"""What a person can type next about a run, as commands."""

from collections.abc import Iterator

from replan.log.report import RunReport
from replan.plan.model import StepStatus
from replan.state.cuts import CUTS
from replan.views.cells import one_line

_SHORT, _MOST_STEPS = 8, 5


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
        return [*failed, *what_continues(report), f"continue with: replan resume {run}"]
    limit = report.limit_reached
    if limit and limit not in CUTS:
        return [*failed, f"continue with: replan resume {run} --set {limit}=NUMBER"]
    return failed


def what_continues(report: RunReport, but: int = 0) -> list[str]:
    """What becomes of the steps of a run that continues: of those cut off, and of those to come.

    Args:
        report: The run.
        but: A step of which something else is said.
    """
    planned = [each for each in report.planned if each.step.id != but]
    cut_off = [each.step for each in planned if each.is_cut_off]
    lines = [
        f"step {step.id} was cut off, and is taken up again: {one_line(step.description)}; you "
        "are asked first if it must not happen twice"
        for step in cut_off[:_MOST_STEPS]
    ]
    left = [
        f"step {each.step.id}, {one_line(each.step.description)}"
        for each in planned
        if each.status is StepStatus.PENDING and not (each.is_cut_off or each.is_asking)
    ]
    if left:
        more = f"; {len(left) - _MOST_STEPS} more" if len(left) > _MOST_STEPS else ""
        told = "; ".join(left[:_MOST_STEPS])
        lines.append(f"then these run, without asking unless their team asks: {told}{more}")
    return lines


def corrections(report: RunReport, option: str = "") -> Iterator[str]:
    """The commands that repeat a failed step, or leave it out."""
    run = report.run_id[:_SHORT]
    steps = [each.step.id for each in report.planned if each.status is StepStatus.FAILED]
    for step in steps[:_MOST_STEPS]:
        yield f"do step {step} again with: replan retry {run} {step}{option}"
        yield f"leave it out with: replan skip {run} {step}{option}"
    if len(steps) > _MOST_STEPS:
        yield f"{len(steps) - _MOST_STEPS} more failed: write their numbers instead"
