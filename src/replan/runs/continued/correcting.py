"""A person's correction of one step: repeated or skipped, in the run itself or in a new one.

A new run must not do a second time unasked what must not happen twice.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot
from pydantic import JsonValue

from replan.base.errors import InputError
from replan.log.events.types import Event, PlanUpdated, RunCorrected, StepsInvalidated
from replan.log.report import RunReport
from replan.log.rows import LedgerEntry
from replan.log.run_log import ACTED, DOUBTED, RunLog
from replan.plan.changes import unstarted
from replan.plan.markdown.document import refresh_content
from replan.plan.markdown.seal import sealed, unsealed
from replan.plan.model import PlanStep, PlanUpdateType, StepStatus, TaskPlan
from replan.plan.rerun import Rerun, rerun_from
from replan.plan.statuses import with_statuses
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.calling.compiled import loosened, team_of
from replan.runs.continued.resuming import revived
from replan.runs.reads import report_of, state_of
from replan.runs.reports import check_goes_on, config_of
from replan.runs.run_at_work import Following, Resources, RunJob
from replan.runs.run_input import stored_input
from replan.specialists.steps.on_record import attempts_of, left_in_doubt, note_kept
from replan.state.changed_steps import plan_write
from replan.state.enhanced import EnhancedState, plan_of, rounds_of, settings_of
from replan.state.limits import RunSettings
from replan.state.results import after_round, known_results
from replan.state.rules import limit_value, spent_limit
from replan.state.team import SpecialistCard

_MOST_NAMED = 20


@dataclass(frozen=True, kw_only=True)
class Correction:
    """What a person requests for one step."""

    action: Literal["retry", "skip"]
    step: int
    by: str = ""  # who requests it
    timeout: float | None = None  # the seconds that the step has from now on; None: as before

    def applied_to(self, step: PlanStep) -> PlanStep:
        """A step as it is after it: open again, or skipped."""
        if self.action == "retry":
            return unstarted(step if step.id != self.step else self._timed(step))
        reason = f"Skipped by {self.by or 'a person'}."
        return unstarted(step).replace(status=StepStatus.SKIPPED, feedback=reason)

    def _timed(self, step: PlanStep) -> PlanStep:
        """The step with the time that it gets; what it may take without a sign of work, too."""
        if self.timeout is None:
            return step
        idle = None if step.idle_timeout is None else self.timeout
        return step.replace(timeout=self.timeout, idle_timeout=idle)

    def reruns(self, plan: TaskPlan) -> tuple[Rerun, ...]:
        """The settled steps that are done again by it."""
        return rerun_from(plan, self.step) if self.action == "retry" else ()

    def event(self, run_id: str, origin: str = "", current_round: int = 0) -> RunCorrected:
        """The description of it."""
        return RunCorrected(
            run_id=run_id,
            round=current_round,
            action=self.action,
            step_id=self.step,
            by=self.by,
            origin=origin,
        )


def check(correction: Correction, report: RunReport) -> None:
    """Refuse impossible corrections of a run, before anything is done."""
    plan = report.plan
    if plan is None:
        raise InputError("This run has no plan, so there is no step in it.")
    step = plan.by_id.get(correction.step)
    if step is None:
        raise InputError(f"This run has no step {correction.step}. Its steps: {_list_steps(plan)}.")
    if correction.action == "retry" and step.status.is_open:
        raise InputError(_why_open(step, report))
    if correction.action == "skip" and step.is_finished:
        done = step.status is StepStatus.COMPLETED
        why = "completed, so there is nothing to skip" if done else "skipped already"
        raise InputError(f"Step {step.id} is {why}.")


def _list_steps(plan: TaskPlan) -> str:
    ids = [str(step.id) for step in plan.steps]
    more = [f"and {len(ids) - _MOST_NAMED} more"] if len(ids) > _MOST_NAMED else []
    return ", ".join([*ids[:_MOST_NAMED], *more])


def _why_open(step: PlanStep, report: RunReport) -> str:
    failed = _failed_before(step, report.plan or TaskPlan())
    if failed:
        return f"Step {step.id} was not begun, since step {failed[0]} failed. Retry that one."
    if any(ask.key.startswith(f"{step.id}/") for ask in report.pending_questions):
        return f"Step {step.id} waits for an answer. Answer it, or skip the step."
    if report.is_final:
        return f"Step {step.id} was not begun, and the run is over: begin a new run."
    return f"Step {step.id} is still to be done. Continue the run to do it."


def _failed_before(step: PlanStep, plan: TaskPlan) -> list[int]:
    """The failed steps that a step waits for, directly or not."""
    steps, seen, left = plan.by_id, set[int](), [step.id]
    while left:
        waits = [step_id for step_id in steps[left.pop()].awaits if step_id in steps.keys() - seen]
        seen |= {*waits}
        left += waits
    return sorted(step_id for step_id in seen if steps[step_id].status is StepStatus.FAILED)


def check_asks_nothing(snapshot: StateSnapshot) -> None:
    """See that no graph of a step asks in the middle of its work."""
    if any(task.interrupts and task.name.startswith("specialist_") for task in snapshot.tasks):
        raise InputError("A step asks in the middle of its work. Answer it first.")


def corrected(
    correction: Correction,
    state: EnhancedState,
    so_far: TaskPlan,  # the plan with the marks of all that is finished
    settings: RunSettings | None,
    at: datetime,
) -> tuple[EnhancedState, tuple[Event, ...]]:
    """Return what a correction changes in the state of a run, and the events that report it."""
    before = plan_of(state)
    reruns = correction.reruns(so_far)
    ids = [rerun.step for rerun in reruns] or [correction.step]
    old = before.replace(content=unsealed(before.content), update_history=())
    new = with_statuses(old, [correction.applied_to(old.step(step_id)) for step_id in ids], at)
    why = _describe(correction, reruns)
    new = new.next_version(why, at, kind=PlanUpdateType.MODIFY_STEP)
    revision, new = new.update_history[-1], new.replace(update_history=())
    settled = after_round(state.get("generations", {}), before, so_far)
    update: EnhancedState = {
        "stalls": 0,
        "current_plan": plan_write(before, new),
        "plan_history": [revision],
        # What ended in a round that was cut off is done again, too.
        "generations": {step_id: settled[step_id] for step_id in ids if step_id in settled},
    }
    update |= _make_room({**state, **update, "current_plan": new}, settings)
    whole = new.replace(update_history=(*state.get("plan_history", []), revision))
    run_id, current = state.get("run_id", ""), state.get("current_round", 0)
    events = [
        correction.event(run_id, current_round=current),
        *([StepsInvalidated(run_id=run_id, round=current, reruns=reruns)] if reruns else []),
        PlanUpdated(run_id=run_id, round=current, plan=whole, markdown=new.content, by="person"),
    ]
    return update, tuple(events)


def _describe(correction: Correction, reruns: Sequence[Rerun]) -> str:
    by = f", by {correction.by}" if correction.by else ""
    if correction.action == "skip":
        return f"Step {correction.step} is left out{by}."
    others = ", ".join(str(rerun.step) for rerun in reruns if rerun.step != correction.step)
    follows = f" and, since they follow from it, {others}" if others else ""
    time = "" if correction.timeout is None else f" with {correction.timeout:g} s for it"
    return f"Done again: step {correction.step}{time}{follows}{by}."


def _make_room(state: EnhancedState, settings: RunSettings | None) -> EnhancedState:
    """What lets the run continue; refused where a limit would end it at once."""
    new = settings_of(state).overridden_by(settings)
    if state.get("is_completed"):
        more, limit = revived(state, new), spent_limit({**state, "settings": new})
    else:
        more: EnhancedState = {}
        spare = rounds_of(state) + new.limits.max_rounds - settings_of(state).limits.max_rounds
        limit = "max_rounds" if state.get("current_round", 0) > spare else ""
    if limit:
        value = limit_value({**state, "settings": new}, limit)
        raise InputError(
            f"The limit {limit}={value:g} leaves no room for the step. Raise it, too, for example "
            f"to {2 * value:g}."
        )
    return more


def input_of_new_run(correction: Correction, state: EnhancedState) -> dict[str, Any]:
    """What a new run begins with that continues from one that is over."""
    plan = sealed(plan_of(state), state.get("run_id", ""), is_named=True)
    plan = refresh_content(plan.with_steps(correction.applied_to(plan.step(correction.step))))
    return {"messages": messages_before_answer(state), "plan": plan.content}


def messages_before_answer(state: EnhancedState) -> list[Any]:
    """The messages in a run before its answer."""
    answer = state.get("final_answer")
    return [
        message
        for message in state.get("messages", [])
        if answer is None or message.id != answer.id
    ]


_MAY_HAVE_ACTED = "failed, and may have taken effect"


async def repeated_by(
    correction: Correction, report: RunReport, team: Sequence[SpecialistCard], log: RunLog
) -> list[str]:
    """Describe what would be done a second time that must not happen twice unasked."""
    return [work async for work in _repeated(correction, report, team, log)]


def refuse_repeats(repeats: Sequence[str]) -> None:
    """Refuse a new run that would repeat work with effects."""
    if repeats:
        raise InputError(
            f"This run is over, and a new one would repeat work that must not be repeated without "
            f"asking: {'; '.join(repeats)}. Allow it with allow_repeat=True."
        )


async def _repeated(
    correction: Correction, report: RunReport, team: Sequence[SpecialistCard], log: RunLog
) -> AsyncGenerator[str]:
    plan, cards = report.plan or TaskPlan(), {card.name: card for card in team}
    is_new = report.is_final
    ledger = await log.ledger(report.run_id)
    noted = {**await log.notes(report.run_id, ACTED), **await log.notes(report.run_id, DOUBTED)}
    for rerun in correction.reruns(plan):
        step = plan.step(rerun.step)
        tried = {entry.specialist for entry in ledger if entry.step_id == step.id}
        for name in sorted(tried) or step.specialists:
            attempts = attempts_of(ledger, step.id, name)
            effects = cards[name].effects if name in cards else "unsafe"
            if not is_new:
                # It has the keys and the record of what its tools did, and asks of what was done or
                # cut off; of what failed it asks nothing.
                has_failed = step.status is not StepStatus.COMPLETED and _has_failed(attempts)
                if effects == "unsafe" and has_failed:
                    yield f"step {step.id} at @{name} ({effects}) {_MAY_HAVE_ACTED}"
                continue
            effects = "unsafe" if f"{ACTED}{step.id}/{name}" in noted else effects
            if effects != "pure" and (how := _possible_effect(step, effects, attempts, noted)):
                yield f"step {step.id} at @{name} ({effects}) {how}"


def _possible_effect(
    step: PlanStep, effects: str, attempts: Sequence[LedgerEntry], noted: dict[str, Any]
) -> str:
    """How work may have had its effect already; empty if it has not."""
    if step.status is StepStatus.COMPLETED:
        return "was done"
    if not attempts:
        return ""
    newest = attempts[-1]
    if (
        left_in_doubt(attempts)
        or f"{DOUBTED}{step.id}/{newest.specialist}/{newest.number}" in noted
    ):
        return "was cut off"
    # A new run has other keys, by which no service knows what it did.
    if effects == "keyed":
        return "was begun"
    return _MAY_HAVE_ACTED if _has_failed(attempts) else ""


def _has_failed(attempts: Sequence[LedgerEntry]) -> bool:
    return any(entry.outcome == "failed" for entry in attempts)


class CorrectionOptions(Following, total=False):
    """The options of a correction of a run; see `Runtime.retry`."""

    settings: RunSettings | None
    config: RunnableConfig | None
    allow_repeat: bool
    run_id: str | None
    order: JsonValue


async def in_place(
    correction: Correction, record: RunRecord, options: CorrectionOptions, resources: Resources
) -> RunJob:
    """Correct a run that continues; all of it is one write."""
    graph, config = cast("Any", resources.graph), config_of(record.thread_id)
    report, settings = await report_of(record, resources), options.get("settings")
    state = await state_of(record.run_id, resources)
    check(correction, report)
    await check_goes_on(resources.graph, record)
    check_asks_nothing(await graph.aget_state(config))
    so_far = report.plan or TaskPlan()
    now = resources.clock()
    update, events = corrected(correction, state, so_far, settings, now)
    if settings is not None and "settings" in update:
        old, by = settings_of(state), correction.by or correction.action
        update["warnings"] = loosened(resources.graph, old, update["settings"], by)
        settings = None
    await graph.aupdate_state(config, update, as_node="plan_update")
    return RunJob(
        record=record,
        settings=settings,
        config=options.get("config"),
        following=_following_options(options),
        by=correction.by,
        prior_events=events,
    )


async def in_new_run(
    correction: Correction, record: RunRecord, options: CorrectionOptions, resources: Resources
) -> RunJob:
    """What a new run is called with that continues from one that is over."""
    report = await report_of(record, resources)
    state = await state_of(record.run_id, resources)
    check(correction, report)
    log = cast("Storage", resources.storage).log
    if not options.get("allow_repeat"):
        team = team_of(resources.graph)
        refuse_repeats(await repeated_by(correction, report, team, log))
    if not await log.results(record.run_id):
        # One in memory has forgotten them; the state has them whole.
        await note_kept(record.run_id, known_results(state).values(), log)
    run_input, now = input_of_new_run(correction, state), resources.clock()
    run_id, order = options.get("run_id") or resources.new_id(), options.get("order")
    if order is None:
        old = record.order if isinstance(record.order, dict) else {}
        order = {**old, **stored_input(run_input)}
    return RunJob(
        record=record.replace(
            run_id=run_id, thread_id=run_id, order=order, started_at=now, updated_at=now
        ),
        input=run_input,
        settings=settings_of(state).overridden_by(options.get("settings")),
        config=options.get("config"),
        following=_following_options(options),
        prior_events=(correction.event(run_id, record.run_id),),
    )


def _following_options(options: CorrectionOptions) -> Following:
    names = Following.__annotations__
    return cast("Following", {name: value for name, value in options.items() if name in names})
