"""Steps that the workers of another queue do: real processes, which are killed, on PostgreSQL.

A step waits at its gate, a named pipe, until the test writes to it; each time that a step begins it
leaves a line with the id of its process and its idempotency key.
"""

import asyncio
import os
import signal
import threading
import time
from contextlib import asynccontextmanager

import httpx
import pytest

import warm
from postgres import free_port
from replan import Limits, RunSettings, build_graph, open_storage
from replan.errors import ConfigurationError
from replan.team.team_file import read_team_file
from replan.testing import OpenAIServer
from replan.workers.open_worker import WorkerWanted, open_worker, publish
from replan.workers.queue import open_queue
from replan.workers.queued_runtime import open_queued_runtime
from replan.workers.versions import version_of

CREW = """\
import os
from pathlib import Path

from replan import ask_user

HERE = Path(__file__).parent


def work(context):
    words = context.plan_step.description.split()[0]
    with (HERE / "begun").open("a") as begun:
        begun.write(f"{words} {os.getpid()} {context.idempotency_key}\\n")
    gate = HERE / f"gate-{words}"
    if gate.exists():
        gate.read_text()
    return f"Done {words} in {os.environ.get('PLACE')}."


def ask(context):
    return f"It is {ask_user('Which colour?')} in {os.environ.get('PLACE')}."
"""
TEAM = """\
name: crew
host: {{model: offline}}
models: {{chat: {{model: 'openai:scripted', base_url: {url}, api_key_env: NO_KEY}}}}
specialists:
  - {{name: worker, intended_use: Works., run: 'crew:work', effects: pure}}
  - {{name: gpu, intended_use: Computes., run: 'crew:work', effects: pure, queue: gpu}}
  - {{name: biller, intended_use: Bills., run: 'crew:work', effects: unsafe, queue: gpu}}
  - {{name: asker, intended_use: Asks., run: 'crew:ask', effects: pure, queue: gpu}}
  - {{name: thinker, intended_use: Thinks., chat_model: chat, queue: gpu}}
  - {{name: ponderer, intended_use: Ponders., chat_model: chat}}
"""
PLAN = """\
- [ ] 1. here @worker
- [ ] 2. there @gpu
- [ ] 3. Choose @asker
- [ ] 4. bill @biller
- [ ] 5. Think @thinker
- [ ] 6. Ponder @ponderer
"""


async def until(looked):
    latest = time.monotonic() + 30
    while not (found := looked()):
        assert time.monotonic() < latest, "it did not happen"
        await asyncio.sleep(0.02)
    return found


@pytest.fixture
def processes():
    begun = []
    yield begun
    for each in begun:
        each.close()


@asynccontextmanager
async def queued(team, address):
    """A runtime that leaves runs to workers, with its storage and its queue."""
    read, digest = read_team_file(team, os.environ), version_of(team).digest
    async with open_storage(address) as storage, open_queue(address) as queue:
        graph = build_graph(read.config, storage=storage, models=read.models)
        options = {"storage": storage, "queue": queue, "digest": digest}
        async with open_queued_runtime(graph, **options) as runtime:
            yield runtime, storage, queue


