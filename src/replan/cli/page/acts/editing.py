"""Edit the plan of a run: see what would run again and what differs, then run it.

A run at work follows the edit at once, and keeps what has begun.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from replan.base.errors import InputError, PlanConflictError
from replan.cli.page.acts.acting import (
    Acted,
    call_for,
    confirm,
    form_of_act,
    refuse_stale,
    to_run,
)
from replan.cli.page.read_runs import Reading
from replan.cli.page.shown import ask_fingerprint
from replan.cli.page.site import Site, page_path
from replan.log.labels import OWN_LABELS
from replan.nodes.host.plan_bounds import check_outside_plan
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.seal import sealed, unsealed
from replan.plan.model import TaskPlan
from replan.plan.rerun import Rerun, rerun_reasons
from replan.runs.calling.compiled import team_of
from replan.runs.calling.given_input import checked_input
from replan.runs.continued.correcting import messages_before_answer
from replan.runs.reads import state_of
from replan.runs.reports import WholeReport
from replan.runs.run_input import stored_input
from replan.runs.team_on_record import team_name
from replan.server.bodies import PlanBody
from replan.server.callers.identity import check_role
from replan.server.doors import runs
from replan.server.problems import RefusedError
from replan.server.served_teams import id_for, team_services
from replan.server.work import begin_run
from replan.state.enhanced import plan_of
from replan.state.questions import PLAN, Question, fingerprint_of
from replan.views.run.history import difference

CHANGED = "The plan has changed since you began to edit it."


async def edit(site: Site, request: Request) -> Response:
    """Return the document of a run's plan; of an edited one show what it would do, then do it."""
    fields, acted = await form_of_act(site, request)
    reading = acted.reading
    if request.method == "POST":
        return await _run_edited(site, request, acted, fields)
    is_asked, plan = _plan_asked(reading.run) is not None, reading.run.plan
    is_at_work = reading.run.is_held and not reading.run.is_over
    if is_at_work and plan is not None and not is_asked:
        check_role(request.state.who, "operate")
        return _editor(site, request, reading, unsealed(plan.content), version=plan.version)
    acted.check_can_work()
    if not is_asked:
        acted.only_served("replan run with the edited document")
    return _editor(site, request, reading, document_of(reading.run))


async def _steer(site: Site, request: Request, acted: Acted, text: str, version: int) -> Response:
    """Edit the plan of a run at work, if it still has the version that was shown."""
    check_role(request.state.who, "operate")
    try:
        body = PlanBody(plan=text, version=max(1, version))
        await runs.edit_plan(call_for(acted.served, request), acted.record.run_id, body)
    except PlanConflictError as error:
        why, newest = f"{error} What you typed is below.", error.expected
        return _editor(site, request, acted.reading, text, why, 409, version=newest)
    except InputError as error:
        return _editor(site, request, acted.reading, text, str(error), 422, version=version)
    return to_run(site, acted.record.run_id)


def document_of(run: WholeReport) -> str:
    """The document that may be edited: the one that waits for approval, else the current one.

    Raises:
        RefusedError: There is none, or the run is at work.
    """
    if (ask := _plan_asked(run)) is not None:
        return ask.draft or ask.text
    if run.plan is None:
        raise RefusedError(409, "no_plan", "This run has no plan, so there is nothing to edit.")
    if run.outcome == "running":
        detail = "The run goes on, and its plan changes with it. Load its page, then edit."
        raise RefusedError(409, "at_work", detail)
    return sealed(run.plan, run.run_id, is_named=True).content


def _plan_asked(run: WholeReport) -> Question | None:
    asks = run.pending_questions
    return next((ask for ask in asks if ask.kind == PLAN and not ask.path), None)


def _editor(
    site: Site,
    request: Request,
    reading: Reading,
    text: str,
    problem: str = "",
    status: int = 200,
    *,
    version: int = 0,
) -> Response:
    """A form with a document; `version` is that of the plan of a run that follows it at work."""
    run = reading.run
    values: dict[str, Any] = {"run": run, "text": text, "problem": problem, "version": version}
    values["seen"] = "" if version else fingerprint_of(document_of(run))
    is_asked = not version and _plan_asked(run) is not None
    return site.page(request, "edit", status, is_asked=is_asked, **values)


