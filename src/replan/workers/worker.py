"""A worker: it takes jobs from the queue, shows that it is alive, and watches the others."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

from procrastinate import exceptions
from procrastinate.job_context import JobContext
from procrastinate.worker import Worker as ProcrastinateWorker

from replan.ports.storage import Storage
from replan.runs.service import Runtime
from replan.workers.fenced_jobs import MOST_ATTEMPTS
from replan.workers.queue import LEASE, Queue
from replan.workers.run_jobs import GivenBack, RunJobs

POLL = 2.0  # seconds between two checks for jobs without a notification
_LAST = 10.0  # seconds at the end to give jobs back to the queue

# Does the jobs of a kind; receives the job's arguments.
Handler = Callable[..., Awaitable[None]]

logger = logging.getLogger(__name__)


class Worker:
    """Does the jobs of some queues until it is stopped."""

    def __init__(  # noqa: PLR0913 - what a worker is told
        self,
        queue: Queue,
        runtime: Runtime,  # what runs are worked on with; it has no queue itself
        storage: Storage,
        queues: Sequence[str],  # the full names of the queues
        *,
        concurrency: int,  # jobs at once
        lease: float = LEASE,  # seconds without a sign of life after which others take the jobs up
        handlers: Mapping[str, Handler] | None = None,  # of further jobs, by their kinds
        beside: Callable[[], Coroutine[Any, Any, None]] | None = None,  # runs without end
    ) -> None:
        """Prepare; `work` does it."""
        self._queue = queue
        self._runtime = runtime
        self._lease = lease
        self._is_draining = False
        self._drained = asyncio.Event()
        self._unknown = set[int]()  # jobs that the database says it has, and it does not know
        jobs = RunJobs(runtime, storage, lambda: self._is_draining)
        self._handlers: dict[str, Handler] = {"run": jobs.do, **(handlers or {})}
        for kind, handler in self._handlers.items():
            _register(queue, kind, handler)
        self._beside = beside
        self._working = ProcrastinateWorker(
            queue.app,
            queues=queues,
            name="replan",
            concurrency=concurrency,
            fetch_job_polling_interval=POLL,
            abort_job_polling_interval=3600.0,
            install_signal_handlers=False,
            update_heartbeat_interval=lease / 3,
            stalled_worker_timeout=10 * lease,
        )

    async def work(self) -> None:
        """Work until `drain` is called; what goes wrong with the queue begins it again."""
        meanwhile = {asyncio.ensure_future(self._keep_alive())}
        if self._beside is not None:
            meanwhile.add(asyncio.ensure_future(self._beside()))
        working = asyncio.ensure_future(self._work_until_drained())
        drained = asyncio.ensure_future(self._drained.wait())
        try:
            first = asyncio.FIRST_COMPLETED
            await asyncio.wait({working, drained, *meanwhile}, return_when=first)
            for task in meanwhile:
                if task.done():
                    task.result()
            await asyncio.wait({working}, timeout=_LAST)
            if working.done():
                working.result()
            else:
                # Others take its jobs up once its lease is over.
                logger.warning("worker ends with jobs that do not end")
        finally:
            await ended(drained, *meanwhile)

    async def _work_until_drained(self) -> None:
        while not self._is_draining:
            try:
                await self._working.run()
            except exceptions.ConnectorException as error:
                logger.warning("queue is away", extra={"error": str(error.__cause__)})
                await asyncio.sleep(POLL)

    async def drain(self) -> None:
        """Take up no new job; runs get the grace of the runtime, then others continue them."""
        self._is_draining = True
        self._working.stop()
        await self._runtime.close()
        self._drained.set()

    async def _keep_alive(self) -> None:
        """Show that it is alive, also while it drains, and see to jobs of those that are not."""
        while True:
            await asyncio.sleep(self._lease / 3)
            try:
                await self._check_jobs()
            except exceptions.ConnectorException as error:
                logger.warning("queue is away", extra={"error": str(error.__cause__)})

    async def _check_jobs(self) -> None:
        """Give back the jobs that were lost on the way here, and those of dead workers."""
        jobs, worker_id = self._queue.jobs, self._working.worker_id
        if worker_id is not None:
            await jobs.update_heartbeat(worker_id)
            unknown = await jobs.at_work(worker_id) - self._at_work()
            # One that was just taken up is known by the next look.
            if lost := unknown & self._unknown:
                await jobs.give_back(worker_id, lost)
            self._unknown = unknown
        for job in await jobs.stalled(self._lease):
            thread_id = job["args"].get("thread_id")
            if job["attempts"] >= MOST_ATTEMPTS:
                await jobs.fail_stalled(job["id"], self._lease)
                continue
            if thread_id is not None:
                await jobs.end_sessions(job["id"], thread_id, self._lease)
            if await jobs.give_back_stalled(job["id"], self._lease):
                fields = {"job": job["id"], "kind": job["task_name"], "attempts": job["attempts"]}
                logger.warning("a worker shows no sign of life", extra=fields)

    def _at_work(self) -> set[int]:
        running: Mapping[Any, JobContext] = self._working._running_jobs  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - it has no other name
        return {context.job.id for context in running.values() if context.job.id is not None}


async def ended(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks until they end, as often as it takes for some seconds."""
    # In Python 3.11, a cancellation is lost that comes while a pool hands a connection over
    # (`asyncio.wait_for`), and a task without end continues.
    left = set(tasks)
    for _ in range(int(_LAST)):
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=1.0)
        if not left:
            return
    logger.warning("worker ends with tasks that do not end")


def _register(queue: Queue, kind: str, handler: Handler) -> None:
    async def do(**arguments: Any) -> None:
        # These are for the queue.
        arguments.pop("tenant", None)
        if kind == "run":
            arguments.pop("thread_id", None)
        await handler(**arguments)

    queue.app.task(name=kind, retry=GivenBack())(do)
