"""One run while this process works on it: from where it is to its end, a question or a stop."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypedDict, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs
from langgraph.types import Command, StateSnapshot

from replan.base.errors import StorageError, ThreadBusyError
from replan.base.langgraph_inside.tasks import without_tokens
from replan.log.calls import with_counted
from replan.log.events.types import Event, WarningReported
from replan.log.rows import STEERS, Request
from replan.log.run_log import RunLog
from replan.log.whole_results import whole_values
from replan.plan.model import TaskPlan
from replan.ports.run_book import RunBook, RunRecord, TeamIdentity
from replan.ports.run_context import use
from replan.ports.steering import STEERED, TOO_LATE, Steering, missed_warning
from replan.ports.storage import Storage
from replan.runs.asked.asks import asks_in
from replan.runs.asked.requests import answers_in, note_answers, outcomes_of, settle_missed
from replan.runs.calling.compiled import Graph, services_in, shapes_of
from replan.runs.calling.given_input import Input, read_settings
from replan.runs.calling.new_or_continued import Call, is_not_begun
from replan.runs.calling.team_graph import alone
from replan.runs.log.event_log import EventListener, EventLog
from replan.runs.log.rest_events import RestEvents
from replan.runs.reports import check_goes_on, config_of, keep_report
from replan.runs.result import RunResult, result_of
from replan.runs.running import followed
from replan.runs.stopping import StopSignal, put_an_end_to
from replan.runs.team_on_record import changes_of_team, team_for
from replan.state.enhanced import EnhancedState
from replan.state.limits import RunSettings
from replan.state.person.waiting import asks_of, resumption


class Following(TypedDict, total=False):
    """How the caller of a run follows and stops it."""

    tokens: bool  # whether texts are reported piece by piece
    on_event: EventListener  # receives each event as it is, once it is on record
    stop: (
        asyncio.Event | None
    )  # set it to stop the run; also set if the run is stopped by other means


QueueStatus = Literal["waits", "at work"]
"""The status of the job of a run: it waits in the queue, or a worker has it."""


class Queued(Protocol):
    """Reports the status of runs in the queue."""

    async def __call__(self, run_id: str, *, is_followed: bool = False) -> QueueStatus | None:
        """The status of the job of a run, if any; if followed, that of a moment ago is enough."""
        ...


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What all runs of a runtime are worked on with."""

    graph: Graph
    team: TeamIdentity  # who does them
    storage: Storage | None  # where runs are kept; None: nowhere
    runs: RunBook  # which runs there are
    log: RunLog  # their events, and what is asked of them
    clock: Callable[[], datetime]  # the time, with a zone
    new_id: Callable[[], str]
    grace: float  # seconds that running steps have to end once a run is to stop
    on_event: EventListener | None = (
        None  # receives the events of all runs, once they are on record
    )
    queued: Queued | None = None  # the status of runs in the queue; None without a queue


@dataclass(frozen=True, kw_only=True)
class RunJob:
    """Work on a run that is to be done: from its beginning, or from where it rests."""

    record: RunRecord  # the run, as it is entered into the list
    input: Input = None  # what it begins or continues with
    settings: RunSettings | None = None
    config: RunnableConfig | None = None
    goes_on: bool = False  # whether it has begun before
    by: str = ""  # who continues it
    gives_way: bool = False  # whether to leave it alone if a stop was requested in the meantime
    # Says, once its thread is held here, whether to leave it alone all the same.
    unless: Callable[[], Awaitable[bool]] | None = None
    prior_events: tuple[Event, ...] = ()  # what a person did to it before
    # How its caller follows and stops it.
    following: Following = field(default_factory=Following)

    def __post_init__(self) -> None:
        # Settings of another type would be left out in silence.
        object.__setattr__(self, "settings", read_settings(self.settings))

    @property
    def run_id(self) -> str:
        return self.record.run_id

    @property
    def thread_id(self) -> str:
        return self.record.thread_id

    def call(
        self, run_input: Input, settings: RunSettings | None, warnings: tuple[str, ...] = ()
    ) -> Call:
        config = merge_configs(self.config or {}, config_of(self.thread_id))
        config = config if self.following.get("tokens") else without_tokens(config)
        return Call(run_input, settings, config, self.run_id, warnings)


