"""The tables of the queue, which an older or a newer Procrastinate made."""

import psycopg
import pytest

from replan.errors import StorageError
from replan.workers.queue import NewJob, open_queue
from replan.workers.queue_tables import migrations

OLD = "03.03.00_01_pre_priority_lock_fetch_job"
JOB = NewJob(kind="run", lock="run:a", queue="runs:1", arguments={"run_id": "a"})


async def test_a_queue_of_an_older_procrastinate_is_upgraded_and_one_of_a_newer_is_refused(  # noqa: PLR0915 - one life of a queue
    empty_database,
):
    address, newest = empty_database, migrations()[-1].stem
    async with open_queue(address):
        pass
    with psycopg.connect(address, autocommit=True) as database:
        # As the older one would have made it, with a job that waits.
        database.execute("SET search_path = replan_queue")
        ours = database.execute("SELECT pg_get_indexdef('replan_turns'::regclass)").fetchone()
        database.execute("DROP SCHEMA replan_queue CASCADE")
        database.execute("CREATE SCHEMA replan_queue")
        for each in migrations():
            if each.stem <= OLD:
                database.execute(each.read_text())
        database.execute(
            "CREATE TABLE replan_teams (digest text PRIMARY KEY, name text, content text)"
        )
        database.execute(ours[0])
        database.execute(
            "CREATE TABLE replan_schema (is_one bool PRIMARY KEY DEFAULT true, migration text)"
        )
        database.execute("INSERT INTO replan_schema (migration) VALUES (%s)", [OLD])
        database.execute("INSERT INTO procrastinate_workers DEFAULT VALUES")

        def made_by():
            return database.execute("SELECT migration FROM replan_schema").fetchone()[0]

        with pytest.raises(StorageError, match="Stop all workers and servers, then start them"):
            async with open_queue(address):
                pass
        assert made_by() == OLD
        database.execute("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 h'")
        for is_new in (True, False):
            async with open_queue(address) as queue:
                assert made_by() == newest
                assert await queue.put(JOB) == is_new
                assert await queue.statuses(["run:a"]) == {"run:a": "waits"}
        found = "SELECT to_regproc('procrastinate_retry_job_v2') IS NOT NULL"
        assert database.execute(found).fetchone()[0]
        # One that says nothing of it was made by the first that could.
        database.execute("DROP TABLE replan_schema")
        async with open_queue(address):
            assert made_by() == newest
        database.execute("UPDATE replan_schema SET migration = '99.01.00_01_pre_something'")
        with pytest.raises(StorageError, match=r"newer Procrastinate .* procrastinate>=99.1.0"):
            async with open_queue(address):
                pass
