"""A runtime whose runs are done by workers: it records them and puts them into the queue."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Unpack

from pydantic import JsonValue

from replan.assembly.graphs import AnyTeam
from replan.assembly.runtime import open_runtime
from replan.log.labels import VERSION
from replan.log.rows import Request, RequestKind
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.result import RunResult
from replan.runs.run_at_work import QueueStatus, Resources, RunJob
from replan.runs.runs_at_work import RequestFields, RunsAtWork
from replan.runs.service import Runtime
from replan.workers.job_notes import write_job_note
from replan.workers.queue import NewJob, Queue

_AT_REST = ("running", "waiting", "interrupted")


def lock_of(run_id: str) -> str:
    """What the jobs of a run are about."""
    return f"run:{run_id}"


class QueuedRuns(RunsAtWork):
    """Puts the work on runs into a queue, where `RunsAtWork` does it."""

    def __init__(self, resources: Resources, queue: Queue, digest: str) -> None:
        super().__init__(resources)
        self._queue = queue
        self._digest = digest

    async def start_or_join(
        self, job: RunJob, *, is_new: bool = False
    ) -> asyncio.Task[RunResult] | None:
        """Put the work on a run into the queue, unless the run is over."""
        record = job.record
        if job.input is not None and job.goes_on and record.outcome not in _AT_REST:
            return None
        if VERSION not in record.labels:
            labels = {**record.labels, VERSION: self._digest}
            record = record.replace(labels=labels)
        now = self._resources.clock()
        storage = self._resources.storage
        assert storage is not None  # noqa: S101 - there is no queue without it
        # In this order: a repeated request begins again what is on record without its job.
        key = "start" if job.input is not None else self._resources.new_id()
        await write_job_note(job, key, storage.log)
        await storage.runs.begin(record.replace(outcome="running", updated_at=now))
        await self._queue.put(job_of(record, now.isoformat()))
        return None

    async def ask(
        self,
        run_id: str,
        kind: RequestKind,
        by: str,
        name: str = "",
        **fields: Unpack[RequestFields],
    ) -> Request:
        """Record what a person requests of a run; a stop removes a job that has not begun."""
        if kind == "stop":
            await self._queue.cancel(lock_of(run_id))
        return await super().ask(run_id, kind, by, name, **fields)


def job_of(record: RunRecord, at: str) -> NewJob:
    """The job that continues a run."""
    labels = record.labels
    ids: dict[str, JsonValue] = {"run_id": record.run_id, "thread_id": record.thread_id}
    return NewJob.labelled(
        "run", lock_of(record.run_id), labels[VERSION], labels, {**ids, "at": at}
    )


@asynccontextmanager
async def open_queued_runtime(
    team: AnyTeam, *, storage: Storage, queue: Queue, digest: str, **options: Any
) -> AsyncGenerator[Runtime]:
    """Open a runtime for the runs of a team that workers do.

    It has the methods of any runtime. What it starts, resumes or answers waits in the queue, and
    reads `running` from then on.

    Args:
        team: The team, to check inputs and to look at runs.
        storage: The storage that the workers have, too.
        queue: Its queue.
        digest: The version of the team; see `version_of`.
        options: As in `open_runtime`.
    """
    async with open_runtime(team, storage=storage, **options) as runtime:
        queued = queued_beside(runtime, queue, digest)
        try:
            yield queued
        finally:
            await queued.close()


def queued_beside(runtime: Runtime, queue: Queue, digest: str) -> Runtime:
    """A runtime that puts runs into a queue, where another one of this process does them."""

    async def status(run_id: str, *, is_followed: bool = False) -> QueueStatus | None:
        return await queue.job_statuses.status(lock_of(run_id), is_followed=is_followed)

    resources = replace(runtime.resources, queued=status)
    return Runtime(resources, QueuedRuns(resources, queue, digest))
