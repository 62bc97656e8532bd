"""Errors of steps, in full at one place and in a line elsewhere, and what repairs them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from replan.log.report import RunReport
from replan.log.step_reports import AttemptReport, StepReport
from replan.plan.model import StepStatus
from replan.plan.option_table import DURATION
from replan.state.limits import rounded_up
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


_TIME = re.compile(
    r"StepTimeoutError: no (?P<kind>answer within|sign of work for) (?P<seconds>\S+) s"
)
_LIMIT = re.compile(
    r"The limit (?P<name>max_\w+)=(?P<value>[\d.e+-]+) of (?P<whose>step|specialist) (?P<who>.+?) "
    r"is reached"
)


@dataclass(frozen=True, kw_only=True)
class Repair:
    """What lets a failed step succeed where the same again would fail in the same way."""

    why: str  # what it failed of, and how much it had
    fix: str  # what to change, in words
    option: str = ""  # the option of `replan retry` that does it; empty where none does


def repair_of(step: StepReport) -> Repair | None:
    """The repair of a step that failed of a time or a limit of its own; None of any other."""
    if found := _TIME.search(step.error):
        return _more_time(step, found["kind"] == "answer within", float(found["seconds"]))
    if found := _LIMIT.search(step.error):
        name, larger = found["name"], rounded_up(2 * float(found["value"]))
        why = f"its limit {name}={found['value']} was reached"
        if found["whose"] == "step":
            fix = f"give each step {name}={larger}"
            return Repair(why=why, fix=fix, option=f"--set per_step.{name}={larger}")
        fix = f"write {name}: {larger} into the limits of @{found['who']} in its team"
        return Repair(why=f"{why} by all steps of @{found['who']}", fix=fix)
    return None


def _more_time(step: StepReport, is_whole: bool, had: float) -> Repair:  # noqa: FBT001
    """The repair of an attempt that had too little time, as a whole or between signs of work."""
    longer = 2 * had
    given_time = step.step.timeout if is_whole else step.step.idle_timeout
    word = "timeout" if is_whole else "idle timeout"
    what = "more time" if is_whole else "more time between two signs of work"
    why = f"its {'own ' if given_time == had else ''}{word} of {had:g} s was over"
    if given_time == had:
        time = DURATION.write(longer)
        fix = f"give it {what}, ({word} {time}) or longer, in its line of the plan"
        return Repair(why=why, fix=fix, option=f"--timeout {time}")
    limit = f"{'step' if is_whole else 'idle'}_timeout={longer:g}"
    return Repair(why=why, fix=f"give each step {what}: {limit}", option=f"--set {limit}")
