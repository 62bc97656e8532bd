"""Steer a run: stop and resume it, tell its host something, do a step again or leave it out."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from replan.base.errors import ReplanError
from replan.cli.page.acts.acting import (
    call_for,
    confirm,
    error_text,
    form_of_act,
    refuse_stale,
    to_run,
)
from replan.cli.page.read_runs import Reading
from replan.cli.page.shown import run_fingerprint
from replan.cli.page.site import Site, page_path
from replan.cli.user_files.orders import read_limits
from replan.log.report import RunReport
from replan.plan.model import StepStatus
from replan.runs.calling.compiled import team_of
from replan.runs.continued.correcting import Correction, check, repeated_by
from replan.server.bodies import CorrectionBody, MessageBody, ResumeBody, StopBody
from replan.server.doors import runs
from replan.state.limits import RunSettings
from replan.views.cells import sentence
from replan.views.run.error_lines import repair_of
from replan.views.run.next_steps import raised_limit, what_a_correction_does, what_continues

MOVED = "The run has changed since the page was loaded."


async def stop(site: Site, request: Request) -> Response:
    """Ask whether a run is to stop, and stop it, whatever its status is by then."""
    fields, acted = await form_of_act(site, request)
    if request.method == "POST":
        body = StopBody(force=bool(fields.get("force")))
        await runs.stop(call_for(acted.served, request), acted.record.run_id, body)
        return to_run(site, acted.record.run_id)
    if acted.reading.run.outcome != "running":
        why = "No process works on it: nothing is to stop."
        return refuse_stale(site, request, acted.reading, why)
    return confirm(
        site,
        request,
        title="Stop the run?",
        does=["No new step starts. The run can be resumed.", "Steps at work get time to end."],
        ticks={"force": "Do not wait for them: break them off."},
        button="Stop",
        **_form(request, acted.reading, is_bound=False),
    )


async def resume(site: Site, request: Request) -> Response:
    """Ask with which limits a run is to continue, and resume it as it was shown."""
    fields, acted = await form_of_act(site, request)
    acted.check_can_work()
    record, reading = acted.record, acted.reading
    if request.method == "GET":
        if not _can_resume(reading.run):
            return refuse_stale(site, request, reading, _why_not(reading.run))
        return _resume_page(site, request, reading)
    if fields.get("seen") != run_fingerprint(reading.run):
        return refuse_stale(site, request, reading, MOVED)
    try:
        body = ResumeBody(settings=read_limit_fields(fields))
        await runs.resume(call_for(acted.served, request), record.run_id, body)
    except ReplanError as error:
        if not _can_resume(await acted.runtime.get(record.run_id)):
            raise
        typed = {"limits": fields.get("limits", ""), "problem": error_text(error)}
        return _resume_page(site, request, reading, **typed)
    return to_run(site, record.run_id)


def _resume_page(site: Site, request: Request, reading: Reading, **more: Any) -> Response:
    report, limit = reading.run, raised_limit(reading.run)
    does = [*([limit] if limit else ()), *what_continues(report)]
    page_values: dict[str, Any] = {
        "title": "Resume the run?",
        "does": [*map(sentence, does), "What is done is kept. What the run calls may cost."],
        "button": "Resume",
        "limits": f"{report.limit_reached}={report.larger_limit}" if limit else "",
    }
    return confirm(site, request, **{**page_values, **_form(request, reading), **more})


def _can_resume(report: RunReport) -> bool:
    is_resting = not report.is_held and not report.is_final and report.outcome != "waiting"
    return report.outcome == "interrupted" or is_resting


def _why_not(report: RunReport) -> str:
    if report.is_held:
        return "The run is at work: there is nothing to resume."
    if report.outcome == "waiting":
        return "The run waits for an answer, and continues when it is given."
    text = "The run is over: there is nothing to resume."
    if failed := report.of_status(StepStatus.FAILED):
        steps = f"step {failed[0].step.id}" if len(failed) == 1 else "the failed steps"
        text += (
            f" In a new run from its plan, {steps} can be repeated or skipped. What was done by "
            "hand is marked so in the plan: [x] before the step, and its result below it."
        )
    return text


def read_limit_fields(fields: dict[str, str]) -> RunSettings | None:
    """The limits that a form has, a line each.

    Raises:
        InputError: One of them is not a limit.
    """
    lines = [line.strip() for line in fields.get("limits", "").splitlines() if line.strip()]
    limits = read_limits(lines)
    return None if limits is None else RunSettings(limits=limits)


async def correct(site: Site, request: Request, action: runs.Action) -> Response:
    """Show what repeating or skipping a step does, and do it as it was shown."""
    fields, acted = await form_of_act(site, request)
    acted.check_can_work()
    record, reading, step = acted.record, acted.reading, request.path_params["step"]
    if request.method == "POST":
        if fields.get("seen") != run_fingerprint(reading.run):
            return refuse_stale(site, request, reading, MOVED)
        body = CorrectionBody(step=step, allow_repeat=bool(fields.get("allow_repeat")))
        done = await runs.correct(call_for(acted.served, request), record.run_id, body, action)
        return to_run(site, done.run_id)
    report = await acted.runtime.get(record.run_id)
    if report.is_final:
        acted.only_served(f"replan {action} {record.run_id[:8]} {step}")
    correction = Correction(action=action, step=step, by=request.state.who.person)
    check(correction, report)
    team, log = team_of(acted.runtime.graph), site.served.storage.log
    repeats = "; ".join(await repeated_by(correction, report, team, log))
    asked = f"Repeat work that must not be repeated without asking: {repeats}"
    is_retry, step_report = action == "retry", report.by_id[step]
    repair = repair_of(step_report) if is_retry else None
    does = [what_a_correction_does(report, step, is_retry=is_retry)]
    does += [f"it failed because {repair.why}; {repair.fix}"] if repair else []
    return confirm(
        site,
        request,
        title=f"{'Do' if is_retry else 'Leave out'} step {step}{' again' if is_retry else ''}?",
        does=[*map(sentence, does), "What the run calls may cost."],
        shown=step_report.step.description,
        ticks={"allow_repeat": asked} if repeats else {},
        button="Retry" if is_retry else "Skip",
        **_form(request, reading),
    )


def _form(request: Request, reading: Reading, *, is_bound: bool = True) -> dict[str, Any]:
    """The target of a form, and the state from which it was made."""
    return {
        "action": page_path(request),
        "fields": {"seen": run_fingerprint(reading.run)} if is_bound else {},
        "back": f"/runs/{reading.run.run_id}",
    }


_OVER = "The run is over: its host hears nothing any more."


async def tell(site: Site, request: Request) -> Response:
    """Ask what the host of a run should know, and tell it."""
    fields, acted = await form_of_act(site, request)
    run, text, problem = acted.reading.run, fields.get("text", ""), ""
    if request.method == "POST":
        try:
            body = MessageBody(text=text.strip() or " ")
            await runs.send_message(call_for(acted.served, request), run.run_id, body)
            return to_run(site, run.run_id)
        except ReplanError as error:
            problem = error_text(error)
    elif run.is_over:
        return refuse_stale(site, request, acted.reading, _OVER)
    status = 422 if problem else 200
    return site.page(request, "message", status, run=run, text=text, problem=problem)