class RunAtWork:
    """One run that this process works on."""

    def __init__(self, job: RunJob, resources: Resources, log: EventLog) -> None:
        """Prepare; `run_to_rest` does it."""
        self.job = job
        self.log = log
        self.has_begun = False  # whether it is in the list, and its thread is held here
        # Set once it has begun, or another process turns out to work on it.
        self.settled = asyncio.Event()
        # Whether it takes no further answer: an answer then continues the run elsewhere.
        self.is_resting = False
        self._resources = resources
        self._stop = job.following.get("stop") or asyncio.Event()
        self._at_once = asyncio.Event()
        self._answers: list[Request] = []
        self.steering = Steering()  # what people ask of the run while it is at work
        # The names of what was handled: a row may be read before it is marked as taken.
        self._handled = set[str]()
        self._is_over = False  # whether what steers the run comes too late
        self._state: EnhancedState = {}  # the state in which it rests
        self._whose = dict[str, str]()  # who answered, by the keys of what was asked
        self._since = resources.clock()
        hooks = services_in(resources.graph).hooks.of(job.run_id)
        self._changes = changes_of_team(job.record, resources.team) if job.goes_on else ()
        prior_events = (
            *job.prior_events,
            *(WarningReported(run_id=job.run_id, text=t) for t in self._changes),
        )
        self._rests = RestEvents(
            log, hooks, job.run_id, goes_on=job.goes_on, by=job.by, prior_events=prior_events
        )

    def stop(self, *, by: str = "", force: bool = False) -> None:
        """Stop the run, and let it come to rest."""
        self._rests.stopped_by = by or self._rests.stopped_by
        self._stop.set()
        if force:
            self._at_once.set()

    def is_unhandled(self, request: Request) -> bool:
        """Whether a request is not handled yet."""
        return request.name not in self._handled

    async def handle(self, request: Request, at_work: tuple[int, ...] = ()) -> None:
        """Handle a request; `at_work` are the steps that one that steers the run waits for."""
        if request.kind == "stop":
            self.stop(by=request.by)
            await self._take([request])
        elif not self.is_unhandled(request) or (self._is_over and request.kind in STEERS):
            return
        elif request.kind in STEERS:
            self._handled.add(request.name)
            self.steering.add(request)
            self._rests.steered(request, status="waits", waiting_for=at_work)
        else:
            self._handled.add(request.name)
            self._answers.append(request)
            if self._lets_go_on(request):
                self._rests.resumed_by = request.by
            self._whose.update(dict.fromkeys(request.answers, request.by))
            if self._resources.storage is not None:
                await note_answers(request, self._resources.storage.log)

    def _lets_go_on(self, request: Request) -> bool:
        """Whether a run that nobody by name resumes goes on because of an answer."""
        # Who had it before may have gone on with it, and died before it was marked as taken.
        before = self.log.resumed_at
        return not self.job.by and (before is None or request.at > before)

    async def refuse(self, request: Request, why: str, plan: TaskPlan | None) -> None:
        """Refuse a request that steers the run, before anything is held up for it."""
        if not self.is_unhandled(request) or self._is_over:
            return
        if not self._rests.has_begun:
            # Nothing can be reported yet: the node that would take it says so.
            await self.handle(request)
            return
        self._handled.add(request.name)
        version = 0 if plan is None else plan.version
        self._rests.steered(request, status="refused", reason=why, version=version)
        await self.log.flush()
        await self._take([request])

    async def run_to_rest(self) -> RunResult:
        """Work on the run until it rests; who follows it hears the end once its record has it."""
        try:
            result = await self._run_alone()
            # Until its thread is given up, whoever asks something of it relies on its owner.
            if self._is_over:
                await settle_missed(self._state, self._resources.log, self._resources.clock())
            return result
        finally:
            self.log.close()

    async def _run_alone(self) -> RunResult:
        """Work on the run, as the owner of its thread from the first to the last."""
        resources, job = self._resources, self.job
        async with alone(resources.graph, config_of(job.thread_id)) as owner:
            if job.gives_way and await self._was_stopped():
                raise StopSignal
            if job.unless is not None and await job.unless():
                raise ThreadBusyError(job.thread_id)
            if job.goes_on and resources.storage is not None:
                await check_goes_on(resources.graph, job.record)
            with owner.at_work() if owner else nullcontext():
                await resources.runs.begin(
                    job.record.replace(
                        outcome="running",
                        settings=job.settings,
                        team=team_for(job.record.labels, resources.team),
                        updated_at=resources.clock(),
                    )
                )
                self.has_begun = True
                self.settled.set()
                if job.goes_on:
                    await self.log.recall()
                await self._drop_what_is_past()
                await self._forget_texts()
                outcome = "interrupted"
                try:
                    result = await self._work_and_log()
                    outcome = result.outcome
                    return result
                finally:
                    if not (owner and owner.is_lost):
                        await resources.runs.update(
                            job.run_id, cast("Any", outcome), resources.clock()
                        )

    async def _work_and_log(self) -> RunResult:
        """Work on the run, and record its events to the last one."""
        writing = asyncio.ensure_future(self.log.write())
        working = asyncio.ensure_future(self._work_and_report())
        try:
            await asyncio.wait({writing, working}, return_when=asyncio.FIRST_COMPLETED)
            if writing.done():
                writing.result()
            result = await working
            self.log.end()
            await writing
            await self._keep_report()
        except BaseException:
            await put_an_end_to(working)
            self.log.end()
            await asyncio.wait({writing})
            # The first error counts; retrieved, so that asyncio does not complain.
            writing.exception()
            raise
        return result

    async def _keep_report(self) -> None:
        """Keep what is shown of the state of a run that is over: who shows it reads rows."""
        storage, state = self._resources.storage, self._state
        if storage is not None and state.get("is_completed"):
            # Without it the state is read.
            with suppress(StorageError):
                await keep_report(state, storage.log, self._resources.clock())

    async def _work_and_report(self) -> RunResult:
        numbered = self._resources.log.numbered_with(self.job.run_id, self._rests)
        async with self._rests:
            with numbered:
                state = await self._run_until_rest()
            state = await whole_values(state, self._resources.log)
            if "usage" in state:
                usage = with_counted(state["usage"], self.log.calls)
                state = cast("EnhancedState", {**state, "usage": usage})
            self._state = state
            result = result_of(state, self._rests.seconds, shapes_of(self._resources.graph))
            self._rests.outcome = result.outcome
        return result

    async def _forget_texts(self) -> None:
        """Remove the prompts and other texts of all runs that are older than their retention."""
        days = self._resources.storage.keep_days if self._resources.storage else None
        if days is not None:
            await self._resources.log.forget_texts(self._resources.clock() - timedelta(days=days))

    async def _was_stopped(self) -> bool:
        """Whether it was stopped since its record was read."""
        now = await self._resources.runs.get(self.job.run_id)
        before = self.job.record.outcome
        return now is not None and before == "running" and now.outcome == "interrupted"

    async def _run_until_rest(self) -> EnhancedState:
        use(answered_by=self._whose, steering=self.steering)
        use(prior_durations=(self.job.thread_id, self.log.worked))
        run_input, settings = await self._first_input(), await self._settings()
        while True:
            used = list(self._answers)
            state = await followed(
                self._resources.graph,
                self.job.call(run_input, settings, self._changes),
                self._rests.take,
                stop=self._stop,
                grace=self._resources.grace,
                at_once=self._at_once,
            )
            asks = asks_in(state)
            is_stopped = self._stop.is_set()
            if not is_stopped:
                # A run that was stopped may not have come to them.
                await self._take(used)
            requests = await self._resources.log.requests([self.job.run_id])
            for request in () if is_stopped else requests:
                await self.handle(request)
            values = resumption(asks, answers_in(self._answers, asks))
            self.is_resting = self._stop.is_set() or not values
            if self.is_resting:
                return await self._with_missed(state, await self._without_merged(requests))
            # The run has its settings by now.
            run_input, settings, self._changes = Command(resume=values), None, ()

    async def _first_input(self) -> Input:
        """What the run begins or continues with: answers that are there already, as one word."""
        if self.job.input is not None or not self._answers:
            return self.job.input
        config = config_of(self.job.thread_id)
        snapshot: StateSnapshot = await cast("Any", self._resources.graph).aget_state(config)
        asks = asks_of(snapshot.interrupts)
        keys = {ask.key for ask in asks}
        # Where the steps asked, the answer is on record for them; else it is past.
        await self._take([request for request in self._answers if keys.isdisjoint(request.answers)])
        values = resumption(asks, answers_in(self._answers, asks))
        return Command(resume=values) if values else None

    async def _settings(self) -> RunSettings | None:
        """The settings of the call; a run that was killed before it began has those of its start.

        Once it has begun, they are in its state.
        """
        job = self.job
        if not job.goes_on or job.record.settings is None:
            return job.settings
        config = config_of(job.thread_id)
        snapshot: StateSnapshot = await cast("Any", self._resources.graph).aget_state(config)
        if not is_not_begun(snapshot):
            return job.settings
        return job.record.settings.overridden_by(job.settings)

    async def _take(self, requests: Sequence[Request]) -> None:
        """Mark requests as handled; later readers of the rows skip them."""
        if requests:
            self._answers = [request for request in self._answers if request not in requests]
            await self._resources.log.take_requests(requests, self._resources.clock())

    async def _without_merged(self, requests: Sequence[Request]) -> Sequence[Request]:
        """Mark what steered the run as taken, once the state that has it is stored."""
        run_id, log = self.job.run_id, self._resources.log
        steers = [request for request in requests if request.kind in STEERS]
        if not steers:
            return requests
        config = config_of(self.job.thread_id)
        newest: StateSnapshot = await cast("Any", self._resources.graph).aget_state(config)
        # A node that began at the newest checkpoint begins again, and takes the same ones.
        begins = newest.config.get("configurable", {}).get("checkpoint_id", "")
        notes = (await log.notes(run_id, STEERED)).items()
        taken = {
            name
            for key, names in notes
            if key.rpartition("/")[2] != begins
            for name in cast("list[str]", names)
        }
        merged = [request for request in steers if request.name in taken]
        await self._take(merged)
        return [request for request in requests if request not in merged]

    async def _with_missed(
        self, state: EnhancedState, requests: Sequence[Request]
    ) -> EnhancedState:
        """The state of a run that is over, with what people asked of it too late."""
        log = self._resources.log
        if not state.get("is_completed"):
            return state
        self._is_over = True
        waiting = [request for request in requests if request.kind in STEERS]
        if not waiting:
            return state
        # What was refused just now is on record then.
        await self.log.flush()
        outcomes = await outcomes_of(waiting, log)
        missed = [request for request in waiting if request.name not in outcomes]
        for request in missed:
            self._rests.steered(request, status="refused", reason=TOO_LATE)
        await self._take(waiting)
        warnings = [*state.get("warnings", ()), *map(missed_warning, missed)]
        return cast("EnhancedState", {**state, "warnings": warnings})

    async def _drop_what_is_past(self) -> None:
        """Take the answers that wait; a wish to stop was for who worked on the run before."""
        requests = await self._resources.log.requests([self.job.run_id])
        requests = await self._without_merged(requests)
        past = [
            request for request in requests if request.kind == "stop" and request.at < self._since
        ]
        steers = [request for request in requests if request.kind in STEERS]
        # Who worked on the run before may have refused one, and died before it was marked.
        outcomes = await outcomes_of(steers, self._resources.log)
        refused = {name for name, outcome in outcomes.items() if outcome.status == "refused"}
        past += [request for request in steers if request.name in refused]
        await self._take(past)
        for request in requests:
            if request not in past:
                await self.handle(request)
