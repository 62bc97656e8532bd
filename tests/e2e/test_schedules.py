"""Runs that begin by themselves, at times of a file, on PostgreSQL."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

import pytest

import warm
from replan import open_storage
from replan.errors import UsageError
from replan.team.team_file import read_team_file
from replan.workers.opening import publish
from replan.workers.queue import open_queue
from replan.workers.queued_runtime import open_queued_runtime
from replan.workers.schedules import begin_due, read_schedules
from replan.workers.versions import version_of

TEAM = """\
name: crew
host: {model: offline}
specialists: [{name: worker, intended_use: Works., run: 'builtins:repr', effects: pure}]
"""
SCHEDULES = """\
- {name: prices, cron: "* * * * *", task: "Compare prices.", labels: {priority: "-1"}}
- {name: monthly, cron: "0 0 1 * *", task: "Report."}
"""
BOTH = ["prices-20261126T0700", "prices-20261126T0900"]
WRONG = {
    "{name: a}": "schedules",
    "- {name: a, name: b}": "already in line 1",
    "- {cron: '0 7 * * *', task: T}": "name",
    "- {name: a, cron: '0 7 * *', task: T}": "five fields",
    "- {name: a, cron: '0 25 * * *', task: T}": "five fields",
    "- {name: a, cron: '0 0 30 2 *', task: T}": "no such day",
    "- {name: a, cron: '* * * * *', task: ''}": "task",
    "- {name: a b, cron: '* * * * *', task: T}": "name",
    "- {name: a, cron: '* * * * *', task: T, at: noon}": "at",
    "- {name: a, cron: '* * * * *', task: T}\n- {name: a, cron: '* * * * *', task: T}": "Two",
    "- {name: a, cron: '* * * * *', task: T, labels: {priority: high}}": "priority",
    "- {name: a, cron: '* * * * *', task: T, labels: {queue: A B}}": "queue",
}


class Clock:
    """A clock that a test sets."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


@asynccontextmanager
async def opened(team, address, clock):
    """What three workers have, and the storage and the queue that they share."""
    async with AsyncExitStack() as stack:
        storage = await stack.enter_async_context(open_storage(address))
        queue = await stack.enter_async_context(open_queue(address))
        options = {"storage": storage, "queue": queue, "digest": version_of(team).digest}
        config = read_team_file(team, {}).config
        yield (
            [
                await stack.enter_async_context(open_queued_runtime(config, clock=clock, **options))
                for _ in range(3)
            ],
            storage,
            queue,
        )


async def test_a_time_begins_one_run_whoever_reads_the_schedule_and_missed_times_are_few(
    tmp_path, postgres_database
):
    team, file = tmp_path / "team.yaml", tmp_path / "schedules.yaml"
    team.write_text(TEAM)
    file.write_text(SCHEDULES)
    schedules, clock = read_schedules(file), Clock(datetime(2026, 11, 26, 7, 0, 5, tzinfo=UTC))
    await asyncio.to_thread(publish, team, postgres_database)
    async with opened(team, postgres_database, clock) as (readers, storage, queue):

        async def looked(*begun):
            """All look at once; give the ids of the runs that there are."""
            found = await asyncio.gather(
                *(begin_due(schedules, each, {}) for each in begun or readers)
            )
            assert {"prices"} in [set(each) for each in found]
            return sorted(each.run_id for each in await storage.runs.recent(100))

        async def jobs():
            query = "SELECT args FROM procrastinate_jobs WHERE status = 'todo' ORDER BY id"
            rows = await queue.app.connector.execute_query_all_async(query)
            return [row["args"] for row in rows]

        assert await looked() == ["prices-20261126T0700"]
        assert await looked() == ["prices-20261126T0700"]
        assert [each["run_id"] for each in await jobs()] == ["prices-20261126T0700"]
        # A machine that slept for two hours makes up for one time, not for all.
        clock.now = datetime(2026, 11, 26, 9, 0, 30, tzinfo=UTC)
        assert await looked() == BOTH
        # What is over, or was stopped by a person, is not begun once more.
        await readers[0].stop(BOTH[1])
        assert await looked() == BOTH
        assert [each["run_id"] for each in await jobs()] == BOTH[:1]
        # A worker that died before the run was in the queue leaves it to the others.
        await queue.cancel(f"run:{BOTH[0]}")
        clock.now = datetime(2026, 11, 26, 7, 0, 50, tzinfo=UTC)
        assert await looked(readers[1]) == BOTH
        assert [each["run_id"] for each in await jobs()] == BOTH[:1]
        assert await begin_due(schedules, readers[0], {"prices": clock.now.replace(second=0)}) == {}
        # One that died before it began the run that it had announced keeps nobody from it.
        hourly = [schedules[0].replace(name="hourly", cron="0 * * * *")]
        await storage.journal.note("hourly-20261126T1200", "schedule", "dead")
        for minute, begun in ((0, set()), (2, {"hourly"})):
            clock.now = datetime(2026, 11, 26, 12, minute, 30, tzinfo=UTC)
            assert set(await begin_due(hourly, readers[0], {})) == begun


def test_wrong_lines_of_a_file_of_schedules_are_refused(tmp_path, postgres_database):
    file = tmp_path / "schedules.yaml"
    for text, told in WRONG.items():
        file.write_text(text)
        with pytest.raises(UsageError, match=told):
            read_schedules(file)
    team = tmp_path / "team.yaml"
    team.write_text(TEAM)
    ended = warm.run(
        *("-m", "replan", "worker", "--storage", postgres_database),
        *("--team", team, "--schedules", file),
    )
    assert (ended.returncode, "queue" in ended.stderr) == (2, True), ended.stderr
