"""A process is killed while a person's edit is on its way into the plan: it is made once."""

import signal
import subprocess

import pytest

import warm
from replan import Host, Specialist, Team, open_runtime

LIFE = """\
import asyncio, itertools, os, signal, sys
from replan import Host, Specialist, Team, open_runtime, open_storage

where, log, kill_at = sys.argv[1:]
at_work, leave, edited = asyncio.Event(), asyncio.Event(), asyncio.Event()

def note(*words):
    with open(log, "a") as lines:
        print(*words, file=lines)

async def work(context):
    step, task = context.plan_step.id, context.task_description
    note("ran", step, task)
    if step == 1:
        at_work.set()
        await leave.wait()
    if kill_at == "at work" and step == 3:
        die()
    return f"done {step}"

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def watch(storage, saver):
    seen = list()

    def watched(write):
        async def written(*given, **named):
            value = await write(*given, **named)
            is_note = write.__name__ == "note" and given[1].startswith("steered/")
            what = "steered" if is_note else write.__name__
            seen.append(what)
            if what == kill_at or (what, kill_at) == ("aput", "stored") and "steered" in seen:
                die()
            return value

        return written

    for name in ("add_request", "note", "take_requests"):
        setattr(storage.log, name, watched(getattr(storage.log, name)))
    saver.aput = watched(saver.aput)

async def main():
    team = Team(Host("offline"), [Specialist("a", "Works.", run=work, effects="pure")])
    async with open_storage(where) as storage, open_runtime(team, storage=storage) as runtime:
        watch(storage, runtime.graph.checkpointer)
        plan = "- [ ] 1. One @a\\n- [ ] 2. Two @a (after 1)\\n- [ ] 3. Three @a (after 2)\\n"
        run = await runtime.start({"plan": plan}, run_id="r")
        await at_work.wait()
        text = (await run.report()).plan.content.replace("Two", "Zwei").replace("Three", "Drei")
        await run.edit_plan(text, version=1, by="anna")
        leave.set()
        await run

asyncio.run(main())
"""
MOMENTS = ("add_request", "steered", "stored", "at work", "take_requests")


@pytest.mark.parametrize("moment", MOMENTS)
async def test_an_edit_is_made_once_whenever_the_process_is_killed(where, tmp_path, moment):
    log = tmp_path / "ran"
    with warm.Process(["-c", LIFE, where, str(log), moment], stdout=subprocess.PIPE) as process:
        assert process.wait() == -signal.SIGKILL

    def work(context):
        with log.open("a") as lines:
            print("ran", context.plan_step.id, context.task_description, file=lines)
        return f"done {context.plan_step.id}"

    team = Team(Host("offline"), [Specialist("a", "Works.", run=work, effects="pure")])
    async with open_runtime(team, storage=where) as runtime:
        result = await runtime.resume("r")
        assert (result.outcome, result.plan.version, result.warnings) == ("completed", 2, ())
        assert [(each.version, each.by) for each in result.plan.update_history] == [(2, "person")]
        assert await runtime.storage.log.requests(["r"]) == []
        statuses = [e.status async for e in runtime.events("r") if e.type == "run_steered"]
        assert "refused" not in statuses
        assert statuses.count("taken") == 1
    ran = log.read_text().splitlines()
    assert {"ran 2 Two", "ran 3 Three"}.isdisjoint(ran)
    assert {"ran 1 One", "ran 2 Zwei", "ran 3 Drei"} == {*ran}
    again = {"add_request": "ran 1 One", "at work": "ran 3 Drei"}.get(moment)
    assert sorted(ran) == sorted([*{*ran}, *([again] if again else [])])
