"""Jobs of a worker that may have lost them: only the holder of a job ends or returns it."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, LiteralString

from procrastinate import exceptions
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from replan.storage.holds import lock_number

APPLICATION = "replan-worker-"  # how the connections of a worker begin their names at the server
MOST_ATTEMPTS = 25  # how often a worker may die of a job; then the job is left alone

_OWN = "id = %(id)s AND worker_id = %(worker)s AND status = 'doing'"
_FINISH = f"DELETE FROM procrastinate_jobs WHERE {_OWN}"
_FAIL = f"UPDATE procrastinate_jobs SET status = 'failed' WHERE {_OWN}"
_AGAIN = """
WITH given AS (
    UPDATE procrastinate_jobs SET
        status = 'todo', worker_id = NULL, attempts = attempts + %(more)s, scheduled_at = %(at)s
    WHERE {which} RETURNING id, queue_name
)
SELECT count(pg_notify(
    'procrastinate_queue_v1#' || queue_name,
    json_build_object('type', 'job_inserted', 'job_id', id)::text
)) AS number FROM given
"""
_STALLED = """
status = 'doing' AND NOT EXISTS (
    SELECT 1 FROM procrastinate_workers AS alive WHERE alive.id = worker_id
    AND alive.last_heartbeat > now() - make_interval(secs => %(lease)s)
)
"""
_BEAT = """
INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (%(worker)s)
ON CONFLICT (id) DO UPDATE SET last_heartbeat = now()
"""
# Whoever holds the lock of the thread of a job whose worker shows no sign of life.
_END_SESSIONS = f"""
WITH holder AS (
    SELECT activity.pid, activity.application_name
    FROM pg_locks JOIN pg_stat_activity AS activity USING (pid)
    WHERE locktype = 'advisory' AND granted AND activity.datname = current_database()
    AND classid::bigint = %(high)s AND objid::bigint = %(low)s AND objsubid = 1
    AND EXISTS (SELECT 1 FROM procrastinate_jobs WHERE id = %(id)s AND {_STALLED})
)
SELECT count(pg_terminate_backend(each.pid)) AS number
FROM pg_stat_activity AS each JOIN holder ON each.pid = holder.pid OR (
    holder.application_name LIKE '{APPLICATION}%%'
    AND each.application_name = holder.application_name
)
WHERE each.pid <> pg_backend_pid()
"""


class FencedJobs(JobManager):
    """Procrastinate's jobs, with a check of the holder whenever a job is ended or returned."""

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        """Take the next job; a worker that slept too long shows first that it is alive again."""
        try:
            return await super().fetch_job(queues, worker_id)
        except exceptions.ConnectorException:
            await self.update_heartbeat(worker_id)
            return await super().fetch_job(queues, worker_id)

    async def update_heartbeat(self, worker_id: int) -> None:
        """Show that a worker is alive, also where others took it for dead."""
        await self.connector.execute_query_async(_BEAT, worker=worker_id)

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:  # noqa: FBT001 - its base's signature
        """End a job, unless another worker has it by now."""
        query = _FINISH if status == Status.SUCCEEDED else _FAIL
        await self.connector.execute_query_async(query, id=job.id, worker=job.worker_id)

    async def retry_job(
        self, job: Job, retry_at: datetime | None = None, *args: Any, **kwargs: Any
    ) -> None:
        """Give a job back, unless another worker has it by now."""
        await self._return(_OWN, id=job.id, worker=job.worker_id, at=retry_at)

    async def at_work(self, worker_id: int) -> set[int]:
        """The jobs that a worker has, as far as the database knows."""
        rows = await self.connector.execute_query_all_async(
            "SELECT id FROM procrastinate_jobs WHERE status = 'doing' AND worker_id = %(worker)s",
            worker=worker_id,
        )
        return {row["id"] for row in rows}

    async def give_back(self, worker_id: int, ids: Collection[int]) -> None:
        """Give back jobs of a worker that it knows nothing of: the answer was lost."""
        which = "status = 'doing' AND worker_id = %(worker)s AND id = ANY(%(ids)s)"
        await self._return(which, worker=worker_id, ids=[*ids])

    async def stalled(self, lease: float) -> list[dict[str, Any]]:
        """The jobs whose workers show no sign of life."""
        query = (
            f"SELECT id, lock, task_name, attempts, args FROM procrastinate_jobs WHERE {_STALLED}"
        )
        return await self.connector.execute_query_all_async(query, lease=lease)

    async def end_sessions(self, job_id: int, thread_id: str, lease: float) -> int:
        """End the sessions of the worker that has a stalled job, so that its thread is free."""
        number = lock_number(thread_id) % 2**64
        row = await self.connector.execute_query_one_async(
            _END_SESSIONS, id=job_id, high=number >> 32, low=number % 2**32, lease=lease
        )
        return int(row["number"])

    async def give_back_stalled(self, job_id: int, lease: float) -> bool:
        """Return a job to its queue if its worker shows no sign of life."""
        return await self._return(f"id = %(id)s AND {_STALLED}", id=job_id, lease=lease, more=1)

    async def _return(self, which: LiteralString, **arguments: Any) -> bool:
        defaulted = {"at": None, "more": 0, **arguments}
        row = await self.connector.execute_query_one_async(_AGAIN.format(which=which), **defaulted)
        return bool(row["number"])

    async def fail_stalled(self, job_id: int, lease: float) -> None:
        """Give up a job that was started too often."""
        query = f"UPDATE procrastinate_jobs SET status = 'failed' WHERE id = %(id)s AND {_STALLED}"
        await self.connector.execute_query_async(query, id=job_id, lease=lease)
