"""A service that is killed in the middle of its runs, and resumes them when it starts again."""

import json
import signal
import subprocess
from collections import Counter

import pytest

import warm

SERVICE = """\
import asyncio, json, signal, sys
from pathlib import Path
from replan import Host, Specialist, Team, ask_user, open_runtime

where, log, action, *ids = sys.argv[1:]

def note(*words):
    with open(log, "a") as lines:
        lines.write(" ".join(map(str, words)) + "\\n")

async def work(context, idempotency_key=""):
    name, step = context.task_description, context.plan_step.id
    note(name, step, context.idempotency_key)
    if action == "begin" and step == 2:
        print("there", flush=True)
        await asyncio.Event().wait()
    return f"{name} {step}"

async def unkeyed(context):
    return await work(context)

def ask(context):
    return ask_user("Which colour?")

team = Team(
    Host("offline"),
    [
        Specialist("reader", "Reads.", run=unkeyed, effects="pure"),
        Specialist("sender", "Sends.", run=work),
        Specialist("payer", "Pays.", run=unkeyed, effects="unsafe"),
        Specialist("asker", "Asks.", run=ask, effects="pure"),
    ],
    name="service",
)

def plan_of(run_id):
    kind = run_id.partition("-")[0]
    if kind == "asker":
        return f"- [ ] 1. {run_id} @asker\\n"
    return f"- [ ] 1. {run_id} @reader\\n- [ ] 2. {run_id} @{kind} (after 1)\\n"

async def main():
    async with open_runtime(team, storage=where, grace=0.01) as runtime:
        if action == "begin":
            stopped = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
            for run_id in ids:
                run = await runtime.start({"plan": plan_of(run_id)}, run_id=run_id)
                if run_id.startswith("asker"):
                    await run
                    print("there", flush=True)
            await stopped.wait()
            return
        recovery = await runtime.resume_interrupted(at_once=8, by=action)
        resumed = {each.run_id: [each.outcome, [ask.kind for ask in each.pending_questions]]
                   for each in recovery.resumed}
        left = {each.run_id: each.reason for each in recovery.left_alone}
        print(json.dumps({"resumed": resumed, "left": left}), flush=True)

asyncio.run(main())
"""


class Service:
    """The service on one storage; each of its processes is one life."""

    def __init__(self, where, folder):
        self.words = ["-c", SERVICE, where, str(folder / "log")]
        self._log = folder / "log"

    def cut_off(self, *ids, by=signal.SIGKILL):
        """Begin runs, and end the process once all of them are in the middle."""
        with warm.Process([*self.words, "begin", *ids], stdout=subprocess.PIPE) as process:
            for _ in ids:
                assert process.stdout.readline() == "there\n"
            process.send_signal(by)
            assert process.wait() == (-by if by is signal.SIGKILL else 0)

    def recovering(self):
        return warm.Process([*self.words, "startup"], stdout=subprocess.PIPE)

    def recovered(self):
        with self.recovering() as process:
            return self.told(process)

    def told(self, process):
        told = json.loads(process.stdout.readline())
        assert process.wait() == 0
        return told

    @property
    def work(self):
        """How often each step was done: by run and step."""
        return Counter(tuple(line.split()[:2]) for line in self._log.read_text().splitlines())

    @property
    def keys(self):
        return {tuple(line.split()) for line in self._log.read_text().splitlines()}


@pytest.fixture
def service(where, tmp_path):
    return Service(where, tmp_path)


def test_a_new_process_resumes_what_a_killed_one_left(service):
    service.cut_off("reader-1", "sender-1", "payer-1", "asker-1")
    assert service.recovered() == {
        "resumed": {
            "reader-1": ["completed", []],
            "sender-1": ["completed", []],
            "payer-1": ["waiting", ["unknown_outcome"]],
        },
        "left": {"asker-1": "waiting"},
    }
    # What is on record is not done again, and nobody pays twice unasked.
    assert service.work == {
        ("reader-1", "1"): 1,
        ("reader-1", "2"): 2,
        ("sender-1", "1"): 1,
        ("sender-1", "2"): 2,
        ("payer-1", "1"): 1,
        ("payer-1", "2"): 1,
    }
    assert len([key for run, step, key in service.keys if (run, step) == ("sender-1", "2")]) == 1
    assert service.recovered() == {
        "resumed": {},
        "left": {"payer-1": "waiting", "asker-1": "waiting"},
    }


def test_a_new_process_resumes_what_a_signal_stopped(service):
    service.cut_off("reader-1", "payer-1", by=signal.SIGTERM)
    told = service.recovered()
    assert told["left"] == {}
    assert told["resumed"] == {
        "reader-1": ["completed", []],
        "payer-1": ["waiting", ["unknown_outcome"]],
    }


def test_what_a_living_process_works_on_is_left_to_it(service):
    service.cut_off("reader-1")
    with warm.Process([*service.words, "begin", "reader-2"], stdout=subprocess.PIPE) as living:
        assert living.stdout.readline() == "there\n"
        told = service.recovered()
    assert told == {"resumed": {"reader-1": ["completed", []]}, "left": {"reader-2": "held"}}


def test_processes_that_start_together_resume_each_run_once(service):
    ids = [f"reader-{number}" for number in range(6)] + ["payer-1", "payer-2"]
    service.cut_off(*ids)
    processes = [service.recovering() for _ in range(3)]
    told = [service.told(process) for process in processes]
    for process in processes:
        process.close()
    assert sorted(run_id for each in told for run_id in each["resumed"]) == sorted(ids)
    done = {run: number for (run, step), number in service.work.items() if step == "2"}
    assert done == {each: 1 if each.startswith("payer") else 2 for each in ids}
