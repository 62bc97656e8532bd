"""A process is killed while it is steered: an edit is made once, and a message is judged."""

import os
import signal
import subprocess

import pytest

import warm
from replan import Host, Specialist, Team, open_runtime
from replan.testing import always

LIFE = """\
import asyncio, itertools, os, signal, sys
from replan import Host, Specialist, Team, open_runtime, open_storage

where, log, kill_at, model = sys.argv[1:]
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
    if (kill_at, step) in (("at work", 3), ("ahead", 4)):
        die()
    return f"done {step}"

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def watch(storage, saver):
    seen = list()

    def watched(write):
        async def written(*given, **named):
            value = await write(*given, **named)
            what = write.__name__
            if what == "note" and given[1].startswith("steer"):
                what = given[1].partition("/")[0]
            seen.append(what)
            if what == kill_at or (what, kill_at) == ("aput", "stored") and "steered" in seen:
                die()
            return value

        return written

    for name in ("add_request", "note", "take_requests"):
        setattr(storage.log, name, watched(getattr(storage.log, name)))
    saver.aput = watched(saver.aput)

async def main():
    team = Team(Host(model), [Specialist("a", "Works.", run=work, effects="pure")])
    async with open_storage(where) as storage, open_runtime(team, storage=storage) as runtime:
        watch(storage, runtime.graph.checkpointer)
        plan = "- [ ] 1. One @a\\n- [ ] 2. Two @a (after 1)\\n- [ ] 3. Three @a (after 2)\\n"
        run = await runtime.start({"plan": plan}, run_id="r")
        await at_work.wait()
        text = (await run.report()).plan.content.replace("Two", "Zwei").replace("Three", "Drei")
        if kill_at == "ahead":
            await run.edit_plan(text + "- [ ] 4. Vier @a\\n", version=1, by="anna")
            await asyncio.Event().wait()
        elif model == "offline":
            await run.edit_plan(text, version=1, by="anna")
        else:
            await run.send_message("Speak German.", by="anna")
        leave.set()
        await run

asyncio.run(main())
"""
MOMENTS = ("add_request", "steered", "steering_outcome", "stored", "at work", "take_requests")
GERMAN = """\
---
verdict: continue
update: German was asked for.
---
- [x] 1. One @a
- [ ] 2. Zwei @a (after 1)
- [ ] 3. Drei @a (after 2)
"""


def killed(where, log, moment, model="offline"):
    words = ["-c", LIFE, where, str(log), moment, model]
    with warm.Process(words, stdout=subprocess.PIPE, env={**os.environ}) as process:
        assert process.wait() == -signal.SIGKILL


def team(log, model="offline"):
    def work(context):
        with log.open("a") as lines:
            print("ran", context.plan_step.id, context.task_description, file=lines)
        return f"done {context.plan_step.id}"

    return Team(Host(model), [Specialist("a", "Works.", run=work, effects="pure")])


async def check(runtime, log, moment, by):
    """See that the plan was changed once, and that each step was done as it is in the new one."""
    result = await runtime.resume("r")
    assert (result.outcome, result.plan.version, result.warnings) == ("completed", 2, ())
    assert [(each.version, each.by) for each in result.plan.update_history] == [(2, by)]
    assert await runtime.storage.log.requests(["r"]) == []
    statuses = [e.status async for e in runtime.events("r") if e.type == "run_steered"]
    assert "refused" not in statuses
    assert statuses.count("taken") == 1
    ran = log.read_text().splitlines()
    ahead = ["ran 4 Vier"] if moment == "ahead" else []
    done = ["ran 1 One", "ran 2 Zwei", "ran 3 Drei", *ahead]
    # What was cut off, and is declared to be harmless, is done again.
    cut_off = {"add_request": [1], "at work": [3], "ahead": [1, 4]}.get(moment, [])
    assert sorted(ran) == sorted([*done, *(done[step - 1] for step in cut_off)])


@pytest.mark.parametrize("moment", [*MOMENTS, "ahead"])
async def test_an_edit_is_made_once_whenever_the_process_is_killed(where, tmp_path, moment):
    log = tmp_path / "ran"
    killed(where, log, moment)
    async with open_runtime(team(log), storage=where) as runtime:
        await check(runtime, log, moment, "person")


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_message_is_judged_whenever_the_process_is_killed(
    where, tmp_path, moment, openai_server, monkeypatch
):
    def judge(messages):
        is_said = any("<said>\nSpeak German.\n</said>" in each.text for each in messages)
        return GERMAN if is_said else "---\nverdict: complete\n---\nDone."

    server, log = openai_server({"feedback": always(judge)}), tmp_path / "ran"
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    killed(where, log, moment, "openai:m")
    async with open_runtime(team(log, "openai:m"), storage=where) as runtime:
        await check(runtime, log, moment, "model")
