"""The job of a run: continue it until it rests, or give it back."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from langchain_core.messages import messages_from_dict
from procrastinate.jobs import Job
from procrastinate.retry import BaseRetryStrategy, RetryDecision

from replan.base.errors import ReplanError, StorageError, ThreadBusyError
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.reports import snapshot_of
from replan.runs.run import Run
from replan.runs.run_at_work import RunJob
from replan.runs.service import Runtime
from replan.workers.job_notes import JobNotes, read_job_notes

_SOON, _LATER = 1, 5

logger = logging.getLogger(__name__)


class AgainError(ReplanError):
    """A job is returned to the queue."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds  # after which it may be taken up
        super().__init__("The job was given back to the queue.")


class GivenBack(BaseRetryStrategy):
    """Gives a job back if it asks for that, or if the storage was not available."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """When the job may be taken up again; None: never."""
        match exception:
            case AgainError():
                seconds = exception.seconds
            case ThreadBusyError():
                seconds = _SOON
            case StorageError():
                seconds = _LATER
            case _:
                return None
        return RetryDecision(retry_in=cast("Any", {"seconds": seconds}))


@dataclass(frozen=True)
class RunJobs:
    runtime: Runtime
    storage: Storage
    is_draining: Callable[[], bool]

    async def do(self, run_id: str, at: str) -> None:
        """Continue a run until it rests."""
        record = await self.storage.runs.get(run_id)
        if record is None:
            # It was removed meanwhile.
            return
        if self.is_draining():
            raise AgainError(0)
        since = datetime.fromisoformat(at)
        if await self._was_stopped(run_id, since):
            await self._record_outcome(run_id, "interrupted")
            return
        notes = await read_job_notes(run_id, self.storage.log)
        outcome = await self._outcome(record, notes)
        is_cut_short = outcome == "interrupted" and self.is_draining()
        if is_cut_short and not await self._was_stopped(run_id, since):
            await self._record_outcome(run_id, "running")
            raise AgainError(0)
        await self._record_outcome(run_id, outcome)
        for key in notes.keys:
            await self.storage.log.strike(run_id, key)

    async def _outcome(self, record: RunRecord, notes: JobNotes) -> str:
        try:
            return (await (await self._begin(record, notes))).outcome
        except (StorageError, ThreadBusyError):
            raise
        except ReplanError as error:
            # Whoever follows the run reads so in its events; it can be resumed.
            kind = type(error).__name__
            logger.warning("run broke off", extra={"run_id": record.run_id, "error": kind})
            return "interrupted"

    async def _begin(self, record: RunRecord, notes: JobNotes) -> Run:
        snapshot = await snapshot_of(self.runtime.graph, record)
        begins = not snapshot.values and not snapshot.tasks
        run_input = cast("Any", notes.input) if begins else None
        if run_input is None and (begins or not notes.prior_events):
            return await self.runtime.resume(
                record.run_id, wait=False, settings=notes.settings, by=notes.by
            )
        if run_input is not None:
            fields = run_input["input"]
            run_input = {**fields, "messages": messages_from_dict(fields["messages"])}
        job = RunJob(
            record=record,
            input=run_input,
            settings=notes.settings,
            goes_on=not begins or bool(await self.storage.log.events(record.run_id)),
            by=notes.by,
            prior_events=notes.prior_events,
        )
        return await self.runtime.execute(job)

    async def _was_stopped(self, run_id: str, since: datetime) -> bool:
        """Whether a person stopped the run since its job was put into the queue."""
        log = self.storage.log
        stops = [
            request
            for request in await log.requests([run_id], taken=True)
            if request.kind == "stop" and request.at >= since
        ]
        await log.take_requests(stops, self.runtime.resources.clock())
        return bool(stops)

    async def _record_outcome(self, run_id: str, outcome: str) -> None:
        resources = self.runtime.resources
        await self.storage.runs.update(run_id, cast("Any", outcome), resources.clock())