async def _run_edited(
    site: Site, request: Request, acted: Acted, fields: dict[str, str]
) -> Response:
    reading = acted.reading
    if (version := fields.get("version", "")).isdecimal():
        return await _steer(site, request, acted, fields.get("plan", ""), int(version[:9]))
    before, text = document_of(reading.run), fields.get("plan", "")
    if fields.get("seen") != fingerprint_of(before):
        return refuse_stale(site, request, reading, CHANGED)
    graph = acted.runtime.graph
    try:
        plan = PlanDocument.parse(text).plan
        checked_input(graph, {"messages": [("user", "")], "plan": text})
        check_outside_plan(text, team_services(acted.runtime), reading.run.plan)
    except InputError as error:
        return _editor(site, request, reading, text, str(error), 422)
    if fields.get("sure"):
        return await _start_new_run(site, request, acted, text, fields.get("run_id", ""))
    return _confirm_plan(site, request, acted, plan, text)


def _confirm_plan(
    site: Site, request: Request, acted: Acted, plan: TaskPlan, text: str
) -> Response:
    run, ask = acted.reading.run, _plan_asked(acted.reading.run)
    before, reruns = document_of(run), rerun_reasons(plan)
    lines = [*difference(unsealed(before).splitlines(), unsealed(text).splitlines())]
    fields = {"plan": text, "sure": "1"}
    if ask is None:
        action = page_path(request)
        fields |= {"run_id": site.served.new_id(), "seen": fingerprint_of(before)}
        where = "A new run begins from this plan, and keeps what is finished."
        where += " This one goes on waiting for its answers." if run.pending_questions else ""
    else:
        action = f"/runs/{run.run_id}/answer"
        fields |= {"key": ask.key, "seen": ask_fingerprint(ask), "action": "edit"}
        where = "The run continues with this plan."
    open_ids = {step.id for step in plan.open_steps()} | {rerun.step for rerun in reruns}
    how_many = f"{len(open_ids)} of {plan.total_steps} steps run."
    return confirm(
        site,
        request,
        title="Let this plan run?",
        does=[
            *(["Nothing is changed."] if all(line.startswith(" ") for line in lines) else []),
            *(_rerun_text(rerun) for rerun in reruns),
            *_effects(acted, plan, reruns),
            f"{how_many} {where} What they call may cost.",
        ],
        lines=lines,
        action=action,
        fields=fields,
        button="Let it run",
        back=f"/runs/{run.run_id}/plan",
    )


def _rerun_text(rerun: Rerun) -> str:
    steps = ", ".join(map(str, rerun.causes))
    reason = {
        "edited": "it was edited",
        "reopened": "its mark was taken away",
        "dependency": f"it waits for {steps}",
        "input_changed": f"it was given another result of {steps}",
    }[rerun.reason]
    return f"Step {rerun.step} runs again: {reason}."


def _effects(acted: Acted, plan: TaskPlan, reruns: tuple[Rerun, ...]) -> list[str]:
    """Sentences about the steps that may have an effect a second time."""
    cards = {card.name.casefold(): card for card in team_of(acted.runtime.graph)}
    texts = list[str]()
    for rerun in reruns:
        for name in plan.step(rerun.step).specialists:
            card = cards.get(name.casefold())
            if card is not None and card.effects != "pure":
                texts.append(f"Step {rerun.step} at @{name} may have its effect a second time.")
    return texts


async def _start_new_run(
    site: Site, request: Request, acted: Acted, text: str, name: str
) -> Response:
    """Begin a run from an edited document; the same form begins one run only."""
    acted.check_can_work()
    acted.only_served("replan run with the edited document")
    served, who, record = site.served, request.state.who, acted.record
    if len(name) != len(served.new_id()) or not (name.isascii() and name.isalnum()):
        raise RefusedError(422, "bad_request", "The form is incomplete. Reload the page.")
    run_id = id_for(name, who)
    existing_run = await served.storage.runs.get(run_id)
    if existing_run is not None:
        return to_run(site, (await served.record_of(name, who)).run_id)
    state = await state_of(record.run_id, acted.runtime.resources)
    given: dict[str, Any] = {"messages": messages_before_answer(state), "plan": text}
    await begin_run(
        served,
        who,
        team_name(record),
        given,
        run_id=run_id,
        labels={n: label for n, label in record.labels.items() if n not in OWN_LABELS},
        title=record.title,
        before=plan_of(state),
        order=stored_input(given),
    )
    return to_run(site, run_id)
