"""What is shown of a step, and which open steps of a page have changed.

What is open says so itself, by a hidden field `open` with its step, the number of the newest event
that it shows, and how many attempts it has. What the page has is named by its place (`c3-1-2` is
the second call in the first attempt of step 3), and what is new goes where the field knows of
nothing yet: an answer that comes too late finds that place gone, and changes nothing.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from replan.base.values import fields_in
from replan.log.events.types import Event, RunCorrected, StepEvent, WorkEvent
from replan.log.report import RunReport
from replan.log.step_reports import StepReport
from replan.runs.reports import WholeReport
from replan.views.event_lines import Context
from replan.views.run.branches import HOST, branch_of, branches_of, thread_lines
from replan.views.run.history import LEAST_TOLD, moments
from replan.views.run.step_states import step_states, waits_of


def step_values(report: WholeReport, number: int) -> dict[str, Any]:
    """What the page of a step shows."""
    step = report.by_id[number]
    return {
        "step": step,
        "standing": step_states(report)[number],
        "waits": [wait for wait in waits_of(step, report) if wait.seconds >= LEAST_TOLD],
        "moments": moments(report, number),
        "branch": branch_of(step, report),
        "results": [result for result in report.results if result.step_id == number],
        "threads": [*thread_lines(report.threads, number)],
        "given": [e for e in given_in(report) if isinstance(e, WorkEvent) and e.step_id == number],
        "jobs": jobs_of(report, step),
    }


def given_in(report: WholeReport) -> list[Context]:
    """What was remembered and looked up in a run."""
    return [event for event in report.events if isinstance(event, Context)]


def jobs_of(run: WholeReport, step: StepReport | None = None) -> list[dict[str, Any]]:
    """The jobs of a run as forms: with their current questions, else their outcome."""
    outputs = [(result.step_id, result.output, False) for result in run.results]
    outputs += [(question.step_id, question.details, True) for question in run.pending_questions]
    forms = {
        number: form for number, value, is_open in outputs if (form := job_form(value, is_open))
    }
    number = None if step is None else step.step.id
    return [{"step": at, **form} for at, form in forms.items() if number in (None, at)]


def job_form(value: object, is_open: bool) -> dict[str, Any] | None:
    """What a value says about a job: its phase while it asks, or the whole job at its end."""
    fields = fields_in(value)
    collected = fields.get("collected", fields.get("collected_info"))
    missing = fields.get("missing", fields.get("missing_info"))
    if "phase" not in fields or not isinstance(collected, dict) or not isinstance(missing, list):
        return None
    states = {"completed": "done", "failed": "failed"}
    return {
        "type": str(fields.get("type", "job")),
        "command": str(fields.get("command", "")),
        "phase": str(fields["phase"]),
        "state": states.get(str(fields.get("status")), "waiting"),
        "collected": collected,
        "missing": missing,
        "problems": [str(problem) for problem in fields.get("problems") or () if problem],
        "turns": fields.get("turns", 0),
        "is_open": is_open,
    }


_MARK = re.compile(r"(\d{1,9})\.(\d{1,12})\.(\d{1,9})", re.ASCII)
_MOST = 50


def open_steps(report: WholeReport, marks: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Report for each open step of a page what it does not show yet."""
    step_ids = {step.step.id for step in report.steps}
    for mark in [*marks][:_MOST]:
        read = _MARK.fullmatch(mark)
        if read is None:
            continue
        number, since, attempts = map(int, read.groups())
        if number == HOST:
            yield {"number": HOST, "since": since, "branch": branches_of(report)[0]}
        elif number in step_ids:
            new = [event for event in report.events if (event.seq or 0) > since]
            values = step_values(report, number)
            is_at_work = values["standing"].state == "running"
            is_touched = number in steps_changed_by(report, new) or any(map(is_structural, new))
            if is_at_work or is_touched:
                open_step = {"number": number, "since": since, "attempts": attempts}
                yield {**open_step, "is_touched": is_touched, **values}


_UNMARKED = ("steps_invalidated", "run_corrected")
_STRUCTURAL = (
    "plan_created",
    "plan_updated",
    "run_resumed",
    "run_stopped",
    "task_completed",
    *_UNMARKED,
)


def is_structural(event: Event) -> bool:
    """Whether more than some steps has changed after an event."""
    return event.type in _STRUCTURAL


def is_drawn_whole(event: Event, seen: int, settled: int) -> bool:
    """Whether a view is drawn as a whole for an event: when it is new, and maybe once more.

    Once more when all else on record has followed it, where the mark of the page does not change
    then by itself.
    """
    seq = event.seq or 0
    return is_structural(event) and (seq > seen or (seq <= settled and event.type in _UNMARKED))


def steps_changed_by(report: RunReport, new: Iterable[Event]) -> set[int]:
    """The steps that events changed; 0 means the host."""
    events = [*new]
    steps = {_step_of(event) for event in events}
    ended = {_step_of(event) for event in events if event.type == "specialist_completed"}
    # The steps behind one that ended wait for others now.
    return steps | {s.step.id for s in report.steps if ended.intersection(s.step.awaits)}


def _step_of(event: Event) -> int:
    is_of_step = isinstance(event, StepEvent | WorkEvent | RunCorrected)
    return (event.step_id or HOST) if is_of_step else HOST
