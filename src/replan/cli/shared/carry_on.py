"""Continue a run that was killed, interrupted, asks, was ended by a limit or is corrected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, cast
from uuid import uuid4

import typer
from pydantic import JsonValue

from replan.assembly.graphs import viewer
from replan.assembly.runtime import open_runtime
from replan.base.errors import InputError
from replan.base.texts.signs import harmless
from replan.cli.shared.carry_out import exit_code_of, exit_code_of_run, open_at_terminal
from replan.cli.shared.process import CODES, INCOMPLETE
from replan.cli.shared.shown import show_what_waits, shown_last
from replan.cli.shared.site import Site
from replan.cli.user_files.order_signature import effects_of, is_signed, sign, user_name
from replan.cli.user_files.orders import Order, check_team, order_of, order_on_record
from replan.cli.user_files.plan_text import read_plan_text
from replan.cli.user_files.storage_location import (
    check_idle,
    find_run,
    open_existing_location,
    short,
)
from replan.log.report import RunReport
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.calling.compiled import Graph, team_of
from replan.runs.continued.correcting import (
    Correction,
    check,
    input_of_new_run,
    repeated_by,
)
from replan.runs.reads import state_of
from replan.runs.reports import results_on_record
from replan.runs.result import RunResult
from replan.runs.run_at_work import Following
from replan.runs.service import Runtime
from replan.state.enhanced import EnhancedState, plan_of
from replan.state.limits import Limits, RunSettings
from replan.state.person.answers import bound_answers, decided
from replan.state.questions import PLAN, Question
from replan.state.team import specialist_node
from replan.views.cells import wrapped
from replan.views.run.history import why_text
from replan.views.run.next_steps import next_lines


@dataclass(frozen=True, kw_only=True)
class ResumeRequest:
    """How a run is to continue."""

    run: str  # the run's id, or its beginning
    answers: Sequence[str] = ()  # as the command line has them
    plan: Path | None = None  # a file with the changed plan, for a run that waits for approval
    limits: Limits | None = None
    # Fields of the order that are other now, such as the team file's place.
    changes: Mapping[str, Any] | None = None
    correction: Correction | None = None  # what is wanted otherwise of one step
    allow_repeat: bool = False  # whether effects may be had again, without a question


def carry_on(request: ResumeRequest, site: Site) -> int:
    """Continue a run until it ends, asks or is stopped, and return the exit code."""
    if not site.location.outlives:
        raise InputError(
            "Runs in memory end with their process. Name a file or a database with --storage."
        )
    return exit_code_of(lambda: _continue_run(request, site), site)


async def _continue_run(request: ResumeRequest, site: Site) -> int:
    async with open_existing_location(site.location) as storage:
        record = await find_run(storage.runs, request.run)
        await check_idle(storage, record)
        if request.correction is not None:
            # Before models are built, which may need keys.
            async with open_runtime(viewer(storage), storage=storage) as looking:
                check(request.correction, await looking.get(record.run_id))
        order = _confirmed_order(record, request, site)
        async with open_at_terminal(record.run_id, order, storage, site) as (runtime, introduce):
            check_team(order, record, runtime.resources.team)
            report = await runtime.get(record.run_id)
            state = await state_of(record.run_id, runtime.resources)
            correction = request.correction
            is_new = correction is not None and report.is_final
            if correction is not None:
                check(correction, report)
            answers = await _answers_given(request, report, storage, site)
            is_raised = request.limits is not None and state.get("limit_reached")
            if state.get("is_completed") and not (is_raised or correction):
                return _report_what_is_possible(report, site)
            _check_team(state, runtime.graph, correction)
            if correction is not None and not request.allow_repeat:
                await _check_effects(correction, report, runtime, site)
            if is_new:
                order = _corrected_order(order, request, state)
                session = introduce(is_known=True, run_id=uuid4().hex, order=order)
            else:
                session = introduce(is_known=True)
                results = await results_on_record(state, storage.log)
                session.recall(report, _left_open(report, answers, correction), results)
            begin = partial(_go_on, runtime, state, order, request, answers, run_id=session.run_id)
            return await exit_code_of_run(session.follow_run(begin), session.run_id, site)


def _left_open(
    report: RunReport, answers: Mapping[str, JsonValue], correction: Correction | None
) -> list[Question]:
    """The questions that are still asked: a step that is corrected asks anew, if at all."""
    corrected = f"{correction.step}/" if correction else None
    asks = (ask for ask in report.pending_questions if ask.key not in answers)
    return [ask for ask in asks if corrected is None or not ask.key.startswith(corrected)]


def _corrected_order(order: Order, request: ResumeRequest, state: EnhancedState) -> Order:
    """The order of a new run that continues from one that is over."""
    plan = input_of_new_run(cast("Correction", request.correction), state)["plan"]
    new = request.limits and RunSettings(limits=request.limits)
    return order.replace(plan=plan, settings=(order.settings or RunSettings()).overridden_by(new))


async def _check_effects(
    correction: Correction, report: RunReport, runtime: Runtime, site: Site
) -> None:
    """Ask a person to agree to work that would be done a second time."""
    log = cast("Storage", runtime.storage).log
    effects = await repeated_by(correction, report, team_of(runtime.graph), log)
    if not effects:
        return
    is_new, run = report.is_final, short(report.run_id)
    who = f"Run {run} is over, and a new run would" if is_new else f"Run {run} would"
    what = f"{who} repeat work that must not be repeated without asking: {'; '.join(effects)}."
    if not site.asks:
        raise InputError(f"{what} Confirm it with --yes.")
    typer.echo("\n".join(wrapped(what, get_terminal_size().columns - 1)))
    if not typer.confirm("Repeat it?"):
        raise InputError("Nothing was done.")


async def _go_on(
    runtime: Runtime,
    state: EnhancedState,
    order: Order,
    request: ResumeRequest,
    answers: Mapping[str, JsonValue],
    following: Following,
    *,
    run_id: str,
) -> RunResult:
    new = request.limits and RunSettings(limits=request.limits)
    if (of := request.correction) is not None:
        retry = partial(runtime.retry, step_timeout=of.timeout)
        do = runtime.skip if of.action == "skip" else retry
        options: Any = {"by": of.by, "settings": new, **following}
        if (known := state.get("run_id", run_id)) != run_id:
            signed = sign(order_on_record(order), run_id)
            options |= {"allow_repeat": True, "run_id": run_id, "order": signed}
        return await (await do(known, of.step, **options))
    if answers:
        by = user_name()
        return await (await runtime.answer(run_id, answers, settings=new, by=by, **following))
    return await runtime.resume(run_id, settings=new, by=user_name(), **following)


def _confirmed_order(record: RunRecord, request: ResumeRequest, site: Site) -> Order:
    """The stored order with the options given now; a person confirms what others stored."""
    run, changes = short(record.run_id), request.changes or {}
    order = order_of(record)
    does = [] if is_signed(record.order, record.run_id) else effects_of(order, changes)
    if does:
        unknown = (
            f"The stored options of run {run} were written by another user, machine or version, or "
            f"were changed since. They would do this: it {'; it '.join(does)}."
        )
        if not site.asks:
            raise InputError(f"{unknown} Give these options again to confirm them.")
        typer.echo(harmless(unknown))
        if not typer.confirm("Continue with these options?"):
            raise InputError("Nothing was done.")
    return order.replace(**changes)


async def _answers_given(
    request: ResumeRequest, report: RunReport, storage: Storage, site: Site
) -> dict[str, JsonValue]:
    """Read the answers of the command line, bound to what this user was shown last.

    One that cannot be taken is refused with what is asked, and with the command that answers it.
    """
    asks = report.pending_questions
    if request.answers and not asks:
        raise InputError("This run has no open question. Resume it without --answer.")
    shown = await shown_last(storage, report.run_id)
    try:
        found = [bound_answers(text, asks, shown=shown) for text in request.answers]
    except InputError as error:
        now = await show_what_waits(report, storage, site.resume(report.run_id))
        raise InputError("\n".join([str(error), *now])) from error
    answers = {key: answer for rival in found for key, answer in rival.items()}
    if len(answers) < sum(map(len, found)):
        raise InputError("There are two answers to one question. Give one.")
    if request.plan is not None:
        plan = next((ask for ask in asks if ask.kind == PLAN and not ask.path), None)
        if plan is None:
            raise InputError("This run does not wait for approval of its plan. Leave out --plan.")
        edit = decided(action="edit", plan=read_plan_text(request.plan))
        answers |= bound_answers({plan.key: edit}, asks, shown=shown)
    return answers


def _check_team(state: EnhancedState, graph: Graph, correction: Correction | None) -> None:
    """Check that no step which is to be done names a specialist that the team does not have."""
    nodes, plan = {node.casefold() for node in graph.nodes}, plan_of(state)
    again = {rerun.step for rerun in correction.reruns(plan)} if correction else set[int]()
    for step in (step for step in plan.steps if step.status.is_open or step.id in again):
        for name in step.specialists:
            if specialist_node(name).casefold() not in nodes:
                raise InputError(
                    f"Step {step.id} is for @{name}, who is not on the team. "
                    "With --team, name a team file that has this specialist."
                )


def _report_what_is_possible(report: RunReport, site: Site) -> int:
    """Report that a run is over, and what is still possible with it."""
    run, why, option = short(report.run_id), why_text(report), site.location.option
    lines = [f"run {run} is over: {report.outcome}", *([f"why: {why}"] if why else ())]
    lines += [*next_lines(report, option), f"see it with: replan show {run}{option}"]
    site.output.write("".join(f"{harmless(line)}\n" for line in lines))
    return CODES.get(report.outcome, INCOMPLETE)