async def test_steps_of_a_queue_are_done_elsewhere_asked_charged_and_taken_up_by_others(  # noqa: C901, PLR0915 - one life of a run
    tmp_path, empty_database, monkeypatch, processes
):
    address, team = empty_database, tmp_path / "team.yaml"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_KEY", "none")
    (tmp_path / "crew.py").write_text(CREW)
    for name in ("there", "bill"):
        os.mkfifo(tmp_path / f"gate-{name}")

    def worker(place, queues, *more):
        words = ["-m", "replan", "worker", "--storage", address, "--team", team, "--lease", 1.5]
        env = {**os.environ, "PLACE": place}
        processes.append(
            warm.Process([*words, "--queues", queues, "--concurrency", 5, *more], env=env)
        )
        return processes[-1]

    def begun(name, but=()):
        file = tmp_path / "begun"
        lines = file.read_text().splitlines() if file.exists() else []
        rows = [line.split() for line in lines]
        return next((row for row in rows if row[0] == name and int(row[1]) not in but), None)

    both_begun = threading.Event()

    async def thought(_):
        await asyncio.to_thread(both_begun.wait, 30)
        return "A thought."

    with OpenAIServer(thought) as models:
        team.write_text(TEAM.format(url=models.base_url))
        await asyncio.to_thread(publish, team, address)
        port = free_port()
        worker("here", "runs", "--metrics", port)
        first = worker("there", "gpu")
        async with queued(team, address) as (runtime, storage, _):
            # The calls of steps 5 and 6, in two processes, are reserved in one log.
            limits = RunSettings(limits=Limits(max_model_calls=50, max_tokens=20_000))
            run = await runtime.start({"plan": PLAN}, run_id="r", settings=limits)
            for name in ("there", "bill"):
                await until(lambda name=name: begun(name))
            old, key = int(begun("there")[1]), begun("there")[2]
            assert old == int(begun("bill")[1]) != int(begun("here")[1])
            async with asyncio.timeout(30):
                while {5, 6} - {each.step_id for each in await storage.log.ledger("r")}:  # noqa: ASYNC110 - in other processes
                    await asyncio.sleep(0.05)
                await asyncio.to_thread(models.wait_for_requests, 1)
                both_begun.set()
                # A call whose process is killed is charged, and nobody has its usage.
                while not (await runtime.get("r")).plan.step(5).is_finished:  # noqa: ASYNC110 - in another process
                    await asyncio.sleep(0.05)
            os.kill(old, signal.SIGKILL)
            worker("there again", "gpu")
            again = await until(lambda: begun("there", but={old}))
            # Taken up by another worker, under the same key.
            assert again[2] == key
            await asyncio.to_thread((tmp_path / "gate-there").write_text, "go")
            asked = await run
            assert asked.outcome == "waiting"
            (tmp_path / "gate-bill").rename(tmp_path / "open-bill")
            # What is unsafe was not done again: a person is asked.
            assert not begun("bill", but={old})
            asks = {each.key: each.text for each in (await runtime.get("r")).pending_questions}
            assert set(asks) == {"3/asker/1", "4/biller/1"}, asks
            answers = {"3/asker/1": "blue", "4/biller/1": "done"}
            result = await (await runtime.answer("r", answers, by="anna"))
            assert result.outcome == "completed", result
            texts = {step: result.results[step].text for step in (1, 2, 3, 5, 6)}
            assert texts == {
                1: "Done here in here.",
                2: "Done there in there again.",
                3: "It is blue in there again.",
                5: "A thought.",
                6: "A thought.",
            }
            # A call of another process is in the usage, in the log and among the events.
            assert result.usage.calls >= 1
            assert (await storage.log.spent("r"))["run"].calls == result.usage.calls
            events = [event async for event in runtime.events("r")]
            answered = [each for each in events if each.type == "model_completed"]
            by = {each.specialist for each in answered if each.step_id}
            assert by == {"thinker", "ponderer"}
            where = f"http://127.0.0.1:{port}/metrics"
            figures = (await asyncio.to_thread(httpx.get, where, trust_env=False)).text
            for outcome in ("waiting", "completed"):
                assert f'replan_runs_total{{outcome="{outcome}",team="crew"}} 1.0' in figures
    assert first.wait() != 0
    wanted = WorkerWanted(team=team, storage=address, queues=["runs", "gpu"])
    with pytest.raises(ConfigurationError, match="Let another worker have --queues gpu"):
        async with open_worker(wanted):
            pass


@asynccontextmanager
async def working(wanted):
    """A worker in this process."""
    async with open_worker(wanted) as worker:
        task = asyncio.ensure_future(worker.work())
        try:
            yield
        finally:
            await worker.drain()
            await task


async def test_a_step_waits_in_its_queue_as_its_run_does_and_a_stop_takes_it_back(
    tmp_path, empty_database, monkeypatch
):
    address, team = empty_database, tmp_path / "team.yaml"
    monkeypatch.setenv("NO_KEY", "none")
    (tmp_path / "crew_that_waits.py").write_text(CREW)
    team.write_text(TEAM.format(url="http://127.0.0.1:9").replace("crew:", "crew_that_waits:"))
    await asyncio.to_thread(publish, team, address)
    fields = {"team": team, "storage": address, "lease": 3.0, "grace": 0.1}
    async with (
        working(WorkerWanted(**fields)),
        queued(team, address) as (runtime, _, queue),
    ):

        async def steps():
            query = "SELECT args, priority FROM procrastinate_jobs WHERE task_name = 'step'"
            query += " AND status = 'todo' ORDER BY priority DESC"
            return await queue.app.connector.execute_query_all_async(query)

        async def waiting(number):
            while len(found := await steps()) != number:  # noqa: ASYNC110 - in other processes
                await asyncio.sleep(0.02)
            return [(each["args"]["tenant"], each["priority"]) for each in found]

        async with asyncio.timeout(30):
            options = {
                "settings": RunSettings(limits=Limits(step_timeout=1.0, step_retries=0)),
                "labels": {"tenant": "anna", "priority": "2"},
            }
            stopped = await runtime.start({"plan": "- [ ] 1. never @gpu\n"}, **options)
            assert await waiting(1) == [("anna", 200_000_000)]
            run = await runtime.start({"plan": "- [ ] 1. late @gpu\n"}, **options)
            assert await waiting(2) == [("anna", 200_000_000), ("anna", 199_999_999)]
            await stopped.stop()
            assert (await stopped).outcome == "interrupted"
            assert await waiting(1) == [("anna", 199_999_999)]
            # Its time is over twice before anybody takes it up, and it has not begun.
            begun = time.monotonic()
            while time.monotonic() < begun + 2:
                assert len(await steps()) == 1
                await asyncio.sleep(0.1)
            async with working(WorkerWanted(**fields, queues=["gpu"])):
                result = await run
        assert (result.outcome, result.results[1].text[:9]) == ("completed", "Done late")
    assert [line.split()[0] for line in (tmp_path / "begun").read_text().splitlines()] == ["late"]
