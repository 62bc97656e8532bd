"""One run at the terminal: drawn while it works, asked about while it waits, stopped by signals."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import cast

from pydantic import JsonValue

from replan.base.errors import ReplanError
from replan.base.texts.signs import harmless
from replan.cli.desk.dialogs import Desk
from replan.cli.desk.interview import Interview
from replan.cli.desk.keyboard import Keyboard
from replan.cli.shared.follower import Follower
from replan.cli.shared.process import CODES, INCOMPLETE
from replan.cli.shared.shown import evidence_on_record, show_what_waits
from replan.cli.shared.signals import handling_signals
from replan.cli.shared.site import Site
from replan.cli.user_files.order_signature import user_name
from replan.cli.user_files.plan_file import PlanFile
from replan.cli.user_files.storage_location import now
from replan.log.events.types import BaseEvent, Event, InputRequested, SpecialistCompleted, StepEvent
from replan.log.report import RunReport
from replan.plan.model import StepStatus
from replan.ports.storage import Storage
from replan.runs.result import RunResult
from replan.runs.run import Run
from replan.runs.run_at_work import Following
from replan.runs.service import Runtime
from replan.runs.work_stream import stream_of
from replan.state.outcomes import INCOMPLETE as INCOMPLETE_RUNS
from replan.state.person.waiting import ask_of
from replan.state.questions import PLAN, Question
from replan.state.results import SpecialistResult
from replan.views.cells import counted
from replan.views.live.notices import warnings_shown_by
from replan.views.live.reporters import Reporter, rest_line
from replan.views.run.evidence import evidence_lines
from replan.views.run.next_steps import next_lines

logger = logging.getLogger(__name__)


class Session(Follower):
    """One run, while this terminal follows it."""

    def __init__(
        self, run_id: str, runtime: Runtime, site: Site, reporter: Reporter, plan_file: PlanFile
    ) -> None:
        """Prepare; nothing happens before `follow_run`."""
        run = RunReport.begun(run_id, now(), runtime.resources.team.currency)
        super().__init__(reporter, run, site.grace)
        self.run_id = run_id
        self._runtime = runtime
        self._site = site
        self._plan_file = plan_file
        self._hurrying: asyncio.Future[None] | None = None
        self._interview: Interview | None = None
        self._held_back: list[tuple[Event, RunReport, RunReport]] = []
        self._following: Following = {}
        self._answered: Run | None = None
        self._is_at_rest = False
        self._end: RunReport | None = None  # the run at rest; None where it was cut off before
        self._shown_warnings: set[str] = set()  # the warnings that were reported before

    def recall(
        self,
        report: RunReport,
        asks: Sequence[Question],
        results: Sequence[SpecialistResult],
    ) -> None:
        """Take over what was before this process, without showing it again."""
        self._shown_warnings |= {*report.warnings}
        outcome = "interrupted" if report.is_over else report.outcome
        left = {question.step_id for question in asks}
        answered = frozenset(q.step_id for q in report.pending_questions if q.step_id not in left)
        open_ones = {"pending_questions": tuple(asks), "answered": answered}
        facts: dict[str, object] = {"outcome": outcome, "answer": "", **open_ones}
        self.run = report.model_copy(update=facts)
        if report.plan is not None:
            self._plan_file.recall(report.plan, results, self.run_id)

    async def follow_run(self, begin: Callable[[Following], Awaitable[RunResult]]) -> int:
        """Follow a run until it rests and nobody answers, and return the exit code."""
        if self._site.asks:
            self._interview = self._open_interview()
            # The person is asked, and need not be told.
            self.untold = (InputRequested,)
            if asks := self.run.pending_questions:
                # What is asked is below the plan.
                self.reporter.follow(self.run)
            for ask in asks:
                self._interview.add(ask)
        # To the very end: whoever presses Ctrl-C again still reads how to continue.
        with handling_signals(self.stop):
            try:
                await self.follow(stream_of(partial(self._run_to_rest, begin)))
            finally:
                await self._close()
            return await self._say_how_it_rests()

    async def _run_to_rest(
        self,
        begin: Callable[[Following], Awaitable[RunResult]],
        report: Callable[[Event], None],
    ) -> RunReport:
        """Wait for the run to end or to rest; an answer to what it waits for lets it continue."""
        tokens = self._site.shows_tokens
        self._following = {"tokens": tokens, "on_event": report, "stop": self.stop.asked}
        begun = begin(self._following)
        while True:
            self._is_at_rest = False
            await begun
            self._end = end = await self._runtime.get(self.run_id)
            self._is_at_rest = True
            if self._answered is None and not await self._ask_open_questions(end):
                return end
            begun, self._answered = self._answered or begun, None

    async def _ask_open_questions(self, end: RunReport) -> bool:
        """Ask what the run waits for; return whether there was an answer."""
        asks = end.pending_questions
        if self._interview is None or not asks or self.stop.asked.is_set():
            return False
        return await self._interview.wait_for_answer(asks)

    async def _answer(self, ask: Question, answer: JsonValue) -> None:
        """Give an answer to the run, and continue it if it rests."""
        answers = {ask.key: ask.bound(answer)}
        self.run = self.run.after_answer(ask.key)
        self._answered = await self._runtime.answer(
            self.run_id, answers, by=user_name(), **self._following
        )

    async def begin_to_stop(self) -> bool:
        """Ask nothing more: what is typed now is not meant for a question."""
        if self._is_at_rest:
            return False
        if self._interview is not None:
            interview, self._interview = self._interview, None
            await interview.close()
        return True

    def stop_at_once(self) -> None:
        """Stop the run without waiting for its steps; one that rests is left as it is."""
        if self._is_at_rest:
            super().stop_at_once()
            return
        self._hurrying = asyncio.ensure_future(
            self._runtime.stop(self.run_id, by=user_name(), force=True)
        )

    def take(self, event: Event) -> None:
        """Take an event; what it asks is asked of the person, its plan is written to disk."""
        _log(event)
        self._shown_warnings |= warnings_shown_by(event)
        self._plan_file.follow(event)
        question = event.question if isinstance(event, InputRequested) else None
        if self._interview is not None and question is not None:
            self._interview.add(ask_of(question))
        super().take(event)

    def show(self, event: Event, before: RunReport, after: RunReport) -> None:
        """Show an event, or hold it back while a person is asked."""
        if self._interview is not None and self._interview.is_talking:
            self._held_back.append((event, before, after))
        else:
            super().show(event, before, after)

    def _open_interview(self) -> Interview:
        site = self._site

        def editing(has_terminal: bool) -> None:
            self.stop.is_editing = has_terminal

        desk = Desk(Keyboard(site.input.fileno()), site.output, site.environment, editing)
        return Interview(
            desk,
            give=self._answer,
            talking=self._talk,
            evidence=self._evidence_lines,
        )

    async def _evidence_lines(self, ask: Question) -> list[str]:
        report = await self._runtime.get(self.run_id)
        (evidence,) = await evidence_on_record([ask], report, self._storage)
        return evidence_lines(evidence)

    @property
    def _storage(self) -> Storage:
        return cast("Storage", self._runtime.storage)

    def _talk(self, ask: Question | None) -> None:
        """Hold back output while a person is asked, then show it."""
        if ask is not None:
            # A plan that is asked about is shown by the question.
            self.reporter.pause(shows_plan=ask.kind != PLAN)
            return
        held, self._held_back = self._held_back, []
        for held_event in held:
            super().show(*held_event)
        self.reporter.proceed(self.run)

    async def _close(self) -> None:
        """Report everything, and write everything known to disk."""
        async with AsyncExitStack() as last:
            last.callback(self._plan_file.write)
            last.callback(self.reporter.close)
            if self._interview is not None:
                last.push_async_callback(self._interview.close)
            if self._hurrying is not None:
                with suppress(ReplanError):  # the run itself reports it
                    await self._hurrying

    async def _say_how_it_rests(self) -> int:
        """Print what is next, and return the exit code."""
        end, site = self._end, self._site
        outcome = "interrupted" if end is None else end.outcome
        resume = site.resume(self.run_id)
        match end:
            case RunReport(outcome="waiting"):
                lines = await show_what_waits(end, self._storage, resume)
            case None | RunReport(outcome="interrupted"):
                how = [f"continue with: {resume}"] if resume else []
                lines = [self._interrupted_line(), *how]
            case _:
                is_short = outcome in (*INCOMPLETE_RUNS, "rejected")
                if is_short and site.shows_all and site.location.outlives:
                    site.complain(*map(harmless, next_lines(end, site.location.option)))
                return CODES.get(outcome, INCOMPLETE)
        if site.manner.as_json:
            asks = end.pending_questions if end else ()
            site.output.write(rest_line(outcome, self.run_id, asks, resume))
            site.output.flush()
        new = dict.fromkeys(end.warnings if end else ())
        warned = [f"warning: {each}" for each in new if each not in self._shown_warnings]
        site.complain(*map(harmless, [*(warned if site.shows_all else ()), *lines]))
        return self.stop.code or CODES.get(outcome, INCOMPLETE)

    def _interrupted_line(self) -> str:
        """The line for a run that was stopped."""
        total = len(self.run.planned)
        if not total:
            return "interrupted before there was a plan"
        done = self.run.count(StepStatus.COMPLETED) + self.run.count(StepStatus.SKIPPED)
        path = self._plan_file.path
        where = f"; the plan so far is in {path}" if path else ""
        return f"interrupted: {done} of {counted(total, 'step')} done{where}"


def _log(event: BaseEvent) -> None:
    """Log that an event happened, without its texts."""
    fields = {"event": getattr(event, "type", ""), "seq": event.seq, "round": event.round}
    if isinstance(event, StepEvent):
        fields |= {"step": event.step_id, "specialist": event.specialist, "attempt": event.attempt}
    for name in ("outcome", "limit", "error"):
        if getattr(event, name, ""):
            fields[name] = getattr(event, name)
    if isinstance(event, SpecialistCompleted):
        fields |= {"status": event.status.value, "seconds": f"{event.seconds:.3f}"}
    logger.debug("event", extra=fields)
