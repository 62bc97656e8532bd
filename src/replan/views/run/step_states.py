"""How each step of a run stands, in the words that the terminal and the page have in common."""

from dataclasses import dataclass

from replan.log.report import RunReport
from replan.log.step_reports import CUT_OFF, EARLY, WAITING, WORDS, StepReport, awaited
from replan.plan.model import StepStatus
from replan.views.run.overview import remark_texts
from replan.views.run.revision_diffs import changed_steps


@dataclass(frozen=True, kw_only=True)
class StepState:
    """The status of a step: a word for its style, and a text."""

    state: str  # pending, running, waiting, interrupted, done, failed, skipped or removed
    text: str  # such as `waits for a person`
    remarks: str = ""  # what of its calls its status does not tell
    changed: str = ""  # which revision added or changed it last; empty where none did


def step_states(report: RunReport) -> dict[int, StepState]:
    """The status of each step of a run, and for whom it waits."""
    changed = changed_steps(report)
    return {
        number: StepState(
            state=state,
            text=f"{text}, {EARLY}" if step.is_early else text,
            remarks=", ".join(remark_texts(report.anomalies_of(step))),
            changed=changed.get(number, ""),
        )
        for number, step in report.by_id.items()
        for state, text in [_state_of(step, report)]
    }


def _state_of(step: StepReport, report: RunReport) -> tuple[str, str]:
    if step.removed:
        return "removed", step.removed
    if step.is_asking:
        return WAITING, "waits for a person"
    if step.status is not StepStatus.PENDING:
        state = WORDS[step.status]
        is_optional = step.step.optional and step.status is StepStatus.FAILED
        return state, f"{state}, optional" if is_optional else state
    if step.is_cut_off and not report.is_over:
        return "interrupted", CUT_OFF
    failed, coming = report.obstacles(step.step)
    left = "not done" if step.attempts else "not begun"
    if report.is_over:
        return "pending", awaited(failed, (), left=left) if failed else left
    return "pending", awaited(failed, coming)
