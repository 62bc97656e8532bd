"""Errors of steps: in full at one place, and in a line or by a reference elsewhere."""

import re
from collections.abc import Iterable

from replan.log.report import RunReport
from replan.log.step_reports import AttemptReport, StepReport
from replan.plan.model import StepStatus
from replan.views.cells import cut, one_line

_LONGEST = 200  # cells
_MOST_FAILED = 3
# Runs and threads are named by such ones: a person needs no more than the beginning.
_LONG_ID = re.compile(r"([0-9a-f]{8})[0-9a-f]{24,}", re.ASCII)


def error_of(step: StepReport) -> str:
    """Why a step failed, in one line."""
    return one_line(step.error)


def short_error(text: str) -> str:
    """An error in one line, for views that show all of it in another place."""
    return cut(_LONG_ID.sub(r"\1…", one_line(text)), _LONGEST)


def failed_above(report: RunReport) -> list[str]:
    """The lines above an answer about steps that failed: its words may sound as if none did."""
    failed = report.of_status(StepStatus.FAILED)
    told = [
        f"step {step.step.id}, {one_line(step.step.description)}, failed: "
        f"{short_error(error_of(step)) or 'no reason is known'}"
        for step in failed[:_MOST_FAILED]
    ]
    more = len(failed) - _MOST_FAILED
    return [*told, *([f"{more} more failed"] if more > 0 else [])]


def is_in_text(error: str, text: str) -> bool:
    """Whether a text contains an error already, maybe with other ids."""
    return _without_ids(error) in _without_ids(text)


def _without_ids(text: str) -> str:
    return _LONG_ID.sub("", one_line(text))


def same_error_before(attempt: AttemptReport, attempts: Iterable[AttemptReport]) -> str:
    """Which attempt of the specialist had the error of this one before, in words, or nothing."""
    entry = attempt.entry
    if not entry.error:
        return ""
    same = (
        attempt.entry.number
        for attempt in attempts
        if attempt.entry.specialist == entry.specialist
        and attempt.entry.number < entry.number
        and _without_ids(attempt.entry.error) == _without_ids(entry.error)
    )
    first = next(same, None)
    return "" if first is None else f"the same error as in attempt {first}"
