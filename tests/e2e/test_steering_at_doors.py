"""A run at work is steered from the terminal, and by an agent through A2A."""

import asyncio
import subprocess

import pytest
from a2a.helpers.proto_helpers import new_data_part, new_text_part
from a2a.types.a2a_pb2 import GetTaskRequest, Message, Role, SendMessageRequest, TaskState
from a2a.utils.errors import A2AError

import warm
from acts_teams import END, Fence
from replan.testing import ScriptedModel
from served import agent_of, as_, served, tokens_of
from terminals import REPLAN, Terminal

OWNER = """\
import asyncio, sys
from pathlib import Path
from replan import Host, Specialist, Team, open_runtime

where, go_on = sys.argv[1], Path(sys.argv[2])

async def work(context):
    print("at work", flush=True)
    while context.plan_step.id == 1 and not go_on.exists():
        await asyncio.sleep(0.01)
    return context.task_description

async def main():
    team = Team(Host("offline"), [Specialist("worker", "Works.", run=work, effects="pure")])
    async with open_runtime(team, storage=where) as runtime:
        plan = "- [ ] 1. Dig @worker\\n- [ ] 2. Sow @worker (after 1)\\n"
        result = await (await runtime.start({"plan": plan}, run_id="r"))
        print(result.outcome, result.plan.version, result.plan.step(2).description, flush=True)

asyncio.run(main())
"""


