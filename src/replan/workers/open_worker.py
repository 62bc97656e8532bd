"""A worker with all that it needs: its team, its storage, its queue; six connections at most."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from uuid import uuid4

from replan.assembly.graphs import build_graph
from replan.assembly.runtime import open_runtime
from replan.base.errors import ConfigurationError
from replan.base.own_loop import run_in_own_loop, until_signalled
from replan.log.labels import TEAM
from replan.runs.calling.compiled import services_in
from replan.storage.opening import open_storage
from replan.team.team_file import read_team_file
from replan.traces.watch import Watch, watch_loop_lag
from replan.workers.fenced_jobs import APPLICATION
from replan.workers.queue import LEASE, RUNS, check_address, open_queue, queue_of
from replan.workers.queued_runtime import queued_beside
from replan.workers.schedules import keep, read_schedules
from replan.workers.steps import STEP, QueuedSteps, StepJobs
from replan.workers.upkeep import UpkeepJobs
from replan.workers.versions import check_published, version_of
from replan.workers.worker import Worker, ended

# With one that holds threads, one that listens for jobs, and one that takes them: six.
_OF_STORAGE, _OF_QUEUE = 3, 1


@dataclass(frozen=True, kw_only=True)
class WorkerWanted:
    """What `replan worker` is to do."""

    team: Path  # the file of the team whose runs it does
    storage: str  # the address of the storage
    queues: Sequence[str] = (RUNS,)  # the names of the queues
    concurrency: int = 4  # jobs at once
    grace: float = 10.0  # seconds that running steps have to end when the worker stops
    lease: float = LEASE  # seconds without a sign of life after which others take its runs up
    schedules: Path | None = None  # a file of runs that begin by themselves
    key: str | None = None  # what encrypts the storage
    keep_days: float | None = None  # days for which long texts of events are kept
    # The port of this machine at which it tells its figures; None: at none.
    metrics: int | None = None


@asynccontextmanager
async def open_worker(wanted: WorkerWanted) -> AsyncGenerator[Worker]:
    """Open a worker; `work` begins, and `drain` ends what it does.

    Args:
        wanted: What it is to do.

    Raises:
        UsageError: The team, its version, a queue or the storage cannot be used.
        StorageError: The database cannot be reached.
    """
    check_address(wanted.storage)
    version = version_of(wanted.team)
    team = read_team_file(wanted.team, os.environ)
    schedules = read_schedules(wanted.schedules) if wanted.schedules else []
    _check_queues(
        wanted.queues,
        [specialist.queue for specialist in team.config.specialists if specialist.queue],
    )
    queues = [queue_of(name, version.digest) for name in wanted.queues]
    address = _with_application_name(wanted.storage, f"{APPLICATION}{uuid4().hex}")
    options: Any = {"key": wanted.key, "keep_days": wanted.keep_days, "connections": _OF_STORAGE}
    async with (
        open_storage(address, **options) as storage,
        open_queue(address, connections=_OF_QUEUE) as queue,
    ):
        await check_published(queue, version)
        steps = QueuedSteps(queue, storage, version.digest)
        graph = build_graph(team.config, storage=storage, models=team.models, elsewhere=steps)
        for_others = StepJobs(services_in(graph), storage.log, wanted.lease)
        upkeep = UpkeepJobs(graph, storage, queue, version.digest)
        for schedule in schedules:
            if schedule.upkeep is not None:
                upkeep.check(schedule.upkeep)
        watch, name = Watch(), team.identity.name
        # By this label a server knows whose runs they are.
        schedules = [
            schedule.replace(labels={TEAM: name, **schedule.labels}) for schedule in schedules
        ]
        on_event = partial(watch.on_event, name)
        runtime_of = open_runtime(graph, storage=storage, grace=wanted.grace, on_event=on_event)
        metrics_served = nullcontext() if wanted.metrics is None else watch.served(wanted.metrics)
        async with runtime_of as runtime, watch_loop_lag(watch.lagged):
            watch.counts_works(name, lambda: runtime.at_work)
            queued = queued_beside(runtime, queue, version.digest)
            with metrics_served:
                yield Worker(
                    queue,
                    runtime,
                    storage,
                    queues,
                    concurrency=wanted.concurrency,
                    lease=wanted.lease,
                    handlers={STEP: for_others.do, **upkeep.handlers},
                    beside=partial(keep, schedules, queued, upkeep) if schedules else None,
                )


def work(wanted: WorkerWanted, say: Callable[[str], None]) -> None:
    """Take runs up until SIGINT or SIGTERM; others continue with what is at work then."""
    run_in_own_loop(lambda: _work(wanted, say))


async def _work(wanted: WorkerWanted, say: Callable[[str], None]) -> None:
    async def drain(worker: Worker) -> None:
        await until_signalled()
        await worker.drain()

    async with open_worker(wanted) as worker:
        digest, names = version_of(wanted.team).digest, ", ".join(wanted.queues)
        draining = asyncio.ensure_future(drain(worker))
        # Its signals are heard before it says so.
        await asyncio.sleep(0)
        say(f"worker: {wanted.concurrency} runs at once of {wanted.team} ({digest}) from {names}")
        say("Ctrl-C or SIGTERM ends it; other workers continue its runs.")
        try:
            await worker.work()
        finally:
            await ended(draining)


def publish(team: Path, storage: str) -> str:
    """Record the version of a team in a file, and return its digest."""
    check_address(storage)
    version, read = version_of(team), read_team_file(team, os.environ)

    async def done() -> str:
        async with open_queue(storage, connections=1) as queue:
            is_new = await queue.publish(version.digest, read.identity.name, version.content)
        text = "published" if is_new else "was published before:"
        return f"{text} {read.identity.name} {version.digest}"

    return run_in_own_loop(done)


def _with_application_name(address: str, name: str) -> str:
    """An address by which the server can identify the owner of a connection."""
    parts = urlsplit(address)
    query = urlencode({**dict(parse_qsl(parts.query)), "application_name": name})
    return urlunsplit(parts._replace(query=query))


def _check_queues(queues: Sequence[str], of_steps: Sequence[str]) -> None:
    """Refuse a worker that could be full of runs that wait for steps in the same queue."""
    steps = sorted(set(queues) & set(of_steps))
    if steps and len(steps) < len(set(queues)):
        problem = f"Runs of other queues here could wait for steps of '{steps[0]}' forever."
        fix = f"Let another worker have --queues {','.join(steps)}."
        raise ConfigurationError("queues", ",".join(queues), problem, fix)
