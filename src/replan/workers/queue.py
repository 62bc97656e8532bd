"""The queue of jobs in the database of a storage: put, look, cancel.

Jobs are taken by priority, then the tenants of a queue take turns. Each waiting job has a turn, and
is as urgent as its priority says less its turn. A new job of a tenant is behind the tenant's other
jobs, and not behind those of others: its turn is one more than the last of its tenant, but at least
that of the job that comes next. So a tenant with a thousand jobs is a thousand turns ahead, and the
first job of another one is next (start-time fair queueing).
"""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import psycopg
from procrastinate import App, exceptions
from pydantic import JsonValue

from replan.base.errors import ConfigurationError, StorageError
from replan.log.labels import PRIORITY, QUEUE, TENANT
from replan.runs.run_at_work import QueueStatus
from replan.storage.databases.postgres import shown
from replan.workers.fenced_jobs import FencedJobs
from replan.workers.patient_connector import PatientConnector
from replan.workers.queue_tables import prepare

RUNS = "runs"  # the default queue of a run

PATIENCE = 30.0

LEASE = 30.0
"""Seconds without a sign of life after which others take the jobs of a worker up."""

MOST_LEVEL = 9  # priorities are from -9 to 9
_STEP = 100_000_000  # turns between two priorities
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,19}")
_OF_LEVEL = f"""
status = 'todo' AND queue_name = %(queue)s
AND priority > %(level)s * {_STEP} - {_STEP} AND priority <= %(level)s * {_STEP}
"""
# The turn of a new job; nulls, where nothing waits, do not count.
_TURN = f"""
SELECT greatest(
    (SELECT %(level)s * {_STEP} - max(priority) FROM procrastinate_jobs WHERE {_OF_LEVEL}),
    (SELECT %(level)s * {_STEP} - min(priority) + 1 FROM procrastinate_jobs
        WHERE {_OF_LEVEL} AND args ->> 'tenant' = %(tenant)s),
    0
) AS turn
"""
_STATUSES = """
SELECT lock, 'at work' AS state FROM procrastinate_jobs
    WHERE status = 'doing' AND lock = ANY(%(locks)s)
UNION ALL
SELECT queueing_lock, 'waits' FROM procrastinate_jobs
    WHERE status = 'todo' AND queueing_lock = ANY(%(locks)s)
ORDER BY state DESC
"""
_WAITING = """
SELECT split_part(queue_name, ':', 2) AS digest, count(*) AS number FROM procrastinate_jobs
WHERE status = 'todo' AND task_name = 'run' GROUP BY 1
"""
_CANCEL = """
DELETE FROM procrastinate_jobs WHERE queueing_lock = %(lock)s AND status = 'todo' RETURNING id
"""
_PUBLISH = """
INSERT INTO replan_teams (digest, name, content) VALUES (%(digest)s, %(name)s, %(content)s)
ON CONFLICT DO NOTHING RETURNING digest
"""


_FRESH = 0.25  # seconds for which what was looked up counts for those who only follow
_FORGOTTEN = 5.0  # seconds after which a job that nobody asks for is not looked up any more

LookUp = Callable[[Collection[str]], Awaitable[Mapping[str, QueueStatus]]]


class JobStatuses:
    """The status of jobs by their locks: all that are asked for are looked up together."""

    def __init__(self, look_up: LookUp) -> None:
        self._look_up = look_up
        self._asked_at = dict[str, float]()
        self._statuses: Mapping[str, QueueStatus] = {}
        self._looked_up_at = self._failed_at = float("-inf")
        self._failure: StorageError | None = None
        self._guard = asyncio.Lock()

    async def status(self, lock: str, *, is_followed: bool = False) -> QueueStatus | None:
        """The status of the job of a lock, if any; if followed, that of a moment ago is enough."""
        now = self._asked_at[lock] = time.monotonic()
        if is_followed and lock in self._statuses and now - self._looked_up_at < _FRESH:
            return self._statuses[lock]
        async with self._guard:
            if self._failure is not None and self._failed_at >= now:
                # Who waited in vain does not begin to wait again.
                raise self._failure
            if self._looked_up_at < now:
                await self._look_up_all()
        return self._statuses.get(lock)

    async def _look_up_all(self) -> None:
        now = time.monotonic()
        asked = {lock: at for lock, at in self._asked_at.items() if now - at < _FORGOTTEN}
        self._asked_at = asked
        try:
            self._statuses = await self._look_up([*asked])
        except StorageError as error:
            self._failed_at, self._failure = time.monotonic(), error
            raise
        self._looked_up_at = now


@dataclass(frozen=True, kw_only=True)
class NewJob:
    """A job to put into the queue."""

    kind: str  # which handler of a worker does it, such as `run`
    # What it is about, such as `run:ID`. Of one lock, one job is done at a time, and one waits at
    # most.
    lock: str
    queue: str  # the full name of its queue; see `queue_of`
    # What the handler is given; JSON without secrets, which is not encrypted.
    arguments: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    tenant: str = ""  # whose it is: the tenants of a queue take turns
    level: int = 0  # its priority, from -9 to 9: the higher comes first

    @classmethod
    def labelled(
        cls,
        kind: str,
        lock: str,
        digest: str,
        labels: Mapping[str, str],
        arguments: Mapping[str, JsonValue],
    ) -> Self:
        """A job in the queue of labels, with their tenant and priority."""
        return cls(
            kind=kind,
            lock=lock,
            queue=queue_of(labels.get(QUEUE, RUNS), digest),
            arguments=arguments,
            tenant=labels.get(TENANT, ""),
            level=checked_level(labels.get(PRIORITY, "0")),
        )