@pytest.fixture
def owner(tmp_path):
    """A process that works on a run until it may go on."""
    words = ["-c", OWNER, str(tmp_path / "runs.db"), str(tmp_path / "go on")]
    with warm.Process(words, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "at work\n"
        yield process
        process.kill()


def typed(folder, *words):
    return warm.run(*REPLAN, *words, "--storage", str(folder / "runs.db"))


def last_line(process):
    return process.stdout.read().splitlines()[-1]


def test_the_terminal_edits_the_plan_of_a_run_of_another_process(owner, tmp_path):
    plan = tmp_path / "plan.md"
    plan.write_text("- [ ] 1. Dig @worker\n- [ ] 2. Plant @worker (after 1)\n")
    done = typed(tmp_path, "edit", "r", "--plan", str(plan))
    assert done.returncode == 2
    assert "at version 1 now. Name the one that you edited: --version NUMBER" in done.stderr
    done = typed(tmp_path, "edit", "r", "--plan", str(plan), "--version", "1")
    assert done.returncode == 0, done.stderr
    assert " waits for step 1\n" in done.stdout
    assert " waits for step 1\nbegan " in typed(tmp_path, "show", "r").stdout
    (tmp_path / "go on").touch()
    assert last_line(owner) == "completed 2 Plant"
    done = typed(tmp_path, "edit", "r", "--plan", str(plan), "--version", "2")
    assert (done.returncode, "The run is over. Begin a new one, with" in done.stderr) == (2, True)
    assert " makes version 2 of the plan" in typed(tmp_path, "show", "r").stdout


def test_the_terminal_says_what_the_owner_of_a_run_refuses(owner, tmp_path):
    plan = tmp_path / "plan.md"
    plan.write_text("- [ ] 1. Dig @worker\n- [ ] 2. Plant @gardener (after 1)\n")
    done = typed(tmp_path, "edit", "r", "--plan", str(plan), "--version", "1")
    assert done.returncode == 2
    assert "is refused" in done.stderr
    assert "gardener" in done.stderr
    (tmp_path / "go on").touch()
    assert last_line(owner) == "completed 1 Sow"
    shown = typed(tmp_path, "show", "r").stdout
    assert "completed: 2 of 2 steps done, 1 edit refused\n" in shown
    assert " edited version 1 of the plan: 2. Plant\n" in shown
    assert " is not in the plan: write it into a plan document, and run that\n" in shown


def test_the_editor_opens_with_the_plan_of_the_run(owner, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i s/Sow/Plant/ $1\n")
    editor.chmod(0o755)
    command = [*REPLAN, "edit", "r", "--storage", str(tmp_path / "runs.db")]
    terminal = Terminal(command, {"EDITOR": str(editor)})
    assert terminal.end() == 0, terminal.text
    assert "waits for step 1" in terminal.text
    terminal.close()
    (tmp_path / "go on").touch()
    assert last_line(owner) == "completed 2 Plant"


TOKENS = tokens_of(boss={}, clerk={"roles": frozenset({"run", "answer"})})


def test_the_terminal_tells_the_host_of_a_run_something(owner, tmp_path):
    done = typed(tmp_path, "message", "r", "Also compare 2023.")
    assert (done.returncode, done.stderr) == (0, "")
    assert " waits for step 1\n" in done.stdout
    assert typed(tmp_path, "message", "r", " ").returncode == 2
    (tmp_path / "go on").touch()
    assert last_line(owner) == "completed 1 Sow"
    done = typed(tmp_path, "message", "r", "Also compare 2023.")
    assert (done.returncode, "The run is over. Begin a new one, and" in done.stderr) == (2, True)
    shown_run = typed(tmp_path, "show", "r").stdout
    assert "said: Also compare 2023." in shown_run


REVISED = """\
---
verdict: continue
update: The gate was wanted, too.
---
- [x] 1. Measure @worker
- [ ] 3. Oil the gate @worker
"""


async def test_an_agent_tells_the_host_of_a_task_at_work_something_and_edits_its_plan():
    fence = Fence()
    fence.leave.clear()
    plan = fence.PLAN.replace("Paint @painter", "Oil @worker")
    revised = REVISED.replace("- [ ] 3", "- [ ] 2. Wax @worker (after 1)\n- [ ] 3")
    model = {
        "think": f"---\ncomplexity: complex\n---\n{plan}",
        "feedback": [revised, END["feedback"]],
    }
    team = fence.team(ScriptedModel(model))
    async with served({"town": team}, tokens=TOKENS) as client:
        async with agent_of(client, as_("boss")) as agent, agent_of(client, as_("clerk")) as clerk:
            task = await begun(agent, "The fence.")
            assert await plan_of(agent, task) == (plan.strip(), 1)
            told = agent.send_message(SendMessageRequest(message=said("m2", "The gate.", task)))
            await anext(told)
            edit = {"plan": plan.replace("Oil", "Wax"), "version": 1}
            with pytest.raises(A2AError, match="role 'operate'"):
                await last(clerk.send_message(SendMessageRequest(message=said("m3", edit, task))))
            stale = said("m4", {**edit, "version": 7}, task)
            with pytest.raises(A2AError, match="version 7 of the plan"):
                await last(agent.send_message(SendMessageRequest(message=stale)))
            edited = agent.send_message(SendMessageRequest(message=said("m5", edit, task)))
            await anext(edited)
            again = agent.send_message(SendMessageRequest(message=said("m2", "The gate.", task)))
            await anext(again)
            fence.leave.set()
            for stream in (told, edited, again):
                state = (await last(stream)).status_update.status.state
                assert state == TaskState.TASK_STATE_COMPLETED
        events = (await client.get(f"/runs/{task}/events", headers=as_("boss"))).json()["events"]
    steered = [each for each in events if each["type"] == "run_steered"]
    assert [each["kind"] for each in steered if each["status"] == "taken"] == ["edit", "message"]
    assert fence.did == ["Measure", "Wax", "Oil the gate"]


def said(message_id, what, task=""):
    part = new_text_part(what) if isinstance(what, str) else new_data_part(what)
    return Message(message_id=message_id, role=Role.ROLE_USER, parts=[part], task_id=task)


async def begun(agent, what):
    """The id of a task, once it is begun."""
    following = agent.send_message(SendMessageRequest(message=said("m1", what)))
    task = (await anext(following)).task.id
    await following.aclose()
    return task


async def plan_of(agent, task):
    """The plan of a task at work, and its version, once the host has made it."""
    async with asyncio.timeout(30):
        while True:
            behind = (await agent.get_task(GetTaskRequest(id=task))).metadata["replan"]
            if "plan" in behind:
                return behind["plan"], behind["plan_version"]


async def last(stream):
    return [each async for each in stream][-1]
