"""Carry out one order of the terminal and tell how it went."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO, cast

from langchain_core.messages import HumanMessage

from replan.adapters.offline import OFFLINE_NOTICE
from replan.app import Graph, build_graph, local_graph
from replan.cli.cells import counted, harmless
from replan.cli.course import Course, after
from replan.cli.exits import GOOD, INCOMPLETE, INTERRUPTED, WAITING, WRONG_USE
from replan.cli.live import LiveTeller
from replan.cli.logs import logging_to
from replan.cli.plan_file import PlanFile
from replan.cli.reading import is_plan_path, read_plan_text
from replan.cli.telling import Manner, Teller, seconds, teller
from replan.errors import InputError, ReplanError, UsageError
from replan.events.types import BaseEvent, Event, StepEvent
from replan.plan.document import PlanDocument
from replan.plan.model import StepStatus
from replan.running import stream
from replan.settings.team_file import read_team_file

logger = logging.getLogger(__name__)

_CODES = {"answered": GOOD, "completed": GOOD, "waiting": WAITING}


@dataclass(frozen=True, kw_only=True)
class Order:
    """What the terminal was asked to do.

    Attributes:
        task: A request, or the path of a plan document.
        team: A team file; else the local team.
        model: The host's model; none: the team file's, else the offline one.
        base_url: A server that speaks the OpenAI protocol.
        directory: The folder that specialists may read; none: the team file's, else this one.
        out: The folder for reports.
        plan_out: Where the plan is written.
        log_file: Where the log is written.
        manner: How the run is told.
    """

    task: str
    team: Path | None = None
    model: str | None = None
    base_url: str | None = None
    directory: Path | None = None
    out: Path | None = None
    plan_out: Path | None = None
    log_file: Path | None = None
    manner: Manner = field(default_factory=Manner)


def carry_out(order: Order, environment: Mapping[str, str], output: TextIO, errors: TextIO) -> int:
    """Run an order to its end and give the exit code."""
    try:
        with logging_to(order.log_file, environment):
            return _carried_out(order, environment, output, errors)
    except UsageError as error:
        errors.write(f"replan: {harmless(str(error))}\n")
        return WRONG_USE
    except ReplanError as error:
        errors.write(f"replan: {harmless(str(error))}\n")
        return INCOMPLETE


def _carried_out(
    order: Order, environment: Mapping[str, str], output: TextIO, errors: TextIO
) -> int:
    run = Run(order, environment, output)
    try:
        asyncio.run(run.told())
    except KeyboardInterrupt:
        logger.info("run interrupted")
        run.plan_file.write()
        errors.write(f"{run.interrupted()}\n")
        return INTERRUPTED
    finally:
        run.plan_file.write()
    if run.outcome == "waiting":
        errors.write("replan: a specialist asks a question, and nobody can answer it here.\n")
    return _CODES.get(run.outcome, INCOMPLETE)


class Run:
    """One run of one order."""

    def __init__(self, order: Order, environment: Mapping[str, str], output: TextIO) -> None:
        """Build all that can be wrong before anything starts.

        Raises:
            UsageError: Something cannot be used.
        """
        self._given = _input_of(order.task)
        self.plan_file = PlanFile(order.plan_out)
        prepared = _prepared(order, environment)
        self._graph = prepared.graph
        self._teller: Teller = teller(
            order.manner,
            output,
            workspace=prepared.workspace,
            terminal=environment.get("TERM", ""),
            clock=seconds,
        )
        self._course = Course(started=seconds())
        if prepared.model == "offline" and not (order.manner.quiet or order.manner.as_json):
            output.write(f"{OFFLINE_NOTICE}\n")
            # A terminal that draws needs to be told apart from what stands above.
            output.write("\n" if isinstance(self._teller, LiveTeller) else "")

    @property
    def outcome(self) -> str:
        """How the run ended; `waiting` if it stopped with a question."""
        return self._course.outcome or "waiting"

    async def told(self) -> None:
        """Run the graph and tell what happens."""
        try:
            async with aclosing(cast("Any", stream(self._graph, self._given))) as events:
                async for event in events:
                    self._take(event)
        finally:
            self._teller.close()

    def _take(self, event: Event) -> None:
        self._course = after(self._course, event, seconds())
        _log(event)
        self._teller.tell(event, self._course)
        self.plan_file.follow(event)

    def interrupted(self) -> str:
        """The line for a run that the person at the terminal stopped."""
        total = len(self._course.rows)
        if not total:
            return "interrupted before there was a plan"
        done = self._course.count(StepStatus.COMPLETED, StepStatus.SKIPPED)
        where = f"; the plan so far is in {self.plan_file.path}" if self.plan_file.path else ""
        return f"interrupted: {done} of {counted(total, 'step')} done{where}"


@dataclass(frozen=True)
class _Prepared:
    """A graph that can run, the folder that its files are relative to, and who is its host."""

    graph: Graph
    workspace: Path
    model: object


def _prepared(order: Order, environment: Mapping[str, str]) -> _Prepared:
    if order.team is None:
        directory, model = order.directory or Path(), order.model or "offline"
        graph = local_graph(
            directory=directory,
            out=order.out,
            model=model,
            base_url=order.base_url,
            environment=environment,
        )
        return _Prepared(graph, directory, model)
    team = read_team_file(order.team, environment, directory=order.directory, out=order.out)
    team = team.with_model(order.model, order.base_url)
    graph = build_graph(team.config, models=team.models)
    workspace = Path(team.config.workspace or Path())
    return _Prepared(graph, workspace, team.config.host.tool_calling_model)


def _input_of(task: str) -> dict[str, Any]:
    """The graph's input: a request, or a plan if the task names a Markdown file.

    Raises:
        InputError: The task is empty, or names a plan that cannot be read.
    """
    if not task.strip():
        raise InputError("The task is empty. Say what to do, or name a plan document.")
    if not is_plan_path(task):
        # The shell may hand over bytes that are no text.
        return {"messages": [HumanMessage(task.encode("utf-8", "replace").decode("utf-8"))]}
    text = read_plan_text(Path(task))
    title = PlanDocument.recover(text).plan.title
    return {"messages": [HumanMessage(title or f"Carry out the plan in {task}")], "plan": text}


def _log(event: BaseEvent) -> None:
    """Log that an event happened, without what was said in it."""
    fields = {"event": getattr(event, "type", ""), "seq": event.seq, "round": event.round}
    if isinstance(event, StepEvent):
        fields |= {"step": event.step_id, "specialist": event.specialist, "try": event.attempt}
    for name in ("outcome", "limit", "error"):
        if hasattr(event, name):
            fields[name] = getattr(event, name)
    result = getattr(event, "result", None)
    if result is not None:
        fields |= {"status": result.status.value, "seconds": f"{result.duration:.3f}"}
        fields |= {"error": result.error} if result.error else {}
    logger.debug("event", extra=fields)
