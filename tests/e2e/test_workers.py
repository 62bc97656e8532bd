"""Runs in a queue on PostgreSQL; workers that are killed, stopped, drained or of old versions."""

import asyncio
import os
import signal
from collections import Counter
from contextlib import AsyncExitStack

import psycopg
import pytest
from a2a.helpers.proto_helpers import new_text_part
from a2a.types.a2a_pb2 import Message, Role, SendMessageRequest, TaskState

import warm
from crews import queued, until
from pages import shown
from replan import open_storage
from replan.server.served_teams import Queueing
from replan.team.team_file import read_team_file
from replan.workers.open_worker import publish
from replan.workers.queue import open_queue
from replan.workers.queued_runtime import lock_of, open_queued_runtime
from replan.workers.versions import version_of
from served import agent_of, served

SOON = ("--shutdown-timeout", 0.2)


@pytest.fixture
def house(crew):
    crew.is_of("team.yaml")
    return crew


def plan(*names):
    steps = [f"- [ ] {n}. {name} @worker\n" for n, name in enumerate(names, 1)]
    return {"plan": "".join(steps)}


async def test_a_run_waits_in_the_queue_and_a_waiting_run_holds_nothing(house):
    async with queued(house) as (runtime, _, queue):
        run = await runtime.start({"plan": "- [ ] 1. Paint @asker\n"}, run_id="asks")
        again = await runtime.start({"plan": "- [ ] 1. Paint @asker\n"}, run_id="asks")
        assert (await run.report()).outcome == "running"
        # Who looks without the queue is told so, too: it was not killed.
        async with open_storage(house.address) as storage, shown({}, storage) as client:
            page = (await client.get("/runs/asks")).text
        assert "it waits in the queue for a worker" in page
        assert "killed" not in page
        words = ("-m", "replan", "show", "asks", "--storage", house.address)
        told = (await asyncio.to_thread(warm.run, *words)).stdout
        assert "why: it waits in the queue for a worker" in told
        assert "let a worker take it with: replan worker --team " in told
        house.worker(*SOON, "--concurrency", 1)
        assert (await run).outcome == (await again).outcome == "waiting"
        assert not await queue.has(lock_of("asks"))
        other = await runtime.run(plan("beside"), run_id="beside")
        assert other.outcome == "completed"
        assert connections(house) <= 6
        answered = await runtime.answer("asks", "blue", by="anna")
        result = await answered
        assert (result.outcome, result.results[1].text) == ("completed", "It is blue.")
        # The same once more does nothing.
        assert (await runtime.start({"plan": "- [ ] 1. Paint @asker\n"}, run_id="asks")) is not None
        assert (await runtime.wait("asks")).outcome == "completed"
        events = [event.type async for event in runtime.events("asks")]
        assert Counter(events)["run_started"] == Counter(events)["task_completed"] == 1
        assert [name for name, _ in house.begun] == ["beside"]


async def test_others_take_up_what_a_worker_left_that_was_killed_stopped_or_told_to_end(house):
    for name in ("killed", "frozen", "drained"):
        house.gate(name)
    async with queued(house) as (runtime, _, _):
        runs, workers = {}, {}
        for name in ("killed", "frozen", "drained"):
            workers[name] = house.worker(*SOON, "--concurrency", 1)
            runs[name] = await runtime.start(plan(f"{name}-before", name), run_id=name)
            await house.has_begun(name)
        pids = {pid for name, pid in house.begun if name in runs}
        assert len(pids) == 3
        owner = {name: pid for name, pid in house.begun if name in runs}
        os.kill(owner["killed"], signal.SIGKILL)
        os.kill(owner["frozen"], signal.SIGSTOP)
        os.kill(owner["drained"], signal.SIGTERM)
        house.worker(*SOON, "--concurrency", 3)
        for name in runs:
            await house.has_begun(name, but=pids)
        os.kill(owner["frozen"], signal.SIGCONT)
        for name in runs:
            house.open(name)
        for name, run in runs.items():
            result = await run
            assert (name, result.outcome) == (name, "completed")
            attempts = (await runtime.get(name)).plan
            assert all(step.status.value == "completed" for step in attempts.steps)
            events = [event async for event in runtime.events(name)]
            assert [event.seq for event in events] == [*range(1, len(events) + 1)]
            assert sum(event.type == "task_completed" for event in events) == 1
        assert next(w for w in workers.values() if w.pid == owner["drained"]).wait() == 0
    once = Counter(name for name, _ in house.begun)
    assert [once[f"{name}-before"] for name in runs] == [1, 1, 1]


async def test_the_plan_of_a_run_that_a_worker_does_is_edited(house):
    house.gate("slow")
    async with queued(house) as (runtime, _, _):
        text = "- [ ] 1. slow @worker\n- [ ] 2. next @worker (after 1)\n"
        run = await runtime.start({"plan": text}, run_id="edited")
        house.worker(*SOON, "--concurrency", 1)
        await house.has_begun("slow")
        report = await run.report()
        edited = report.plan.content.replace("next", "other") + "- [ ] 3. more @worker\n"
        assert await run.edit_plan(edited, version=1, by="anna") == (1,)
        # It is pure, and waits for nothing.
        await house.has_begun("more")
        house.open("slow")
        result = await run
        assert (result.outcome, result.plan.version) == ("completed", 2)
    assert [name for name, _ in house.begun] == ["slow", "more", "other"]


