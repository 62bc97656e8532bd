"""What is shown of a step: its attempts, its inputs and results, and its job as a form."""

from typing import Any

from replan.base.values import fields_in
from replan.log.events.types import WorkEvent
from replan.log.step_reports import StepReport
from replan.runs.reports import WholeReport
from replan.views.event_lines import Context
from replan.views.run.branches import branch_of, thread_lines
from replan.views.run.history import LEAST_TOLD, moments
from replan.views.run.step_states import step_states
from replan.views.run.waits import waits_of


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
