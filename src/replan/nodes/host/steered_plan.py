"""What became of what people asked of a run at work, and how an edit of its plan is merged."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal

from replan.base.errors import InputError, PlanConflictError
from replan.log.events.emitter import Emitter
from replan.log.events.types import PlanParseWarning, PlanUpdated, RunSteered
from replan.log.rows import Request
from replan.log.run_log import RunLog
from replan.nodes.host.approvals import BY_PERSON, changed_by_person
from replan.nodes.host.plan_bounds import check_outside_plan
from replan.plan.changes import difference
from replan.plan.markdown.document import PlanDocument
from replan.plan.markdown.overlooked import ParseWarning, overlooked
from replan.plan.markdown.seal import unsealed
from replan.plan.model import PlanStep, TaskPlan
from replan.ports.run_context import here
from replan.ports.steering import OUTCOME, TOO_LATE, facts_of, missed_warning
from replan.specialists.services import Services
from replan.state.enhanced import EnhancedState, rounds_of, settings_of
from replan.state.limits import RunSettings
from replan.state.team import seats_of


async def report_outcome(
    request: Request,
    status: Literal["taken", "refused"],
    emitter: Emitter,
    log: RunLog,
    **fields: Any,
) -> None:
    """Report once what became of a request, also if its node begins again."""
    about = {**facts_of(request), "status": status, **fields}
    announced = emitter.announce(RunSteered, **about)
    await log.note(request.run_id, f"{OUTCOME}{request.name}", about, announced)


async def report_missed(emitter: Emitter, log: RunLog) -> None:
    """Report what the run that ends here has not considered."""
    steering = here().steering
    for request in (*steering.waiting("edit"), *steering.waiting("message")) if steering else ():
        await report_outcome(request, "refused", emitter, log, reason=TOO_LATE)
        await emitter.warn(missed_warning(request))


UNSAFE = "A person's edit adds work that must not happen twice to the plan."
"""Why a person is asked about an edited plan."""


def taken_edit(
    plan: TaskPlan,  # with its history
    edit: Request,
    state: EnhancedState,
    services: Services | None,  # the run's team; None: whoever is named is not looked for
    at: datetime,
    *,
    is_at_work: bool = True,
) -> TaskPlan:
    """Apply the edited document of the plan of a run, if the run can still follow it.

    All of it is applied, or nothing. A step that has ended since the document was read keeps how it
    ended, if the edit leaves it as it was.

    Raises:
        PlanConflictError: The plan was revised since.
        InputError: The document has mistakes, or changes what is finished; or it comes too late.
    """
    if is_at_work and state.get("current_round", 0) >= rounds_of(state):
        raise InputError(
            f"The run is in its last round (max_rounds={rounds_of(state)}), so nothing that the "
            "edit adds could run."
        )
    if services is not None and services.is_served:
        check_outside_plan(edit.text, services, plan)
    if edit.version != plan.version:
        raise PlanConflictError(edit.version, plan.version)
    plan, team = plan.replace(content=unsealed(plan.content)), services and services.team
    new = changed_by_person(plan, _with_newer_marks(plan, unsealed(edit.text)), team, at)
    if new == plan:
        raise InputError(f"The edit changes nothing of version {plan.version} of the plan.")
    # Where only marks or texts between its steps were changed, it is a new version, too.
    return new if new.version > plan.version else new.next_version(BY_PERSON, at)


def _with_newer_marks(plan: TaskPlan, text: str) -> str:
    document = PlanDocument.recover(text)
    shown = PlanDocument.recover(plan.content).plan.by_id
    ended = [
        _as_it_ended(step, plan.step(step.id))
        for step in document.plan.steps
        if step.id in shown
        and step.status.is_open
        and not plan.step(step.id).status.is_open
        and is_same_work(shown[step.id], step)
    ]
    if document.mistakes or not ended:
        return text
    return document.write(document.plan.with_steps(*ended)).text


def _as_it_ended(step: PlanStep, now: PlanStep) -> PlanStep:
    return step.replace(status=now.status, result=now.result, feedback=now.feedback)


def is_same_work(old: PlanStep, new: PlanStep) -> bool:
    """Whether two versions of a step differ in nothing but how it stands."""
    return not difference(TaskPlan(steps=(old,)), TaskPlan(steps=(new,)))


def waits_for_approval(
    old: TaskPlan, new: TaskPlan, settings: RunSettings, services: Services
) -> bool:
    """Whether an edited plan needs approval: as any plan, or for the unsafe work that it adds."""
    if settings.approval in ("never", "always"):
        return settings.approval == "always"
    members = services.specialists.items()
    unsafe = {name for name, specialist in members if specialist.card.effects == "unsafe"}
    changed = [step for step in new.open_steps() if not _is_known(step, old)]
    return any(
        seat.specialist in unsafe for step in changed for seat in seats_of(step, services.team)
    )


def _is_known(step: PlanStep, plan: TaskPlan) -> bool:
    return step.id in plan.by_id and is_same_work(plan.step(step.id), step)


def _new_doubts(old: TaskPlan, new: TaskPlan) -> tuple[ParseWarning, ...]:
    """What in an edited document may have been misread."""
    old_doubts = {warning.text for warning in overlooked(old.content)}
    return tuple(warning for warning in overlooked(new.content) if warning.text not in old_doubts)


async def with_edits(
    plan: TaskPlan,  # with the results of the round, and its history
    edits: Sequence[Request],
    settled: Callable[[TaskPlan], TaskPlan],  # writes the results of its steps into a merged plan
    state: EnhancedState,
    services: Services,
    emitter: Emitter,
) -> tuple[TaskPlan, bool]:
    """Merge edits, one after the other, and report each: what it became, or why it is refused.

    Returns:
        The merged plan, and whether it needs approval.
    """
    waits = False
    for edit in edits:
        try:
            new = settled(taken_edit(plan, edit, state, services, services.clock()))
        except InputError as error:
            await _report_refusal(edit, plan, str(error), emitter, services.log)
            continue
        await report_outcome(edit, "taken", emitter, services.log, version=new.version)
        changes = new.update_history[-1].changes
        await emitter.emit(
            PlanUpdated, plan=new, markdown=new.content, changes=changes, by="person"
        )
        if doubts := _new_doubts(plan, new):
            await emitter.emit(PlanParseWarning, parse_warnings=doubts)
        waits = waits or waits_for_approval(plan, new, settings_of(state), services)
        plan = new
    return plan, waits


async def _report_refusal(
    edit: Request, plan: TaskPlan, why: str, emitter: Emitter, log: RunLog
) -> None:
    await report_outcome(edit, "refused", emitter, log, version=plan.version, reason=why)
    by = edit.by or "a person"
    await emitter.warn(
        f"The edit of the plan by {by}, made from version {edit.version}, was refused at version "
        f"{plan.version}: {why}"
    )
