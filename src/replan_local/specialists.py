"""Specialists that need no model: a step's parameters, else its line, say what is to be done."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from replan import Team
from replan.base.user_code import in_thread
from replan.ports.run_context import folders_of_step
from replan.state.results import ExecutionContext, ExecutionStatus, SpecialistResult
from replan.state.team import SpecialistCard
from replan.team.specialist import Specialist
from replan_local.commands import CARDS, Calculate, Command, Compare, Figures, Query, Report, Search
from replan_local.comparing import compared
from replan_local.expressions import calculated
from replan_local.grammar import parse
from replan_local.parameters import command_of
from replan_local.querying import answer
from replan_local.refusals import CannotAnswerError
from replan_local.report import text_of, write_report
from replan_local.searching import passages_on
from replan_local.tables import Tables


class LocalSpecialist:
    """Does one kind of command; anything else fails without a retry, and nothing is guessed."""

    model_calls = 0
    """Of one attempt: what tells the most that a run can take counts with it."""

    def __init__(self, card: SpecialistCard) -> None:
        self.card = card

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Do the command of the step; one that cannot be done fails without a retry."""
        try:
            return await _done(self._command(context), context)
        except CannotAnswerError as refusal:
            failed = ExecutionStatus.FAILED
            return SpecialistResult(status=failed, error=str(refusal), confidence=0, retry=False)

    def _command(self, context: ExecutionContext) -> Command:
        if parameters := context.parameters or context.plan_step.parameters:
            return command_of(self.card.name, parameters)
        command = parse(context.task_description)
        if command.doer != self.card.name:
            said = context.task_description
            raise CannotAnswerError(f"'{said}' is a command for @{command.doer}.")
        return command


async def _done(command: Command, context: ExecutionContext) -> SpecialistResult:
    folders = folders_of_step()
    match command:
        case Report():
            key = context.idempotency_key or f"{context.run_id}/{context.plan_step.id}"
            text = text_of(context.inputs)
            write = partial(write_report, command.title, text, folders=folders, key=key)
            # A report that is begun is written whole, even if nobody waits for it any more.
            report = await asyncio.shield(in_thread(write))
            text = f"**{report.title}** is written."
            return SpecialistResult(result=AIMessage(content=text), artifacts=(report,))
        case Compare():
            text = compared(command, context.inputs)
        case Calculate():
            text = calculated(command.expression, context.inputs)
        case Search():
            text = await in_thread(lambda: passages_on(command, folders.workspace))
        case _:
            text = await _answered(command, folders.workspace)
    return SpecialistResult(result=AIMessage(content=text))


async def _answered(command: Figures | Query, directory: Path) -> str:
    tables = await in_thread(lambda: Tables(directory))
    try:
        return await in_thread(lambda: answer(command, tables))
    except asyncio.CancelledError:
        tables.interrupt()
        raise


def local_team(
    directory: Path | str,
    out: Path | str | None = None,
    *,
    model: Any = "offline",
    specialists: Sequence[Specialist] = (),
) -> Team:
    """Return the keyless team for `build_graph`.

    Args:
        directory: The folder whose tables and notes may be read.
        out: Where reports are written; without it, in the folder.
        model: The host's model.
        specialists: Further members.
    """
    members = [Specialist(one.card.name, one.card.intended_use, use=one) for one in _TEAM]
    return Team(model, [*members, *specialists], workspace=directory, out=out)


_TEAM = tuple(map(LocalSpecialist, CARDS))
data_analyst, librarian, calculator, writer = _TEAM
