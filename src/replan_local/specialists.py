"""Specialists that need no model: a step's parameters, else its line, say what is to be done."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from replan import Team
from replan.ports.folders import Folders, folders_of_step
from replan.specialists.function import in_thread
from replan.state.results import ExecutionContext, ExecutionStatus, SpecialistResult
from replan.state.team import SpecialistCard
from replan.team.specialist import Specialist
from replan_local.commands import Calculate, Command, Report, Search
from replan_local.expressions import calculated
from replan_local.grammar import parse
from replan_local.parameters import command_of
from replan_local.querying import Querying
from replan_local.refusals import CannotAnswerError
from replan_local.report import Written, sections_of, write_report
from replan_local.searching import Searching
from replan_local.tools import now

_CARDS = (
    SpecialistCard(
        name="data_analyst",
        intended_use="Exact figures from CSV, Parquet and JSON files of the folder; a step is one "
        "command, or has the parameter sql.",
        capabilities=(
            "list tables",
            "describe TABLE",
            "total COLUMN by COLUMN from TABLE where COLUMN is VALUE top N",
            "compare step N and step M by COLUMN",
        ),
    ),
    SpecialistCard(
        name="librarian",
        intended_use="Passages in the notes of the folder (txt, md, rst); a step is one command.",
        capabilities=('search notes for "WORDS"',),
    ),
    SpecialistCard(
        name="calculator",
        intended_use="Exact arithmetic on numbers and on figures of earlier steps; a step is one "
        "command.",
        capabilities=("calculate EXPRESSION", 'calculate step 1["total cost"]["Berlin"] / step 2'),
    ),
    SpecialistCard(
        name="writer",
        intended_use="One report file of the results of earlier steps; a step is one command.",
        capabilities=('write report "TITLE" with bar chart',),
    ),
)


def doer_of(command: Command) -> str:
    match command:
        case Search():
            return "librarian"
        case Calculate():
            return "calculator"
        case Report():
            return "writer"
        case _:
            return "data_analyst"


class LocalSpecialist:
    """Does one kind of command; anything else fails without a retry, and nothing is guessed."""

    model_calls = 0
    """Of one attempt: what tells the most that a run can take counts with it."""

    def __init__(self, card: SpecialistCard, clock: Callable[[], datetime] = now) -> None:
        self.card = card
        self._clock = clock

    async def run(self, context: ExecutionContext, config: RunnableConfig) -> SpecialistResult:
        """Do the command of the step; one that cannot be done fails without a retry."""
        try:
            done = await self._done(context, folders_of_step())
        except CannotAnswerError as refusal:
            return SpecialistResult(
                specialist_name=self.card.name,
                status=ExecutionStatus.FAILED,
                error=str(refusal),
                confidence=0.0,
                step_id=context.plan_step.id,
                retry=False,
            )
        return SpecialistResult(
            specialist_name=self.card.name,
            result=AIMessage(content=done.text),
            step_id=context.plan_step.id,
            artifacts=done.artifacts,
        )

    async def _done(self, context: ExecutionContext, folders: Folders) -> Written:
        command = self._command(context)
        match command:
            case Report():
                return await asyncio.shield(in_thread(lambda: self._report(command, context)))
            case Calculate():
                return _plain(calculated(command.expression, context.inputs))
            case Search():
                searching = Searching(folders.workspace)
                return _plain(await _in_thread(lambda: searching.answer(command), searching.stop))
            case _:
                asked = Querying(folders.workspace, context.inputs)
                return _plain(await _in_thread(lambda: asked.answer(command), asked.interrupt))

    def _command(self, context: ExecutionContext) -> Command:
        if parameters := context.parameters or context.plan_step.parameters:
            return command_of(self.card.name, parameters)
        command = parse(context.task_description)
        if (name := doer_of(command)) != self.card.name:
            raise CannotAnswerError(f"'{context.task_description}' is a command for @{name}.")
        return command

    def _report(self, command: Report, context: ExecutionContext) -> Written:
        sections = sections_of(context.inputs)
        if not sections:
            raise CannotAnswerError(
                "There is nothing to report: the step builds on no result of another step. "
                "Let it come after the steps whose results it should hold."
            )
        folders = folders_of_step()
        return write_report(
            command.title,
            sections,
            command.chart,
            out=folders.out,
            key=context.idempotency_key or f"{context.run_id}/{context.plan_step.id}",
            now=self._clock(),
            workspace=folders.workspace,
        )


async def _in_thread(work: Callable[[], str], stop: Callable[[], None]) -> str:
    try:
        return await in_thread(work)
    except asyncio.CancelledError:
        stop()
        raise


def _plain(text: str) -> Written:
    return Written(text=text, artifacts=())


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


_TEAM = tuple(map(LocalSpecialist, _CARDS))
data_analyst, librarian, calculator, writer = _TEAM
