"""What repairs a step that failed, by what it failed of: the same again may fail again."""

import re
from dataclasses import dataclass

from replan.log.step_reports import StepReport
from replan.plan.option_table import DURATION
from replan.state.limits import rounded_up

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
