"""The run service: start, follow, answer, stop and look at runs by their ids.

A terminal, a server and a worker use it. If another process works on a run, a request to the run is
a row, which the owner reads within a second. If no process works on the run, the asking process
takes it.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, Unpack, cast, overload

from langchain_core.runnables import RunnableConfig
from pydantic import JsonValue

from replan.base.errors import InputError
from replan.log.events.types import Event
from replan.log.labels import checked_labels
from replan.log.report import RunReport
from replan.log.rows import Request, RequestKind
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.asked.requests import (
    BEAT,
    answer_rows,
    check_same_answers,
    check_steer,
    digest_of_answers,
    is_repeated,
    name_of_message,
    refuse_if_over,
    refuse_second_edit,
)
from replan.runs.calling.barred import lift
from replan.runs.calling.compiled import services_in
from replan.runs.calling.given_input import Input, checked_run_id
from replan.runs.calling.team_graph import alone
from replan.runs.continued.correcting import Correction, CorrectionOptions, in_new_run, in_place
from replan.runs.continued.recovery import Recoverer, Recovery, RecoveryWanted
from replan.runs.continued.resuming import begun_again, remaining_work
from replan.runs.reads import (
    check_keeps_runs,
    follow_events,
    is_worked_on,
    kept_record_of,
    record_of,
    report_of,
    result_at_rest,
    state_of,
)
from replan.runs.reports import check_goes_on, config_of
from replan.runs.result import RunResult, T_co
from replan.runs.run import Run
from replan.runs.run_at_work import Following, Resources, RunJob
from replan.runs.run_input import new_input, stored_input, title_of
from replan.runs.runs_at_work import RequestFields, RunsAtWork
from replan.runs.statuses import RunStatus, checked_statuses, page_of, records_of
from replan.runs.team_on_record import has_team_of, team_for, with_team
from replan.state.conversation.facts import Fact, facts_of
from replan.state.limits import RunSettings
from replan.state.person.answers import read_answers

if TYPE_CHECKING:
    from replan.runs.travel.portable import PortableRun


class StartOptions(Following, total=False):
    """The options of a new run; see `Runtime.start`."""

    settings: RunSettings | None
    config: RunnableConfig | None
    run_id: str | None
    thread_id: str | None
    title: str
    order: JsonValue
    labels: Mapping[str, str] | None


class ResumeOptions(Following, total=False):
    """The options of `Runtime.resume` beside `wait`."""

    settings: RunSettings | None
    config: RunnableConfig | None
    by: str


class Runtime(Generic[T_co]):
    """The runs of one team in one storage; `open_runtime` opens it."""

    def __init__(self, resources: Resources, runs_at_work: RunsAtWork | None = None) -> None:
        """Prepare; `open_runtime` does it."""
        self._resources = resources
        self._runs_at_work = runs_at_work if runs_at_work is not None else RunsAtWork(resources)
        self._is_closed = False

    @property
    def resources(self) -> Resources:
        """The parts that work on its runs; for code that extends a runtime."""
        return self._resources

    @property
    def graph(self) -> Any:
        """The team's compiled LangGraph graph."""
        return self._resources.graph

    @property
    def at_work(self) -> int:
        """How many runs this process works on."""
        return self._runs_at_work.number

    @property
    def storage(self) -> Storage | None:
        """The storage of the runs; None if they are not stored."""
        return self._resources.storage

    async def run(
        self,
        input: Input,  # noqa: A002 - LangGraph calls it so
        **options: Unpack[StartOptions],
    ) -> RunResult[T_co]:
        """Run a request until it is over, waits for a person or is stopped; see `start`."""
        return await (await self.start(input, **options))

    async def start(  # noqa: PLR0913 - what a run can be told
        self,
        input: Input,  # noqa: A002 - LangGraph calls it so
        *,
        settings: RunSettings | None = None,
        config: RunnableConfig | None = None,
        run_id: str | None = None,
        thread_id: str | None = None,
        title: str = "",
        order: JsonValue = None,
        labels: Mapping[str, str] | None = None,
        **following: Unpack[Following],
    ) -> Run[T_co]:
        """Begin a run, and return it immediately.

        Args:
            input: The request as a text, or a mapping with `messages` and optionally `plan`.
            settings: The settings of this run; fields that are not set keep the team's values.
            config: LangChain's configuration, for callbacks, tags and metadata.
            run_id: The run's id; by default a new one. The same input under the same id continues
                the run, and does nothing more if the run is over; another input is refused.
            thread_id: The conversation of the run; by default a new one.
            title: A title for lists; by default the beginning of the request.
            order: The data that is needed to build the same graph again; JSON without secrets. By
                default the request and the team, which `resume_interrupted` needs.
            labels: Labels for finding the run, such as `{"user": "eva"}`; no secrets, because
                storage does not encrypt labels.
            following: `tokens=True` yields texts piece by piece, `on_event` is called with each
                event once it is on record, and `stop` is an `asyncio.Event` that stops the run.

        Raises:
            InputError: It says nothing, its plan names unknown specialists, or its id is that of a
                run with another input, or of one behind which its thread went on.
            PlanDocumentError: Its plan has mistakes.
            ThreadBusyError: Another run works on the thread.
            StorageError: It cannot be stored.
        """
        run_input = new_input(self._resources.graph, input)
        run_id = checked_run_id(run_id) or self._resources.new_id()
        now = self._resources.clock()
        record = RunRecord(
            run_id=run_id,
            thread_id=thread_id or run_id,
            title=title or title_of(run_input),
            order=with_team(stored_input(run_input), self._resources.graph)
            if order is None
            else order,
            team=team_for(labels or {}, self._resources.team),
            started_at=now,
            updated_at=now,
            labels=checked_labels(labels),
        )
        job = RunJob(
            record=record, input=run_input, settings=settings, config=config, following=following
        )
        return await self._begin(job)

    async def _begin(self, job: RunJob) -> Run[T_co]:
        record = await self._resources.runs.get(job.run_id)
        if record is not None:
            job = replace(job, record=record, goes_on=True)
            if job.input is not None and self.storage is not None:
                left = await begun_again(job, self._resources)
                if left is None:
                    return Run(self, job.run_id)
                job = left
        return Run(
            self, job.run_id, await self._runs_at_work.start_or_join(job, is_new=record is None)
        )

    async def execute(self, job: RunJob) -> Run[T_co]:
        """Work on a run as a job says; for code that extends a runtime."""
        return Run(self, job.run_id, await self._runs_at_work.start_or_join(job))

    @overload
    async def resume(
        self, run_id: str, *, wait: Literal[True] = True, **options: Unpack[ResumeOptions]
    ) -> RunResult[T_co]: ...
    @overload
    async def resume(
        self, run_id: str, *, wait: Literal[False], **options: Unpack[ResumeOptions]
    ) -> Run[T_co]: ...
    async def resume(
        self,
        run_id: str,
        *,
        wait: bool = True,
        settings: RunSettings | None = None,
        config: RunnableConfig | None = None,
        by: str = "",
        **following: Unpack[Following],
    ) -> RunResult[T_co] | Run[T_co]:
        """Resume a run that was stopped or killed, or that a limit ended; finished work is kept.

        A waiting run keeps waiting until it is answered. A finished run returns its result.

        Args:
            run_id: The run.
            wait: Whether to wait for its result; otherwise the run is returned immediately.
            settings: Changed settings; a limit that ended the run must be raised.
            config: LangChain's configuration, for callbacks, tags and metadata.
            by: The person who resumes it, and raises the limit.
            following: How to follow and stop the run; see `start`.

        Raises:
            InputError: There is no such run, or runs are not kept.
            ThreadBusyError: Another process works on the run.
        """
        self._runs_at_work.check_can_work()
        record = await kept_record_of(run_id, self._resources)
        job = RunJob(
            record=record,
            settings=settings,
            config=config,
            following=following,
            goes_on=True,
            by=by,
        )
        left = await remaining_work(job, self._resources)
        run = Run(self, run_id, left and await self._runs_at_work.start_or_join(left))
        return await run if wait else run

    async def resume_interrupted(
        self,
        *,
        at_once: int = 4,
        limit: int = 1000,
        by: str = "",
        config: RunnableConfig | None = None,
        **following: Unpack[Following],
    ) -> Recovery[T_co]:
        """Resume the runs of this team whose process was killed or shut down, until they rest.

        Finished work is kept. Unsafe work whose end is unknown is asked about, so such a run comes
        back as `waiting`. A run that a process works on, that waits for a person or that a person
        stopped is left alone; several processes may call this at the same time. Whoever is
        cancelled begins no further run, and leaves those at work to the runtime.

        Args:
            at_once: How many runs are worked on at the same time.
            limit: How many runs that are not over are looked at, the newest first, those that wait
                for a person last.
            by: Who resumes them, for their events.
            config: LangChain's configuration, for callbacks, tags and metadata.
            following: How to follow and stop the runs; see `start`.

        Raises:
            InputError: Runs are not kept, or workers do them: they resume runs by themselves.
            StorageError: The list of runs cannot be read.
        """
        check_keeps_runs(self._resources)
        if self._resources.queued is not None:
            raise InputError("Workers do these runs, and resume them by themselves.")
        wanted = RecoveryWanted(
            at_once=at_once, limit=limit, by=by, config=config, following=following
        )
        return await Recoverer[T_co](wanted, self._resources, self._runs_at_work).recovery()

    async def answer(
        self,
        run_id: str,
        answers: object,
        *,
        settings: RunSettings | None = None,
        by: str = "",
        name: str = "",
        **following: Unpack[Following],
    ) -> Run[T_co]:
        """Answer questions of a run. The run continues, here or in the process that works on it.

        Args:
            run_id: The run.
            answers: A mapping from keys of `get(run_id).pending_questions` to answers, or the
                answer to the only question. For a plan or a tool call, `approve`, `reject: WHY`
                or a `Decision`, under its whole key; or a mapping with its `fingerprint`.
            settings: Changed settings, if the run continues here.
            by: The person who answers.
            name: What tells it from other answers to the run: sent again, it counts once.
            following: How to follow and stop the run, if it continues here; see `start`.

        Raises:
            InputError: There is no such run, it asks nothing, the answer fits nothing that is asked
                now, or another answer has its name. Nothing was answered.
        """
        record, log = await kept_record_of(run_id, self._resources), self._resources.log
        earlier = await log.request(run_id, name) if name else None
        said = digest_of_answers(answers)
        if earlier is not None and await log.is_taken(run_id, name):
            check_same_answers(said, earlier)
            return Run(self, run_id)
        await check_goes_on(self._resources.graph, record)
        report = await self.get(run_id)
        asks = report.pending_questions
        if report.is_over and earlier is None:
            raise InputError("The run is over, and asks nothing any more. Begin a new one.")
        try:
            rows = answer_rows(asks, read_answers(answers, asks))
        except InputError:
            # It was sent before where the run has noted it, and asks no longer.
            if earlier is None:
                raise
            check_same_answers(said, earlier)
        else:
            # The digest of a short secret would give it away.
            said = "" if any(ask.secret for ask in asks if ask.key in rows) else said
            await self._runs_at_work.ask(run_id, "answer", by, name, answers=rows, said=said)
        await self._runs_at_work.wait_if_resting(run_id)
        job = RunJob(
            record=record, settings=settings, goes_on=True, gives_way=True, following=following
        )
        return Run(self, run_id, await self._runs_at_work.start_or_join(job))

    async def edit_plan(
        self, run_id: str, plan: str, *, version: int, by: str = ""
    ) -> tuple[int, ...]:
        """Edit the plan of a run that is not over; the steps that have not begun follow it.

        The process that works on the run notices within a second. From then on no step of the old
        plan begins, and what can begin of the edited plan does, unless it needs approval; once the
        steps at work have ended, the edit is merged as a new version. If nobody works on the run,
        it is merged when the run continues. The event `run_steered` reports both, or why the edit
        was refused after all.

        Args:
            run_id: The run.
            plan: The whole edited document, as `get(run_id).plan.content` has it.
            version: The version that the edit was made from, `get(run_id).plan.version`.
            by: The person who edits.

        Returns:
            The steps at work, which the edit waits for.

        Raises:
            PlanConflictError: The plan has another version by now.
            PlanDocumentError: The document has mistakes.
            InputError: There is no such run, it is over, waits for approval of its plan, or has no
                round left; another edit waits; or the edit changes a step that has begun.
        """
        return await self._steer(run_id, "edit", by, text=plan, version=version)

    async def send_message(
        self, run_id: str, text: str, *, by: str = "", name: str = ""
    ) -> tuple[int, ...]:
        """Tell the host of a run that is not over something, such as "also compare 2023".

        The process that works on the run notices within a second. From then on nothing that has
        not begun starts; once the steps at work have ended, the host judges the round with the
        message, and can revise the plan. The event `run_steered` reports both, or that the run
        ended before the message was considered.

        Args:
            run_id: The run.
            text: What the host should know; it becomes a part of the request.
            by: The person who says it.
            name: What tells it from other messages to the run: sent again, it counts once.

        Returns:
            The steps at work, which the message waits for; none if it was sent before.

        Raises:
            InputError: There is no such run, it is over, waits for approval of its plan, has no
                host, or its plan must not be revised; or the message is empty.
        """
        name = name_of_message(name)
        return await self._steer(run_id, "message", by, name, text=text)

    async def _steer(
        self,
        run_id: str,
        kind: RequestKind,
        by: str,
        name: str = "",
        **fields: Unpack[RequestFields],
    ) -> tuple[int, ...]:
        resources = self._resources
        record = await kept_record_of(run_id, resources)
        draft = Request(run_id=run_id, name=name, kind=kind, at=resources.clock(), by=by, **fields)
        if name and await is_repeated(draft, resources.log):
            return ()
        await check_goes_on(resources.graph, record)
        await refuse_second_edit(draft, resources.log)
        at_work = check_steer(
            draft,
            await self._report(record),
            await state_of(run_id, resources),
            services_in(resources.graph) if has_team_of(record, resources.graph) else None,
        )
        request = await self._runs_at_work.ask(run_id, kind, by, name, **fields)
        await refuse_if_over(request, await self.get(run_id), resources.log, resources.clock())
        return at_work

    async def retry(
        self,
        run: str,
        step: int,
        /,
        *,
        by: str = "",
        step_timeout: float | None = None,
        **options: Unpack[CorrectionOptions],
    ) -> Run[T_co]:
        """Repeat a step and its dependents, and continue the run.

        A run that waits, was stopped or was ended by a limit continues, and the plan's history
        records this. A finished run is not changed: a new run begins from its document, and keeps
        the finished steps that do not depend on this step.

        Args:
            run: The run.
            step: The step.
            by: The person who requests it.
            step_timeout: The seconds that an attempt of the step has from now on, for a step whose
                own `timeout` in the plan was too short; its line of the plan says so then.
            options: `settings` are changed settings; they must raise a limit that leaves no room.
                `allow_repeat=True` lets a new run repeat unsafe work without asking. `run_id` and
                `order` belong to a new run. Other options are as in `start`.

        Raises:
            InputError: There is no such run or step, the step is not settled yet, a limit leaves
                no room, or work with effects would be done again.
            ThreadBusyError: Another process works on the run.
        """
        correction = Correction(action="retry", step=step, by=by, timeout=step_timeout)
        return await self._correct(run, correction, options)

    async def skip(
        self, run: str, step: int, /, *, by: str = "", **options: Unpack[CorrectionOptions]
    ) -> Run[T_co]:
        """Skip a step that is not done, and continue: its dependents run without it.

        The answer lists the step under "Not done". As in `retry`, the run or a new run continues.

        Args:
            run: The run.
            step: The step.
            by: The person who requests it.
            options: As in `retry`.

        Raises:
            InputError: There is no such run or step, the step is settled well, or a limit leaves
                no room.
            ThreadBusyError: Another process works on the run.
        """
        return await self._correct(run, Correction(action="skip", step=step, by=by), options)

    async def _correct(
        self, run_id: str, correction: Correction, options: CorrectionOptions
    ) -> Run[T_co]:
        self._runs_at_work.check_can_work()
        record = await kept_record_of(run_id, self._resources)
        if (await self._report(record)).is_final:
            return await self._begin(await in_new_run(correction, record, options, self._resources))
        async with alone(self._resources.graph, config_of(record.thread_id)) as owner:
            with owner.at_work() if owner else nullcontext():
                job = await in_place(correction, record, options, self._resources)
        return await self._begin(job)

    async def stop(self, run_id: str, *, by: str = "", force: bool = False) -> None:
        """Stop a run gracefully: no new step starts, and running steps get the grace to end.

        The run can be resumed by its id; `resume_interrupted` leaves it alone. The process that
        works on it stops it within a second. If none does, the stop is only put on record.

        Args:
            run_id: The run.
            by: The person who stops it.
            force: Whether steps that run here get no grace.

        Raises:
            InputError: There is no such run.
        """
        if work := self._runs_at_work.begun_run(run_id):
            # Whatever happens to the storage.
            work.stop(by=by, force=force)
        record = await record_of(run_id, self._resources)
        is_at_rest = work is None and record.outcome not in ("running", "interrupted")
        if is_at_rest and not (await self._report(record)).is_held:
            return
        # Also of a run that was shut down: it then stays so.
        request = await self._runs_at_work.ask(run_id, "stop", by)
        if work is not None:
            return
        report = await self.get(run_id)
        if report.is_held:
            return
        await self._resources.log.take_requests([request], self._resources.clock())
        if (await record_of(run_id, self._resources)).outcome == "running":
            outcome = cast("Any", report.outcome)
            await self._resources.runs.update(run_id, outcome, self._resources.clock())

    async def events(
        self, run_id: str, *, after: int = 0, tokens: bool = False
    ) -> AsyncGenerator[Event]:
        """Yield the events of a run after a number, past and new, until no process works on it.

        Without storage the events of a run are dropped when its result was returned.

        Args:
            run_id: The run.
            after: The number of the last known event.
            tokens: Whether to yield pieces of text, too, if this runtime started the run with
                `tokens`.

        Raises:
            InputError: There is no such run, or `after` is not a valid number.
        """
        if after < 0:
            raise InputError(
                f"after={after} is not the number of an event. The first is 1; write 0."
            )
        await record_of(run_id, self._resources)
        work = self._runs_at_work.begun_run(run_id)
        kept = follow_events(run_id, after, self._resources)
        async with aclosing(work.log.follow(after, tokens=tokens) if work else kept) as following:
            async for event in following:
                yield event

    async def get(self, run_id: str) -> RunReport:
        """Return the report of a run: its status, its plan, its steps, and what it waits for.

        Raises:
            InputError: There is no such run.
        """
        return await self._report(await record_of(run_id, self._resources))

    async def text(self, run_id: str, ref: str) -> str | None:
        """Return a long text of an event, to which a `ref` in its `details` points.

        None if the text is no longer kept (`keep_days`), or does not exist.

        Raises:
            InputError: There is no such run.
        """
        await record_of(run_id, self._resources)
        return await self._resources.log.text(run_id, ref)

    async def runs(
        self,
        limit: int = 20,
        *,
        labels: Mapping[str, str] | None = None,
        status: RunStatus | Collection[RunStatus] | None = None,
    ) -> list[RunReport]:
        """Return the latest runs, the newest first.

        Args:
            limit: How many runs at most.
            labels: Only runs with all these labels.
            status: Only runs with this status, or with one of several. A run whose process was
                killed is `interrupted` or `waiting`, as in `get`.

        Raises:
            InputError: There is no such status.
        """
        statuses, page = checked_statuses(status), max(limit, 1)
        book, wanted = self._resources.runs, checked_labels(labels)

        async def listed(record: RunRecord) -> RunReport | None:
            report = await self._report(record)
            return report if not statuses or report.outcome in statuses else None

        records = records_of(book, labels=wanted, statuses=statuses, page=page)
        return (await page_of(records, max(limit, 0), listed, sys.maxsize))[0]

    async def facts(self, user: str, *, tenant: str = "", query: str = "") -> list[Fact]:
        """Return what the team remembers about a user: the newest first, or what fits a query best.

        Raises:
            ConfigurationError: No user is named, or the graph has no store.
        """
        facts = facts_of(self._resources.graph.store, user, tenant)
        return (await facts.recall(query))[0] if query else await facts.all()

    async def forget_fact(self, user: str, fact_id: str, *, tenant: str = "") -> bool:
        """Forget a fact of a user; return whether there was one of this id.

        Raises:
            ConfigurationError: No user is named, or the graph has no store.
        """
        return await facts_of(self._resources.graph.store, user, tenant).forget(fact_id) is not None

    async def wait(self, run_id: str) -> RunResult[T_co]:
        """Wait until no process works on a run or this runtime is closed, and return its result.

        Raises:
            InputError: There is no such run.
        """
        while run_id in self._runs_at_work or await is_worked_on(
            run_id, self._resources, is_followed=True
        ):
            if run_id in self._runs_at_work:
                await self._runs_at_work.wait_until_ended(run_id)
            elif self._is_closed:
                # Another process works on it, and may do so for days.
                break
            else:
                await asyncio.sleep(BEAT)
        return await result_at_rest(run_id, self._resources)

    async def export(self, run_id: str) -> "PortableRun":
        """Return a run that waits or was stopped, so that another runtime can adopt it.

        From then on it does not go on here, unless `take_back` says so: it would be done twice.

        Raises:
            InputError: There is no such run, it is over, or it cannot travel.
            ThreadBusyError: A process works on the run.
        """
        from replan.runs.travel.portable import export_of  # noqa: PLC0415 - few runs travel

        return await export_of(run_id, self._resources)

    async def take_back(self, run_id: str) -> None:
        """Let a run that was exported go on here after all; nobody may adopt that export then.

        Raises:
            InputError: There is no such run, or it was cancelled for good.
        """
        await kept_record_of(run_id, self._resources)
        await lift(self._resources.log, run_id)

    async def adopt(
        self,
        run: "PortableRun",
        *,
        thread_id: str | None = None,
        order: JsonValue = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Take over a run that another runtime exported: `resume` or `answer` continues it.

        Args:
            run: The run.
            thread_id: A new conversation for it; by default named as the run.
            order: The data that is needed to build the same graph again; see `start`.
            labels: Labels for finding the run; see `start`.

        Raises:
            InputError: The run is here already, or the thread is not new.
            StorageError: It cannot be stored.
        """
        from replan.runs.travel.portable import adopt_into  # noqa: PLC0415 - few runs travel

        await adopt_into(self._resources, run, thread_id or run.run_id, order, labels)

    async def handed_out(self, run_id: str) -> None:
        """Forget a run whose result was returned, if nothing is stored."""
        if self._resources.storage is None:
            await self._resources.runs.remove(run_id)

    async def close(self) -> None:
        """Stop what runs here, and wait until it rests; it can continue later."""
        self._is_closed = True
        await self._runs_at_work.close()

    async def _report(self, record: RunRecord) -> RunReport:
        return await report_of(record, self._resources, is_here=record.run_id in self._runs_at_work)


class RecordingRuns(RunsAtWork):
    """Puts answers, stops, edits and messages on record, and refuses all other work."""

    def __init__(self, resources: Resources, why: str) -> None:
        super().__init__(resources)
        self._why = why

    def check_can_work(self) -> NoReturn:
        """Refuse work."""
        raise InputError(self._why)

    async def start_or_join(self, job: RunJob, *, is_new: bool = False) -> None:
        """Leave a run whose answers are on record to whoever resumes it."""
        if is_new or not job.gives_way:
            self.check_can_work()


def recording_beside(runtime: Runtime, why: str) -> Runtime:
    """A runtime for the same runs that only records what is asked of them, and says why."""
    return Runtime(runtime.resources, RecordingRuns(runtime.resources, why))
