"""Go on with a run that was killed, interrupted, asked something or ended by a limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import typer
from langgraph.types import StateSnapshot
from pydantic import JsonValue

from replan.cli.cells import harmless
from replan.cli.exits import CODES, INCOMPLETE
from replan.cli.holding import holding
from replan.cli.keeping import found, now, opened, short
from replan.cli.orders import Order, order_from, prepared
from replan.cli.plan_file import PlanFile
from replan.cli.reading import read_plan_text
from replan.cli.running import attempted, finished, new_session
from replan.cli.session import Case, Site
from replan.cli.signing import effects_of, is_signed
from replan.errors import InputError
from replan.graph.branches import specialist_node
from replan.plan.markdown.seal import origin_of
from replan.plan.model import TaskPlan
from replan.ports.run_book import RunRecord
from replan.runs.asks import PLAN, Ask, changed_plan, open_asks, read_answers, resumption
from replan.runs.looking import config_of
from replan.runs.past import past_events, results_on_record
from replan.runs.running import raise_limits
from replan.state.cuts import CUTS
from replan.state.enhanced import EnhancedState
from replan.state.limits import Limits, RunSettings
from replan.state.rules import limit_value
from replan.steps.step_record import ANSWERS


@dataclass(frozen=True, kw_only=True)
class Wish:
    """How a run is to go on.

    Attributes:
        run: The run's id, or its beginning.
        answers: Answers, as the command line has them.
        plan: A file with the changed plan, for a run that waits for a word on it.
        limits: New limits.
        changes: Fields of the order that are other now, such as the team file's place.
    """

    run: str
    answers: Sequence[str] = ()
    plan: Path | None = None
    limits: Limits | None = None
    changes: Mapping[str, Any] | None = None


def carry_on(wish: Wish, site: Site) -> int:
    """Go on with a run until it ends, asks or is stopped, and give the exit code."""
    return attempted(lambda: _carried_on(wish, site), site)


async def _carried_on(wish: Wish, site: Site) -> int:
    if not site.place.outlives:
        raise InputError("What was kept in memory is gone. Name a file or a database.")
    async with opened(site.place) as storage:
        record = await found(storage.runs, wish.run)
        with holding(record.run_id):
            order = _order_of(record, wish, site)
            case = Case(
                run_id=record.run_id,
                order=order,
                ready=prepared(order, site.environment, storage=storage),
                plan_file=PlanFile(order.plan_out, origin_of(order.plan or "")),
                storage=storage,
                site=site,
            )
            return await _resumed(record, case, wish)


def _order_of(record: RunRecord, wish: Wish, site: Site) -> Order:
    """Read what the run is to do, with what was said of it now.

    Raises:
        InputError: Nobody knows that it is this user's own word, and it does what one must mean.
    """
    run, changes = short(record.run_id), wish.changes or {}
    order = order_from(record.order, run)
    does = [] if is_signed(record.order, record.run_id) else effects_of(order, changes)
    if does:
        unknown = (
            f"What run {run} was asked to do was kept by somebody else, on another machine or by "
            f"an earlier version, or was changed since. It {'; it '.join(does)}."
        )
        if not site.asks:
            raise InputError(f"{unknown} Say with these options what of it you mean.")
        typer.echo(harmless(unknown))
        if not typer.confirm("Go on with that?"):
            raise InputError("Nothing was done.")
    return order.replace(**changes)


async def _resumed(record: RunRecord, case: Case, wish: Wish) -> int:
    snapshot = await _snapshot_of(case)
    asks = await open_asks(snapshot, case.storage.journal)
    answers = _read(wish, asks)
    new = None if wish.limits is None else RunSettings(limits=wish.limits)
    if _is_over(snapshot):
        if not snapshot.values.get("limit_reached") or new is None:
            return await _told_as_over(record, cast("EnhancedState", snapshot.values), case)
        graph, config = case.ready.graph, config_of(case.run_id)
        await raise_limits(graph, settings=new, config=config, by="replan resume")
        snapshot, new = await _snapshot_of(case), None
    _check_team(cast("EnhancedState", snapshot.values), case)
    await case.storage.runs.update(case.run_id, "running", now())
    for ask in asks:
        if ask.is_keyed and ask.key in answers:
            await case.storage.journal.note(case.run_id, ANSWERS + ask.key, answers[ask.key])
    state = cast("EnhancedState", snapshot.values)
    if "settings" in state:
        # The run has its own; only what is new goes on top of them.
        case = replace(case, order=case.order.replace(settings=new))
    elif new is not None:
        case = replace(case, order=case.order.replace(settings=_both(case.order.settings, new)))
    results = await results_on_record(state, case.storage.journal)
    made = [artifact for result in results for artifact in result.artifacts]
    session = new_session(case, made, is_known=True)
    session.recall(past_events(state, results))
    given = _given(snapshot, case.order, asks, answers)
    left = [ask for ask in asks if ask.key not in answers]
    return await finished(session.carry_on(given, left), case)


def _both(order: RunSettings | None, new: RunSettings) -> RunSettings:
    """The settings of an order with new ones on top; fields that nobody set stay unset."""
    fields = {} if order is None else order.model_dump(exclude_unset=True)
    limits = {**fields.get("limits", {}), **new.limits.model_dump(exclude_unset=True)}
    return RunSettings.model_validate({**fields, "limits": limits})


async def _snapshot_of(case: Case) -> StateSnapshot:
    return await cast("Any", case.ready.graph).aget_state(config_of(case.run_id))


def _read(wish: Wish, asks: Sequence[Ask]) -> dict[str, JsonValue]:
    """Read the answers of the command line.

    Raises:
        InputError: They fit nothing that is asked.
    """
    if wish.answers and not asks:
        raise InputError("This run asks nothing. Go on with it without --answer.")
    answers = read_answers(wish.answers, asks)
    if wish.plan is not None:
        if not any(ask.kind == PLAN for ask in asks):
            raise InputError("This run does not wait for a word on its plan: leave --plan away.")
        answers[PLAN] = changed_plan(read_plan_text(wish.plan))
    return answers


def _check_team(state: EnhancedState, case: Case) -> None:
    """See to it that nobody else does the work of a specialist who is not there any more.

    Raises:
        InputError: An open step names a specialist whom the team does not have.
    """
    nodes = {node.casefold() for node in case.ready.graph.nodes}
    for step in (state.get("current_plan") or TaskPlan()).open_steps():
        for name in step.specialists:
            if specialist_node(name).casefold() not in nodes:
                raise InputError(
                    f"Step {step.id} is for @{name}, whom the team does not have. "
                    "Name a team file that has it with --team."
                )


def _is_over(snapshot: StateSnapshot) -> bool:
    # Its outcome alone is no proof: a process may be killed between the end and its record.
    return not snapshot.tasks and bool(snapshot.values.get("is_completed"))


def _given(
    snapshot: StateSnapshot, order: Order, asks: Sequence[Ask], answers: Mapping[str, JsonValue]
) -> Any:
    """What the graph goes on with: answers, what it had before, or nothing new."""
    stopped_for = [ask for ask in asks if ask.interrupt]
    command = resumption(stopped_for, answers)
    if command.resume:
        return command
    return None if snapshot.values or snapshot.tasks else order.input


async def _told_as_over(record: RunRecord, state: EnhancedState, case: Case) -> int:
    """Say that a run is over, and what could still be done with it."""
    site, outcome = case.site, state.get("outcome") or "completed"
    if record.outcome != outcome:
        await case.storage.runs.update(record.run_id, outcome, now())
    run, limit = short(record.run_id), state.get("limit_reached", "")
    lines = [f"run {run} is over: {outcome}"]
    if limit in CUTS:
        lines.append(f"its answer is not whole: {CUTS[limit]}")
    if limit and limit not in CUTS:
        lines.append(f"the limit {limit}={limit_value(state, limit):g} ended it")
        lines.append(f"go on with: {site.resume(record.run_id)} --limit {limit}=NUMBER")
    else:
        lines.append(f"see it with: replan show {run}{site.place.option}")
    site.output.write("".join(f"{line}\n" for line in lines))
    return CODES.get(outcome, INCOMPLETE)
