"""The job of a run: continue it until it rests, or give it back."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from langchain_core.messages import messages_from_dict
from procrastinate.jobs import Job
from procrastinate.retry import BaseRetryStrategy, RetryDecision

from replan.errors import ReplanError, StorageError, ThreadBusyError
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.run import Run
from replan.runs.service import Runtime
from replan.runs.snapshots import snapshot_of
from replan.runs.work import RunJob
from replan.workers.errands import Errands, errands_of

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
        errands = await errands_of(run_id, self.storage.log)
        outcome = await self._outcome(record, errands)
        is_cut_short = outcome == "interrupted" and self.is_draining()
        if is_cut_short and not await self._was_stopped(run_id, since):
            await self._record_outcome(run_id, "running")
            raise AgainError(0)
        await self._record_outcome(run_id, outcome)
        for key in errands.keys:
            await self.storage.log.strike(run_id, key)

    async def _outcome(self, record: RunRecord, errands: Errands) -> str:
        try:
            return (await (await self._begin(record, errands))).outcome
        except (StorageError, ThreadBusyError):
            raise
        except ReplanError as error:
            # Whoever follows the run reads so in its events; it can be resumed.
            kind = type(error).__name__
            logger.warning("run broke off", extra={"run_id": record.run_id, "error": kind})
            return "interrupted"

    async def _begin(self, record: RunRecord, errands: Errands) -> Run:
        snapshot = await snapshot_of(self.runtime.graph, record)
        begins = not snapshot.values and not snapshot.tasks
        if not begins and not errands.told:
            return await self.runtime.resume(
                record.run_id, wait=False, settings=errands.settings, by=errands.by
            )
        given = cast("Any", errands.given) if begins else None
        if begins and given is None:
            return await self.runtime.resume(record.run_id, wait=False, settings=errands.settings)
        if given is not None:
            given = {**given["input"], "messages": messages_from_dict(given["input"]["messages"])}
        errand = RunJob(
            record=record,
            input=given,
            settings=errands.settings,
            goes_on=not begins or bool(await self.storage.log.events(record.run_id)),
            by=errands.by,
            told=errands.told,
        )
        return await self.runtime.execute(errand)

    async def _was_stopped(self, run_id: str, since: datetime) -> bool:
        """Whether a person stopped the run since its job was put into the queue."""
        log = self.storage.log
        asked = [
            each
            for each in await log.requests([run_id], taken=True)
            if each.kind == "stop" and each.at >= since
        ]
        await log.take_requests(asked, self.runtime.resources.clock())
        return bool(asked)

    async def _record_outcome(self, run_id: str, outcome: str) -> None:
        resources = self.runtime.resources
        await self.storage.runs.update(run_id, cast("Any", outcome), resources.clock())
