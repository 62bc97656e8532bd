"""The runs that this process works on, and requests of others to them."""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import TypedDict, Unpack

from pydantic import JsonValue

from replan.base.errors import InputError, StorageError, ThreadBusyError, UsageError
from replan.log.rows import STEERS, Request, RequestKind
from replan.runs.asked.requests import (
    BEAT,
    check_first_answer,
    check_same_words,
    check_steer,
    refuse_second_edit,
)
from replan.runs.calling.compiled import services_in
from replan.runs.log.event_log import EventLog
from replan.runs.reads import is_worked_on, record_of, report_of, result_at_rest, state_of
from replan.runs.result import RunResult
from replan.runs.run_at_work import Resources, RunAtWork, RunJob
from replan.runs.stopping import StopSignal

logger = logging.getLogger(__name__)

Doing = asyncio.Task[RunResult]


class RequestFields(TypedDict, total=False):
    """What a request says; see `Request`."""

    answers: dict[str, JsonValue]
    said: str
    text: str
    version: int


class RunsAtWork:
    """The runs that this process works on, each in the background."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._at_work: dict[str, tuple[RunAtWork, Doing]] = {}
        self._reading: asyncio.Task[None] | None = None
        self.is_closed = False

    @property
    def number(self) -> int:
        """How many runs are worked on."""
        return len(self._at_work)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._at_work

    def check_can_work(self) -> None:
        """Refuse work, where none can be done here."""

    def begin(self, job: RunJob, *, is_new: bool = False) -> Doing:
        """Work on a run, unless it is worked on here already."""
        if job.run_id in self._at_work:
            return self._at_work[job.run_id][1]
        both = (job.following.get("on_event"), self._resources.on_event)
        listeners = tuple(listener for listener in both if listener is not None)
        keeps_texts = self._resources.storage is not None
        log = EventLog(
            self._resources.log,
            job.run_id,
            self._resources.clock,
            listeners,
            keeps_texts=keeps_texts,
        )
        run = RunAtWork(job, self._resources, log)
        doing = self._work_or_leave(run) if job.gives_way else self._work_alone(run, is_new=is_new)
        task = asyncio.ensure_future(doing)
        self._at_work[job.run_id] = run, task
        task.add_done_callback(lambda _: self._forget(job.run_id))
        if self._resources.storage is not None and self._reading is None:
            self._reading = asyncio.ensure_future(self._read_requests())
        return task

    async def start_or_join(self, job: RunJob, *, is_new: bool = False) -> Doing | None:
        """Begin the work on a run; wait until its thread is held, here or by another process."""
        self.begin(job, is_new=is_new)
        run, task = self._at_work[job.run_id]
        waiting = asyncio.ensure_future(run.settled.wait())
        try:
            await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if not run.settled.is_set():
            await task
        return task

    def begun_run(self, run_id: str) -> RunAtWork | None:
        """A run whose thread is held here; another process may still own it."""
        run, _ = self._at_work.get(run_id, (None, None))
        return run if run is not None and run.has_begun else None

    async def wait_until_ended(self, run_id: str) -> None:
        await asyncio.wait({self._at_work[run_id][1]})

    async def wait_if_resting(self, run_id: str) -> None:
        """Wait until the work on a run has ended, if it takes no more answers."""
        if run_id in self._at_work and self._at_work[run_id][0].is_resting:
            await self.wait_until_ended(run_id)

    async def ask(
        self,
        run_id: str,
        kind: RequestKind,
        by: str,
        name: str = "",
        **fields: Unpack[RequestFields],
    ) -> Request:
        """Record a person's request to a run, and handle it if this process works on the run.

        A request that has the name of an earlier one is that one.

        Raises:
            InputError: The earlier one says something else, or another answer came before.
        """
        new = Request(
            run_id=run_id,
            name=name or self._resources.new_id(),
            kind=kind,
            at=self._resources.clock(),
            by=by,
            **fields,
        )
        request = await self._resources.log.add_request(new, check=partial(check_first_answer, new))
        check_same_words(new, request)
        logger.info("asked of a run", extra={"run_id": run_id, "kind": kind, "by": by})
        await self._handle(request)
        return request

    async def close(self) -> None:
        """Stop what is worked on, and wait until it rests; it can continue later."""
        self.is_closed = True
        for run, _ in self._at_work.values():
            run.stop()
        if tasks := [task for _, task in self._at_work.values()]:
            await asyncio.wait(tasks)
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})

    def _forget(self, run_id: str) -> None:
        _, task = self._at_work.pop(run_id)
        if not task.cancelled() and (error := task.exception()):
            # The error goes to whoever waits for the run, if anyone does.
            logger.info("run broke off", extra={"run_id": run_id, "error": type(error).__name__})

    async def _work_alone(self, run: RunAtWork, *, is_new: bool) -> RunResult:
        try:
            return await run.run_to_rest()
        except UsageError:
            if is_new and run.has_begun:
                # Nothing was started that anybody could continue with.
                await self._resources.runs.remove(run.job.run_id)
            raise

    async def _work_or_leave(self, run: RunAtWork) -> RunResult:
        """Work on a run, unless its owner handles the request, or was told to stop."""
        run_id, is_handled = run.job.run_id, False
        while not is_handled:
            try:
                return await run.run_to_rest()
            except StopSignal:
                break
            except ThreadBusyError:
                run.settled.set()
                requests = await self._resources.log.requests([run_id])
                is_handled = not any(each.kind not in STEERS for each in requests)
        while await is_worked_on(run_id, self._resources):  # noqa: ASYNC110 - by another process
            await asyncio.sleep(BEAT)
        return await result_at_rest(run_id, self._resources)

    async def _read_requests(self) -> None:
        """Read the requests to the runs that this process works on, as long as there are any."""
        while self._at_work:
            await asyncio.sleep(BEAT)
            with suppress(StorageError):  # the run itself reports it
                here = [run_id for run_id in self._at_work if self.begun_run(run_id)]
                for request in await self._resources.log.requests(here):
                    await self._handle(request)
        self._reading = None

    async def _handle(self, request: Request) -> None:
        run = self.begun_run(request.run_id)
        if run is None or not run.is_unhandled(request):
            return
        if request.kind not in STEERS:
            await run.handle(request)
            return
        with run.steering.checking():
            await self._steer(request, run)

    async def _steer(self, request: Request, run: RunAtWork) -> None:
        """Let a run take a request that steers it, or refuse it."""
        resources = self._resources
        record = await record_of(request.run_id, resources)
        report = await report_of(record, resources, is_here=True)
        state, services = await state_of(request.run_id, resources), services_in(resources.graph)
        try:
            # Who asked may know neither the team nor what has begun since.
            await refuse_second_edit(request, resources.log)
            at_work = check_steer(request, report, state, services)
        except InputError as error:
            await run.refuse(request, str(error), report.plan)
        else:
            await run.handle(request, at_work)
