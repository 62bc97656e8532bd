"""Runs that begin by themselves, at times of a file, on PostgreSQL."""

import asyncio
import shutil
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

import pytest

import warm
from replan import open_runtime, open_storage
from replan.errors import UsageError
from replan.memory import read_summary
from replan.team.team_file import read_team_file
from replan.workers.open_worker import WorkerWanted, open_worker, publish
from replan.workers.queue import open_queue
from replan.workers.queued_runtime import open_queued_runtime
from replan.workers.schedules import begin_due, read_schedules
from replan.workers.upkeep import UpkeepJobs
from replan.workers.versions import version_of
from scripts import THREAD

TEAM = """\
name: crew
host: {model: offline}
specialists: [{name: worker, intended_use: Works., run: 'builtins:repr', effects: pure}]
"""
SCHEDULES = """\
- {name: prices, cron: "* * * * *", task: "Compare prices.", labels: {priority: "-1"}}
- {name: monthly, cron: "0 0 1 * *", task: "Report."}
"""
UPKEEP = """\
- {name: nightly, cron: "0 3 * * *", upkeep: summaries}
- {name: reading, cron: "*/10 * * * *", upkeep: index}
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
    "- {name: a, cron: '* * * * *', task: T, upkeep: index}": "either",
    "- {name: a, cron: '* * * * *', upkeep: tidy}": "upkeep",
    "- {name: a b, cron: '* * * * *', task: T}": "name",
    "- {name: a, cron: '* * * * *', task: T, at: noon}": "at",
    "- {name: a, cron: '* * * * *', task: T}\n- {name: a, cron: '* * * * *', task: T}": "two",
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


async def test_a_time_begins_one_run_whoever_reads_the_schedule_and_missed_times_are_few(  # noqa: PLR0915 - one day of a schedule
    tmp_path, empty_database
):
    team, file = tmp_path / "team.yaml", tmp_path / "schedules.yaml"
    team.write_text(TEAM)
    file.write_text(SCHEDULES)
    schedules, clock = read_schedules(file), Clock(datetime(2026, 11, 26, 7, 0, 5, tzinfo=UTC))
    await asyncio.to_thread(publish, team, empty_database)
    async with opened(team, empty_database, clock) as (readers, storage, queue):

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
        await storage.log.note("hourly-20261126T1200", "schedule", "dead")
        for minute, begun in ((0, set()), (2, {"hourly"})):
            clock.now = datetime(2026, 11, 26, 12, minute, 30, tzinfo=UTC)
            assert set(await begin_due(hourly, readers[0], {})) == begun
        # Tenants and teams may have schedules of one name: each has runs of its own.
        clock.now = datetime(2026, 11, 26, 15, 0, 5, tzinfo=UTC)
        of = [{"tenant": "a"}, {"tenant": "b"}, {"team": "x"}, {"team": "x"}, {"team": "y"}]
        for labels in of:
            each = schedules[0].replace(name="own", labels=labels)
            assert set(await begin_due([each], readers[0], {})) == {"own"}
        ids = {each.run_id for each in await storage.runs.recent(100)}
        own = "own-20261126T1500"
        assert {each for each in ids if own in each} == {f"a.{own}", f"b.{own}", own, f"{own}-y"}


async def test_summaries_and_the_index_are_jobs_that_begin_by_the_clock(  # noqa: PLR0915 - one night
    tmp_path, empty_database, monkeypatch
):
    address, team = empty_database, tmp_path / "team.yaml"
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Prices\n\nBread costs two.\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    team.write_text(
        TEAM + "memory: {mode: summary, history_limit: 1, summary_enabled: false}\n"
        f"knowledge: {tmp_path / 'notes'}\n"
    )
    clock = Clock(datetime(2026, 11, 26, 3, 0, 5, tzinfo=UTC))
    await asyncio.to_thread(publish, team, address)
    file = tmp_path / "schedules.yaml"
    file.write_text(UPKEEP)
    schedules = read_schedules(file)
    async with opened(team, address, clock) as (readers, storage, queue):
        graph, digest = readers[0].graph, version_of(team).digest
        upkeep = UpkeepJobs(graph, storage, queue, digest)
        async with open_runtime(graph, storage=storage) as runtime:
            for _ in range(2):
                labels = {"version": digest, "tenant": "anna"}
                assert await (await runtime.start("Hello.", thread_id="t", labels=labels))
        # The search of these runs has made the index, too.
        shutil.rmtree(tmp_path / "cache")
        for reader in readers:
            begun = await begin_due(schedules, reader, {}, upkeep)
            assert set(begun) == {"nightly", "reading"}
        assert await storage.runs.recent(9) == await storage.runs.recent(2)
        wanted = WorkerWanted(team=team, storage=address, schedules=file)
        async with open_worker(wanted) as worker:
            working = asyncio.ensure_future(worker.work())
            async with asyncio.timeout(30):
                while (summary := await read_summary(graph, THREAD)) is None:  # noqa: ASYNC110 - written by a job
                    await asyncio.sleep(0.05)
                while not [*(tmp_path / "cache").rglob("*.db")]:  # noqa: ASYNC110 - made by a job
                    await asyncio.sleep(0.05)
            await worker.drain()
            await working
        assert summary.covered == 3
        # What a team has no use for is told before anything begins.
        plain = tmp_path / "plain.yaml"
        plain.write_text(TEAM)
        await asyncio.to_thread(publish, plain, address)
        for text, told in (("summaries", "not in mode 'summary'"), ("index", "has no index")):
            file.write_text(f"- {{name: a, cron: '0 3 * * *', upkeep: {text}}}")
            wanted = WorkerWanted(team=plain, storage=address, schedules=file)
            with pytest.raises(UsageError, match=told):
                async with open_worker(wanted):
                    pass


def test_wrong_lines_of_a_file_of_schedules_are_refused(tmp_path, empty_database):
    file = tmp_path / "schedules.yaml"
    for text, told in WRONG.items():
        file.write_text(text)
        with pytest.raises(UsageError, match=told):
            read_schedules(file)
    team = tmp_path / "team.yaml"
    team.write_text(TEAM)
    ended = warm.run(
        *("-m", "replan", "worker", "--storage", empty_database),
        *("--team", team, "--schedules", file),
    )
    assert (ended.returncode, "queue" in ended.stderr) == (2, True), ended.stderr
