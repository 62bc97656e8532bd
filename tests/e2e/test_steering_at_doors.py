"""A run at work is steered from the terminal, over HTTP and on the page."""

import asyncio
import subprocess

import pytest
from a2a.helpers.proto_helpers import new_data_part, new_text_part
from a2a.types.a2a_pb2 import GetTaskRequest, Message, Role, SendMessageRequest, TaskState
from a2a.utils.errors import A2AError

import warm
from acts_teams import END, Fence
from page_forms import form, parsed, rested, seen, sent
from pages import shown
from replan import open_storage
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


async def test_the_plan_of_a_run_at_work_is_edited_over_http():
    fence = Fence()
    fence.leave.clear()
    async with served(fence.team(), tokens=TOKENS) as client:
        begun = await client.post("/runs", json={"plan": fence.PLAN}, headers=as_("clerk"))
        where = f"/runs/{begun.json()['run_id']}"
        await fence.at_work.wait()
        run = (await client.get(where, headers=as_("boss"))).json()
        assert run["plan_version"] == 1
        given = {"plan": run["plan"].replace("Paint @painter", "Oil @worker"), "version": 1}
        refused = await client.put(f"{where}/plan", json=given, headers=as_("clerk"))
        assert refused.status_code == 403
        stale = {**given, "version": 3}
        refused = await client.put(f"{where}/plan", json=stale, headers=as_("boss"))
        assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
        assert "version 3 of the plan, and the plan is at version 1" in refused.json()["detail"]
        looser = {**given, "plan": given["plan"].replace("(after 1)", "(after 1; timeout 1h)")}
        refused = await client.put(f"{where}/plan", json=looser, headers=as_("boss"))
        assert (refused.status_code, refused.json()["code"]) == (422, "bad_document")
        taken = await client.put(f"{where}/plan", json=given, headers=as_("boss"))
        assert taken.status_code == 202, taken.text
        fence.leave.set()
        async with client.stream(
            "GET", f"{where}/events", headers={**as_("boss"), "Accept": "text/event-stream"}
        ) as stream:
            told = "".join([part async for part in stream.aiter_text()])
        assert '"status":"waits","request"' in told
        assert fence.did == ["Measure", "Oil"]
        done = (await client.get(where, headers=as_("boss"))).json()
        assert (done["outcome"], done["plan_version"]) == ("completed", 2)


async def test_the_plan_of_a_run_at_work_is_edited_on_the_page():
    fence = Fence()
    fence.leave.clear()
    async with open_storage(":memory:") as storage, shown(fence.team(), storage) as client:
        path, fields = await form(client, "/start")
        files = [("files", ("", b""))]
        answer = await client.post(path, data={**fields, "plan": fence.PLAN}, files=files)
        where = answer.headers["location"]
        await fence.at_work.wait()
        assert 'id="act-edit"' in (await client.get(where)).text
        action, fields = await form(client, f"{where}/plan")
        assert fields["version"] == "1"
        wrong = {**fields, "plan": fields["plan"].replace("Measure", "Guess")}
        refused = await sent(client, action, wrong, 422)
        assert "what is at work: step 1" in refused.text
        _, typed_before = parsed(refused.text)
        assert "Guess" in typed_before["plan"]
        stale = await sent(client, action, {**fields, "version": "7"}, 409)
        assert "version 7 of the plan, and the plan is at version 1" in stale.text
        edited = {**fields, "plan": fields["plan"].replace("Paint @painter", "Oil @worker")}
        await sent(client, action, edited)
        await seen(client, where, "the edit of version 1 by owner waits for step 1")
        fence.leave.set()
        page = await rested(client, where, "completed")
        assert fence.did == ["Measure", "Oil"]
        assert "plan version 2" in page


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


def revising():
    return ScriptedModel({"feedback": [REVISED, END["feedback"]]})


async def test_the_host_of_a_run_is_told_something_over_http():
    fence = Fence()
    fence.leave.clear()
    plan = "- [ ] 1. Measure @worker\n"
    async with served(fence.team(revising()), tokens=TOKENS) as client:
        begun = await client.post("/runs", json={"plan": plan}, headers=as_("clerk"))
        where = f"/runs/{begun.json()['run_id']}"
        await fence.at_work.wait()
        said = {"text": "Also the gate."}
        empty = await client.post(f"{where}/messages", json={"text": " "}, headers=as_("clerk"))
        assert (empty.status_code, empty.json()["code"]) == (422, "bad_input")
        again = {**as_("clerk"), "Idempotency-Key": "k1"}
        for _ in range(2):
            taken = await client.post(f"{where}/messages", json=said, headers=again)
            assert taken.status_code == 202, taken.text
        other = await client.post(f"{where}/messages", json={"text": "The door."}, headers=again)
        assert (other.status_code, "Another message" in other.text) == (422, True)
        fence.leave.set()
        headers = {**as_("boss"), "Accept": "text/event-stream"}
        async with client.stream("GET", f"{where}/events", headers=headers) as stream:
            told = "".join([part async for part in stream.aiter_text()])
        assert told.count('"kind":"message","status":"taken"') == 1
        late = await client.post(f"{where}/messages", json=said, headers=again)
        assert late.status_code == 202
        assert fence.did == ["Measure", "Oil the gate"]
        late = await client.post(f"{where}/messages", json=said, headers=as_("clerk"))
        assert (late.status_code, "The run is over" in late.text) == (422, True)


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


async def test_the_host_of_a_run_is_told_something_on_the_page():
    fence = Fence()
    fence.leave.clear()
    team = fence.team(revising())
    async with open_storage(":memory:") as storage, shown(team, storage) as client:
        path, fields = await form(client, "/start")
        files = [("files", ("", b""))]
        given = {**fields, "plan": "- [ ] 1. Measure @worker\n"}
        where = (await client.post(path, data=given, files=files)).headers["location"]
        await fence.at_work.wait()
        assert 'id="act-message"' in (await client.get(where)).text
        action, fields = await form(client, f"{where}/message")
        empty = await sent(client, action, {**fields, "text": " "}, 422)
        assert "The message is empty" in empty.text
        await sent(client, action, {**fields, "text": "Also the gate."})
        fence.leave.set()
        page = await rested(client, where, "completed")
        assert fence.did == ["Measure", "Oil the gate"]
        assert "plan version 2" in page
        history = (await client.get(f"{where}?tab=history")).text
        assert "said: Also the gate." in history
        late = await client.get(f"{where}/message")
        assert (late.status_code, "hears nothing any more" in late.text) == (409, True)
