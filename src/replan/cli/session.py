"""One run at the terminal: from where it stands to its end, a question, or a stop."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO, cast

from pydantic import JsonValue

from replan.calling import Call
from replan.cli.asking import Desk
from replan.cli.cells import counted, harmless
from replan.cli.course import Course, after
from replan.cli.exits import CODES, INCOMPLETE, WAITING
from replan.cli.interview import Interview
from replan.cli.keeping import Place, now, short
from replan.cli.keyboard import Keyboard
from replan.cli.orders import Order, Prepared
from replan.cli.plan_file import PlanFile
from replan.cli.questions import waiting_lines
from replan.cli.stopping import Stop, heard
from replan.cli.telling import Manner, Teller, rest_line, seconds
from replan.errors import StorageError, ThreadLostError
from replan.events.types import BaseEvent, Event, InputRequested, StepEvent
from replan.langgraph_inside.tasks import without_tokens
from replan.plan.model import StepStatus
from replan.ports.run_book import RunOutcome
from replan.ports.storage import Storage
from replan.runs.asks import Ask, ask_of, asks_of, bound_resumption, resumption
from replan.runs.event_log import EventLog
from replan.runs.looking import config_of
from replan.runs.requests import BEAT, answers_in, note_answers
from replan.runs.running import stream_graph
from replan.steps.step_record import ANSWERS

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where and how a run is told, asked about and stopped.

    Attributes:
        environment: The variables of the shell.
        input: Where a person types.
        output: Where the run is told.
        errors: Where complaints go, and what says how to go on.
        place: Where runs are kept.
        manner: How the run is told.
        log_file: Where the log is written.
        grace: Seconds that running steps get when the run is stopped.
    """

    environment: Mapping[str, str]
    input: TextIO
    output: TextIO
    errors: TextIO
    place: Place
    manner: Manner = field(default_factory=Manner)
    log_file: Path | None = None
    grace: float = 10.0

    @property
    def asks(self) -> bool:
        """Whether somebody sits there who can answer."""
        return self.input.isatty() and self.output.isatty() and not self.manner.as_json

    def resume(self, run_id: str) -> str:
        """The command that goes on with a run."""
        return f"replan resume {short(run_id)}{self.place.option}"

    @property
    def shows_tokens(self) -> bool:
        """Whether texts are shown piece by piece."""
        return self.output.isatty() or self.manner.as_json or self.manner.verbose

    @property
    def tells_all(self) -> bool:
        """Whether more than the answer is wanted, by a person."""
        return not (self.manner.quiet or self.manner.as_json)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run, with all that is needed to work on it.

    Attributes:
        run_id: The run.
        order: What it does.
        ready: Its graph.
        plan_file: Where its plan is written.
        storage: Where it is kept.
        site: Where it is told.
    """

    run_id: str
    order: Order
    ready: Prepared
    plan_file: PlanFile
    storage: Storage
    site: Site


class Session:
    """One run, while this process works on it."""

    def __init__(self, case: Case, teller: Teller) -> None:
        """Prepare; nothing happens before `carry_on`.

        Args:
            case: The run.
            teller: Tells it.
        """
        self._run_id = case.run_id
        self._settings = case.order.settings
        self._graph = case.ready.graph
        self._storage = case.storage
        self._site = case.site
        self._plan_file = case.plan_file
        self._teller = teller
        self._course = Course(started=seconds())
        self._log = EventLog(case.storage.runs, case.run_id, now)
        self._asks: tuple[Ask, ...] = ()
        self._interview: Interview | None = None
        self._held_back: list[tuple[Event, Course]] = []
        self._streams = False

    @property
    def _resume(self) -> str:
        return self._site.resume(self._run_id) if self._site.place.outlives else ""

    def recall(self, events: Sequence[Event]) -> None:
        """Take what happened before this process, without telling it again.

        Args:
            events: What happened.
        """
        for event in events:
            self._course = after(self._course, event, seconds())
            self._plan_file.follow(event)

    async def carry_on(self, given: Any, asks: Sequence[Ask] = ()) -> int:
        """Run from `given` on, or from the answers to what is asked, and give the exit code.

        Raises:
            UsageError: The input cannot be used.
            StorageError: What happened cannot be kept.
            ModelCallError: The thinking or planning model could not be reached.
        """
        self._asks = tuple(asks)
        asked = asyncio.Event()
        work = asyncio.create_task(self._run(given, asked))
        stop = Stop(asked, begin=lambda: self._wind_down(work), finish=work.cancel)
        if self._site.asks:
            self._interview = self._opened_interview(stop)
        writer = asyncio.create_task(self._log.write())
        reader = asyncio.create_task(self._heed_others(stop))
        # To the very end: who presses Ctrl-C once more still reads how to go on.
        with heard(stop):
            try:
                await asyncio.wait({work, writer}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await self._closed(work, writer, reader)
            for task in (writer, work):
                if not task.cancelled() and (error := task.exception()):
                    # Whatever it was, the run can go on later; a storage that fails cannot say so,
                    # and how a run stands that was taken over, its owner says.
                    if not isinstance(error, ThreadLostError):
                        with suppress(StorageError):
                            await self._keep("interrupted")
                    raise error
            return await self._ended(stop.code)

    async def _run(self, given: Any, stop: asyncio.Event) -> None:
        """Stream, and ask what is asked, until the run ends, is stopped, or nobody answers."""
        if given is None and self._asks and all(ask.interrupt for ask in self._asks):
            given = await self._answered()
            if given is None:
                return
        elif self._interview is not None:
            # Other branches go on, so the person is asked beside them.
            for ask in self._asks:
                self._interview.add(ask)
        while True:
            await self._stream(given, stop)
            if self._course.outcome or stop.is_set():
                return
            snapshot = await cast("Any", self._graph).aget_state(config_of(self._run_id))
            self._asks = asks_of(snapshot.interrupts)
            # The run has its settings by now.
            self._settings = None
            given = await self._answered()
            if given is None:
                return

    async def _stream(self, given: Any, stop: asyncio.Event) -> None:
        config = config_of(self._run_id)
        config = config if self._site.shows_tokens else without_tokens(config)
        asked = Call(given, self._settings, config, self._run_id)
        events = stream_graph(self._graph, asked, stop=stop, grace=self._site.grace)
        self._streams, self._asks = True, ()
        try:
            async with aclosing(cast("Any", events)):
                async for event in events:
                    self._take(event)
        finally:
            self._streams = False

    async def _heed_others(self, stop: Stop) -> None:
        """Do what other processes ask of the run, while it is worked on here."""
        since = now()
        while True:
            with suppress(StorageError):  # the run itself tells of it
                for request in await self._storage.runs.requests([self._run_id]):
                    if request.kind == "stop":
                        await self._storage.runs.take_requests([request], now())
                        if request.at >= since:
                            stop.wish()
                    else:
                        await note_answers(request, self._storage.journal)
            await asyncio.sleep(BEAT)

    async def _answered_by_others(self) -> Any:
        """What goes on with a run that others have answered; None if nobody has."""
        requests = await self._storage.runs.requests([self._run_id])
        given = [each for each in requests if each.kind == "answer"]
        command = bound_resumption(self._asks, answers_in(given, self._asks))
        if not command.resume:
            return None
        await self._storage.runs.take_requests(given, now())
        return command

    async def _answered(self) -> Any:
        """What goes on with a run that waits; none if nobody answers."""
        if not self._asks:
            return None
        if command := await self._answered_by_others():
            return command
        if self._interview is None:
            return None
        answers = await self._interview.answers_to(self._asks)
        return resumption(self._asks, answers) if answers else None

    def _take(self, event: Event) -> None:
        self._course = after(self._course, event, seconds())
        _log(event)
        self._log.take(event)
        self._plan_file.follow(event)
        if self._interview is not None and isinstance(event, InputRequested):
            self._interview.add(ask_of(event.question))
        if self._interview is not None and self._interview.is_talking:
            self._held_back.append((event, self._course))
        else:
            self._tell(event, self._course)

    def _tell(self, event: Event, course: Course) -> None:
        if self._interview is not None and isinstance(event, InputRequested):
            # The person is asked, and need not be told.
            self._teller.follow(course)
        else:
            self._teller.tell(event, course)

    def _wind_down(self, work: "asyncio.Task[None]") -> None:
        """Say that nothing more starts; what waits for a person only is over at once."""
        if not self._streams:
            work.cancel()
            return
        self._teller.remark(
            f"stopping: running steps have {self._site.grace:g} s to end; "
            "press Ctrl-C again to stop at once"
        )

    def _opened_interview(self, stop: Stop) -> Interview:
        site = self._site

        def editing(has_terminal: bool) -> None:
            stop.is_editing = has_terminal

        desk = Desk(Keyboard(site.input.fileno()), site.output, site.environment, editing)
        return Interview(desk, note=self._note, talking=self._talk)

    async def _note(self, ask: Ask, answer: JsonValue) -> None:
        """Keep an answer at once; what LangGraph is told comes later."""
        if ask.is_keyed:
            await self._storage.journal.note(self._run_id, ANSWERS + ask.key, answer)

    def _talk(self, is_talking: bool) -> None:
        """Hold back what happens while somebody is asked, then tell it."""
        if is_talking:
            self._teller.pause()
            return
        told, self._held_back = self._held_back, []
        for event, course in told:
            self._tell(event, course)
        self._teller.proceed()

    async def _closed(self, *tasks: "asyncio.Task[None]") -> None:
        """Leave nothing running, nothing unsaid, and what is known on disk."""
        async with AsyncExitStack() as last:
            last.push_async_callback(self._log.flush)
            last.callback(self._plan_file.write)
            last.callback(self._teller.close)
            if self._interview is not None:
                last.push_async_callback(self._interview.close)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _ended(self, stopped: int) -> int:
        """Keep how the run stands now, say how to go on, and give the exit code."""
        outcome = self._course.outcome
        if outcome:
            await self._keep(cast("RunOutcome", outcome))
            return CODES.get(outcome, INCOMPLETE)
        if self._asks:
            await self._keep("waiting")
            self._tell_rest("waiting", waiting_lines(self._asks, short(self._run_id), self._resume))
            return stopped or WAITING
        await self._keep("interrupted")
        go_on = [f"go on with: {self._resume}"] if self._resume else []
        self._tell_rest("interrupted", [self._interrupted(), *go_on])
        return stopped or INCOMPLETE

    async def _keep(self, outcome: RunOutcome) -> None:
        await self._storage.runs.update(self._run_id, outcome, now())

    def _tell_rest(self, kind: str, lines: Sequence[str]) -> None:
        """Say how the run stands."""
        if self._site.manner.as_json:
            line = rest_line(kind, self._run_id, self._asks, self._resume)
            self._site.output.write(line)
            self._site.output.flush()
        self._site.errors.write("".join(f"{harmless(line)}\n" for line in lines))

    def _interrupted(self) -> str:
        """The line for a run that the person at the terminal stopped."""
        total = len(self._course.rows)
        if not total:
            return "interrupted before there was a plan"
        done = self._course.count(StepStatus.COMPLETED, StepStatus.SKIPPED)
        path = self._plan_file.path
        where = f"; the plan so far is in {path}" if path else ""
        return f"interrupted: {done} of {counted(total, 'step')} done{where}"


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
