"""Steps that the workers of another queue do: real processes, which are killed, on PostgreSQL."""

import asyncio
import os
import signal
import threading
import time
from contextlib import asynccontextmanager

import httpx
import pytest

from crews import queued
from postgres import free_port
from replan import Limits, RunSettings
from replan.errors import ConfigurationError
from replan.testing import OpenAIServer
from replan.workers.open_worker import WorkerWanted, open_worker

PLAN = """\
- [ ] 1. here @worker
- [ ] 2. there @gpu
- [ ] 3. Choose @asker
- [ ] 4. bill @biller
- [ ] 5. Think @thinker
- [ ] 6. Ponder @ponderer
"""


async def test_steps_of_a_queue_are_attempt_elsewhere_asked_charged_and_taken_up_by_others(  # noqa: PLR0915 - one life of a run
    crew, monkeypatch
):
    monkeypatch.setenv("NO_KEY", "none")
    for name in ("there", "bill"):
        crew.gate(name)

    def worker(place, queues, *more):
        return crew.worker("--queues", queues, "--concurrency", 5, *more, PLACE=place)

    both_begun = threading.Event()

    async def thought(_):
        await asyncio.to_thread(both_begun.wait, 30)
        return "A thought."

    with OpenAIServer(thought) as models:
        await asyncio.to_thread(crew.is_of, "queues.yaml", models.base_url)
        port = free_port()
        worker("here", "runs", "--metrics", port)
        first = worker("there", "gpu")
        async with queued(crew) as (runtime, storage, _):
            # The calls of steps 5 and 6, in two processes, are reserved in one log.
            limits = RunSettings(limits=Limits(max_model_calls=50, max_tokens=20_000))
            run = await runtime.start({"plan": PLAN}, run_id="r", settings=limits)
            old = await crew.has_begun("there")
            assert old == await crew.has_begun("bill") != await crew.has_begun("here")
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
            # Taken up by another worker, under the same key.
            await crew.has_begun("there", but={old})
            assert len(set(crew.keys("there"))) == 1
            crew.open("there")
            asked = await run
            assert asked.outcome == "waiting"
            crew.open("bill")
            # What is unsafe was not done again: a person is asked.
            assert len(crew.keys("bill")) == 1
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
    wanted = WorkerWanted(team=crew.team, storage=crew.address, queues=["runs", "gpu"])
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
    crew, monkeypatch
):
    monkeypatch.setenv("NO_KEY", "none")
    await asyncio.to_thread(crew.is_of, "queues.yaml", "http://127.0.0.1:9")
    fields = {"team": crew.team, "storage": crew.address, "lease": 3.0, "grace": 0.1}
    async with (
        working(WorkerWanted(**fields)),
        queued(crew) as (runtime, _, queue),
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
    assert [name for name, _ in crew.begun] == ["late"]