async def test_a_tenant_with_many_runs_keeps_no_other_waiting_and_stops_take_them_back(house):
    async with queued(house) as (runtime, _, _):
        for number in range(10):
            await runtime.start(
                plan(f"many{number}"), run_id=f"m{number}", labels={"tenant": "many"}
            )
        await runtime.start(plan("few"), run_id="few", labels={"tenant": "few"})
        await runtime.start(
            plan("urgent"), run_id="urgent", labels={"tenant": "many", "priority": "3"}
        )
        for number in range(4, 10):
            await runtime.stop(f"m{number}")
        assert (await runtime.get("m9")).outcome == "interrupted"
        house.worker(*SOON, "--concurrency", 1)
        results = [await runtime.wait(f"m{number}") for number in range(4)]
        assert {each.outcome for each in results} == {"completed"}
        assert [name for name, _ in house.begun] == [
            "urgent", "many0", "few", "many1", "many2", "many3"
        ]  # fmt: skip
        assert (await runtime.resume("m9")).outcome == "completed"


async def test_a_worker_with_another_version_does_not_take_up_a_run(house):
    async with queued(house) as (runtime, _, _):
        run = await runtime.start(plan("old"), run_id="old")
        old = house.team.read_text()
        house.team.write_text(f"{old}# changed\n")
        told = warm.run("-m", "replan", "worker", "--team", house.team, "--storage", house.address)
        assert told.returncode == 2
        assert "was not published" in told.stderr
        await asyncio.to_thread(publish, house.team, house.address)
        house.worker(*SOON)
        async with queued(house) as (newer, _, _):
            assert (await newer.run(plan("new"), run_id="new")).outcome == "completed"
        assert (await run.report()).outcome == "running"
        house.team.write_text(old)
        house.worker(*SOON)
        assert (await run).outcome == "completed"


async def test_a_server_leaves_its_runs_to_workers(house):  # noqa: PLR0915 - one life of a server
    team = read_team_file(house.team, os.environ).config
    digest = version_of(house.team).digest
    async with open_storage(house.address) as storage, open_queue(house.address) as queue:

        def opening(_name, team, options):
            return open_queued_runtime(team, queue=queue, digest=digest, **options)

        asked = {"plan": "- [ ] 1. Paint @asker\n", "run_id": "r"}

        async def waiting():
            return {"house": (await queue.waiting()).get(digest, 0)}

        queueing = Queueing(opening=opening, answers=lambda: queue.has(""), waiting=waiting)
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(served(team, storage, queue=queueing))
            begun = await client.post("/runs", json=asked)
            assert (begun.status_code, begun.json()["outcome"]) == (201, "running")
            assert (await client.post("/runs", json=asked)).status_code == 200
            other = await client.post("/runs", json={**asked, "plan": "- [ ] 1. No @asker\n"})
            assert other.status_code == 409
            pushing = await client.post("/runs", json={**asked, "labels": {"priority": "5"}})
            assert pushing.status_code == 422
            assert (await client.get("/ready")).status_code == 200
            figures = (await client.get("/metrics")).text
            assert 'replan_runs_queued{team="house"} 1.0' in figures
            agent = await stack.enter_async_context(agent_of(client, where="house"))
            said = Message(message_id="m", role=Role.ROLE_USER, parts=[new_text_part("Hello.")])
            tells = agent.send_message(SendMessageRequest(message=said))
            assert (await anext(tells)).task.status.state == TaskState.TASK_STATE_SUBMITTED
            house.worker(*SOON)
            states = [each.status_update.status.state async for each in tells]
            assert states[0] == TaskState.TASK_STATE_WORKING
            # The offline model has no answer for it.
            assert states[-1] == TaskState.TASK_STATE_FAILED

            async def is_waiting():
                told = (await client.get("/runs/r")).json()
                return told["pending_questions"] and told["outcome"] == "waiting"

            await until(is_waiting)
            answers = {"answers": {"1/asker/1": "blue"}}
            for status in (202, 409):
                answered = await client.post("/runs/r/answers", json=answers)
                if status == answered.status_code == 202:
                    await until(lambda: is_over(client))
            assert answered.status_code == 409
            told = (await client.get("/runs/r")).json()
            assert (told["outcome"], "It is blue." in told["plan"]) == ("completed", True)


async def is_over(client):
    return (await client.get("/runs/r")).json()["outcome"] == "completed"


def connections(house):
    """Connections to the database by the worker that has most."""
    with psycopg.connect(house.address) as connection:
        rows = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'replan-worker-%' "
            "AND datname = current_database() "
            "GROUP BY application_name"
        ).fetchall()
    return max(number for (number,) in rows)


async def at_terminal(house, *words):
    words = ["-m", "replan", *words, "--team", house.team, "--storage", house.address]
    return await asyncio.to_thread(warm.run, *words)


async def test_a_terminal_continues_what_a_worker_left_waiting_and_a_worker_what_it_began(house):
    document = house.folder / "plan.md"
    document.write_text("- [ ] 1. Paint @asker\n")
    async with queued(house) as (runtime, storage, _):
        run = await runtime.start({"plan": document.read_text()}, run_id="asks")
        house.worker()
        assert (await run).outcome == "waiting"
        told = await at_terminal(house, "resume", "asks", "--answer", "1/asker/1=red")
        assert (told.returncode, "It is red." in told.stdout) == (0, True)
        assert (await runtime.get("asks")).outcome == "completed"

        told = await at_terminal(house, "run", document)
        assert told.returncode == 3, told.stderr
        newest, _ = await storage.runs.recent(2, {})
        result = await (await runtime.answer(newest.run_id, "green", by="anna"))
        assert (result.outcome, result.results[1].text) == ("completed", "It is green.")