class Queue:
    """The queue of a storage; `open_queue` opens it."""

    def __init__(self, app: App, jobs: FencedJobs, where: str) -> None:
        self.app = app
        self.jobs = jobs
        self._where = where
        self.job_statuses = JobStatuses(self.statuses)

    async def put(self, job: NewJob) -> bool:
        """Put a job into the queue; return whether none of its lock waits there already."""
        about = {"queue": job.queue, "tenant": job.tenant, "level": job.level}
        (row,) = await self._rows(_TURN, **about)
        configured = self.app.configure_task(
            job.kind,
            queue=job.queue,
            lock=job.lock,
            queueing_lock=job.lock,
            priority=job.level * _STEP - min(row["turn"], _STEP - 1),
        )
        try:
            with _storage_errors(self._where):
                await configured.defer_async(**{**job.arguments, "tenant": job.tenant})
        except exceptions.AlreadyEnqueued:
            return False
        return True

    async def has(self, lock: str) -> bool:
        """Whether a job waits, or is at work."""
        return bool(await self.statuses([lock]))

    async def statuses(self, locks: Collection[str]) -> dict[str, QueueStatus]:
        """The status of the jobs of these locks, as far as there are any."""
        # Of a job at work and one that waits behind it, the one at work is the later row.
        return {row["lock"]: row["state"] for row in await self._rows(_STATUSES, locks=[*locks])}

    async def waiting(self) -> dict[str, int]:
        """How many runs wait here, by the versions of their teams."""
        return {row["digest"]: row["number"] for row in await self._rows(_WAITING)}

    async def cancel(self, lock: str) -> bool:
        """Take a job back that no worker has taken up; return whether there was one."""
        return bool(await self._rows(_CANCEL, lock=lock))

    async def publish(self, digest: str, name: str, content: str) -> bool:
        """Record a version of a team; return whether it is new."""
        return bool(await self._rows(_PUBLISH, digest=digest, name=name, content=content))

    async def is_published(self, digest: str) -> bool:
        """Whether a version of a team is on record."""
        query = "SELECT digest FROM replan_teams WHERE digest = %(digest)s"
        return bool(await self._rows(query, digest=digest))

    async def _rows(self, query: Any, **arguments: Any) -> list[dict[str, Any]]:
        with _storage_errors(self._where):
            return await self.app.connector.execute_query_all_async(query, **arguments)


@asynccontextmanager
async def open_queue(
    address: str, *, patience: float = PATIENCE, connections: int = 2
) -> AsyncGenerator[Queue]:
    """Open the queue in the database of a storage; it is made if it is not there.

    Args:
        address: The address of the storage, `postgresql://...`.
        patience: Seconds for which a database that is away is asked again.
        connections: Connections at most.

    Raises:
        ConfigurationError: The storage is not PostgreSQL.
        StorageError: The database cannot be reached, or its queue is of another version.
    """
    check_address(address)
    where = shown(address)
    connector = PatientConnector(address, patience, connections)
    app = App(connector=connector)
    jobs = app.job_manager = FencedJobs(connector)
    with _storage_errors(where):
        await prepare(address, where)
        await connector.open_async()
    try:
        yield Queue(app, jobs, where)
    finally:
        await connector.close_async()


@contextmanager
def _storage_errors(where: str) -> Generator[None]:
    """Raise StorageError if the database of the queue cannot be reached."""
    try:
        yield
    except exceptions.AlreadyEnqueued:
        raise
    except (psycopg.Error, exceptions.ConnectorException) as error:
        cause = " ".join(str(error.__cause__ or error).split())
        problem = f"Its queue cannot be reached ({cause})."
        raise StorageError(where, problem, "Check that the server runs.") from error


def check_address(address: str) -> None:
    """Refuse a storage that has no queue."""
    if not address.startswith(("postgresql://", "postgres://")):
        problem = "Workers and their queue need PostgreSQL, which several machines can share."
        fix = "Give --storage postgresql://user@host/database."
        scheme, separator, _ = address.partition("://")
        shown = f"{scheme}://..." if separator else address
        raise ConfigurationError("storage", shown, problem, fix)


def queue_of(name: str, digest: str) -> str:
    """The full name of a queue: workers with another version of the team do not see it."""
    if not _NAME.fullmatch(name):
        problem = "This cannot be the name of a queue."
        fix = "Use up to 20 small letters, digits, '-' and '_'."
        raise ConfigurationError("queue", name, problem, fix)
    # PostgreSQL takes 63 bytes for the name of a channel, of which Procrastinate has 23.
    return f"{name}:{digest[:16]}"


def checked_level(text: str) -> int:
    """A priority from a label."""
    if not re.fullmatch(r"-?[0-9]", text):
        problem = "This is not a priority."
        fix = f"Give a number from -{MOST_LEVEL} to {MOST_LEVEL}."
        raise ConfigurationError("priority", text, problem, fix)
    return int(text)
