"""The server through A2A's own client: a team is an agent, and a run is a task."""

import asyncio
import os
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import httpx
import pytest
from a2a.helpers.proto_helpers import new_data_part, new_text_part
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from a2a.utils.errors import A2AError
from langchain_core.messages import AIMessage

import warm
from replan import Artifact, Host, Specialist, SpecialistResult, Team, ask_user
from replan.testing import OpenAIServer, ScriptedModel, always
from served import OWNER, agent_of, rested, served

PLAN = "---\ncomplexity: complex\n---\n# Hall\n\n- [ ] 1. Paint the hall @painter\n"
END = always("---\nverdict: complete\n---\nThe hall is painted.")
ASKS, DONE = TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_COMPLETED


def team(**settings):
    def paint(context):
        text = f"{context.task_description}: {ask_user('Which colour?')}"
        made = Artifact(path="hall.txt", title="The hall", media_type="text/plain")
        return SpecialistResult(result=AIMessage(text), artifacts=(made,))

    member = Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure")
    model = ScriptedModel({"think": always(PLAN), "feedback": END})
    return Team(host=Host(model=model), specialists=[member], **settings)


def message(said, message_id="m1", **fields):
    part = new_text_part(said) if isinstance(said, str) else new_data_part(said)
    return Message(message_id=message_id, role=Role.ROLE_USER, parts=[part], **fields)


async def sent(agent, *args, config=None, **fields):
    request = SendMessageRequest(message=message(*args, **fields), configuration=config)
    return [each async for each in agent.send_message(request)]


async def test_a_task_asks_is_answered_streamed_and_told_by_a_server_that_was_started_anew(
    tmp_path,
):
    where = tmp_path / "runs.db"
    async with served({"town": team()}, where) as client, agent_of(client) as agent:
        first = await sent(agent, "Paint the hall.", context_id="c1")
        assert first[0].task.context_id == "c1"
        task = first[0].task.id
        assert first[-1].status_update.status.state == ASKS
        assert "Which colour?" in first[-1].status_update.status.message.parts[0].text
        # Sent again, it is the same task; the next one is of its own.
        assert (await sent(agent, "Paint the hall.", context_id="c1"))[0].task.id == task
        assert (await sent(agent, "Paint the hall.", "m2"))[0].task.id != task
    async with served({"town": team()}, where) as client, agent_of(client) as agent:
        kept = await agent.get_task(GetTaskRequest(id=task))
        assert (kept.status.state, kept.history[0].parts[0].text) == (ASKS, "Paint the hall.")
        followed = [each async for each in agent.subscribe(SubscribeToTaskRequest(id=task))]
        assert followed[-1].status_update.status.state == ASKS
        parts = await sent(agent, "blue", "m3", task_id=task)
        chunks = [p.artifact_update for p in parts if p.WhichOneof("payload") == "artifact_update"]
        *_, answer, file = chunks
        assert answer.last_chunk
        assert answer.artifact.parts[0].text == "The hall is painted."
        assert (file.artifact.name, file.artifact.description) == ("hall.txt", "The hall")
        assert dict(file.artifact.parts[0].data.struct_value)["mediaType"] == "text/plain"
        assert len(chunks) > 2
        assert parts[-1].status_update.status.state == DONE
        # An answer that comes twice is one.
        assert (await sent(agent, "blue", "m3", task_id=task))[0].task.status.state == DONE
        ended = await agent.get_task(GetTaskRequest(id=task, history_length=0))
        assert (ended.artifacts[0].parts[0].text, len(ended.history)) == ("The hall is painted.", 0)
        run = (await client.get(f"/runs/{task}")).json()
        assert "blue" in run["steps"][0]["result"]
        for wrong in (
            sent(agent, "red", "m4", task_id=task),
            agent.cancel_task(CancelTaskRequest(id=task)),
            anext(agent.subscribe(SubscribeToTaskRequest(id=task))),
        ):
            with pytest.raises(A2AError, match=r"task is over|takes no message"):
                await wrong


async def check_lists(agent, gone, asks):
    """See that tasks are listed page by page, and those that are asked for alone."""

    async def listed(**fields):
        found = await agent.list_tasks(ListTasksRequest(**fields))
        return [each.id for each in found.tasks], found.total_size, found.next_page_token

    assert await listed(page_size=1) == ([asks], 2, asks)
    assert await listed(page_size=1, page_token=asks) == ([gone], 2, "")
    assert await listed(context_id="c1") == ([gone], 1, "")
    assert await listed(status=ASKS, page_size=1) == ([asks], 1, asks)
    assert await listed(status=TaskState.TASK_STATE_CANCELED) == ([gone], 1, "")
    assert await listed(status_timestamp_after=datetime(2200, 1, 1, tzinfo=UTC)) == ([], 0, "")


async def test_a_task_waits_to_be_decided_cancelled_and_listed_without_a_stream():
    async with (
        served({"town": team(approval="plan")}) as client,
        agent_of(client, streaming=False) as agent,
    ):
        (asked,) = await sent(agent, "Paint the hall.", context_id="c1")
        task = asked.task
        assert "- [ ] 1. Paint the hall" in task.status.message.parts[0].text
        with pytest.raises(A2AError, match="not a decision"):
            await sent(agent, "Looks interesting", "m2", task_id=task.id)
        looser = {"action": "edit", "plan": "- [ ] 1. Paint the hall @painter (retries 9)\n"}
        for _ in range(2):
            # What could not be used is no answer that came before.
            with pytest.raises(A2AError, match="retries"):
                await sent(agent, {"plan": looser}, "looser", task_id=task.id)
        (asked,) = await sent(agent, {"plan": {"action": "approve"}}, "m3", task_id=task.id)
        assert "Which colour?" in asked.task.status.message.parts[0].text
        gone = await agent.cancel_task(CancelTaskRequest(id=task.id))
        assert gone.status.state == TaskState.TASK_STATE_CANCELED
        with pytest.raises(A2AError, match="takes no message"):
            await sent(agent, "blue", "m4", task_id=task.id)
        # At no other door either: to those who cancelled it, it is over.
        for act, body in (
            ("answers", {"answers": {"1": "blue"}}),
            ("resume", {}),
            ("messages", {"text": "Hurry."}),
            ("skip", {"step": 1}),
        ):
            told = await client.post(f"/runs/{task.id}/{act}", json=body)
            assert told.status_code in (400, 409, 422), told.text
            assert "was cancelled" in told.json()["detail"], told.text
            assert "Begin a new run" in told.json()["detail"]
        # Nor is it in the lists of those that somebody has to answer.
        asked = (await client.get("/runs", params={"outcome": "waiting"})).json()["runs"]
        assert asked == []
        assert (await client.get(f"/runs/{task.id}")).json()["outcome"] == "interrupted"
        same = await agent.get_task(GetTaskRequest(id=task.id))
        assert same.status.state == TaskState.TASK_STATE_CANCELED
        at_once = SendMessageConfiguration(return_immediately=True)
        (other,) = await sent(agent, "Paint the hall.", "m5", config=at_once)
        await rested(client, other.task.id)
        await check_lists(agent, task.id, other.task.id)
        with pytest.raises(A2AError, match="something else"):
            await sent(agent, "red", "m3", task_id=task.id)


async def streams_left(client):
    """Wait until no stream is open any more."""
    async with asyncio.timeout(10):
        while True:
            if "replan_open_streams 0.0" in (await client.get("/metrics")).text:
                return


def held_up(at_work, leave):
    """A team whose work goes on once it is let."""

    async def paint(_):
        at_work.set()
        await leave.wait()
        return "painted"

    member = Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure")
    model = ScriptedModel({"think": always(PLAN), "feedback": END})
    return Team(host=Host(model=model), specialists=[member])


async def test_a_task_at_work_is_cancelled_left_by_who_follows_it():
    at_work, leave = asyncio.Event(), asyncio.Event()
    slow = held_up(at_work, leave)
    version = {"A2A-Version": "1.0"}
    async with served({"town": slow}, grace=0.1) as client, agent_of(client) as agent:
        # Whoever leaves in the middle frees the seat, and takes nothing from the run.
        parts = agent.send_message(SendMessageRequest(message=message("Paint the hall.")))
        task = (await anext(parts)).task.id
        await at_work.wait()
        assert "replan_open_streams 1.0" in (await client.get("/metrics")).text
        await parts.aclose()
        asked = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task}}
        async with client.stream("POST", "/a2a/town", json=asked, headers=version) as stream:
            assert "TASK_STATE_WORKING" in await anext(stream.aiter_lines())
        await streams_left(client)
        working = await agent.get_task(GetTaskRequest(id=task))
        assert working.status.state == TaskState.TASK_STATE_WORKING
        with pytest.raises(A2AError, match="no message to it"):
            await sent(agent, {"colour": "blue"}, "m2", task_id=task)
        follows = agent.subscribe(SubscribeToTaskRequest(id=task))
        await anext(follows)
        gone = await agent.cancel_task(CancelTaskRequest(id=task))
        assert gone.status.state == TaskState.TASK_STATE_CANCELED
        ended = [each async for each in follows][-1]
        assert ended.status_update.status.state == TaskState.TASK_STATE_CANCELED
        leave.set()
        with pytest.raises(A2AError, match="takes no message"):
            await sent(agent, "go on", "m3", task_id=task)
        assert len((await agent.list_tasks(ListTasksRequest())).tasks) == 1


async def test_what_is_said_to_a_task_that_was_stopped_reaches_its_host():
    at_work, leave = asyncio.Event(), asyncio.Event()
    slow = held_up(at_work, leave)
    async with served({"town": slow}, grace=0.1) as client, agent_of(client) as agent:
        parts = agent.send_message(SendMessageRequest(message=message("Paint the hall.")))
        task = (await anext(parts)).task.id
        await at_work.wait()
        await client.post(f"/runs/{task}/stop", json={"force": True})
        stopped = [each async for each in parts][-1].status_update.status
        assert (stopped.state, "told to the host" in str(stopped.message)) == (ASKS, True)
        leave.set()
        for _ in range(2):
            told = await sent(agent, "Use green paint alone.", "m2", task_id=task)
            assert told[-1].status_update.status.state == DONE
        judged = [call for call in slow.host.model.calls if call.node == "feedback"]
        assert "Use green paint alone." in str(judged[-1].messages)
        events = (await client.get(f"/runs/{task}/events")).json()["events"]
        steered = [each for each in events if each["type"] == "run_steered"]
        assert [each["status"] for each in steered] == ["taken"]


CREW = """\
import time
from pathlib import Path

from replan import ask_user


def ask(context):
    return f"It is {ask_user('Which colour?')}."


def work(context):
    if not Path("go").exists():
        Path("begun").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    return "Done."
"""
ASKER = """\
host: {model: host}
models: {host: {model: 'openai:scripted', base_url: URL, api_key_env: NO_KEY}}
specialists:
  - {name: painter, intended_use: Paints., run: 'painters_of_a_task:ask', effects: pure}
  - {name: builder, intended_use: Builds., run: 'painters_of_a_task:work', effects: pure}
"""


def planned(request):
    """Plan by who is named in the request; the second round is the last one."""
    said = str(request.messages[-1])
    if request.call.node == "feedback":
        return "---\nverdict: complete\n---\nAll is done."
    name = "builder" if "@builder" in said else "painter"
    return f"---\ncomplexity: complex\n---\n- [ ] 1. It @{name}\n"


async def test_a_server_that_is_killed_leaves_its_tasks_to_another_one(  # noqa: PLR0915 - two lives
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "painters_of_a_task.py").write_text(CREW)
    env = {**os.environ, "REPLAN_TOKEN": OWNER, "NO_KEY": "none"}
    words = ["-m", "replan", "serve", "town.yaml", "--port", "0", "--storage", "runs.db"]

    @asynccontextmanager
    async def server():
        reads, writes = os.pipe()
        with os.fdopen(reads) as errors, warm.Process(words, stderr=writes, env=env) as process:
            os.close(writes)
            told = await asyncio.to_thread(errors.readline)
            address = told.strip().rpartition(" ")[2]
            async with httpx.AsyncClient(base_url=address) as client, agent_of(client) as agent:
                yield process, agent

    with OpenAIServer(planned) as models:
        (tmp_path / "town.yaml").write_text(ASKER.replace("URL", models.base_url))
        async with server() as (process, agent):
            waits = (await sent(agent, "Let @painter do it."))[0].task.id
            follows = agent.send_message(
                SendMessageRequest(message=message("Let @builder do it.", "m2"))
            )
            works = (await anext(follows)).task.id
            async with asyncio.timeout(30):
                while not (tmp_path / "begun").exists():  # noqa: ASYNC110 - by another process
                    await asyncio.sleep(0.02)
            process.kill()
            with pytest.raises((A2AError, httpx.HTTPError)):
                [each async for each in follows]
        (tmp_path / "go").touch()
        async with server() as (_, agent):
            for task, said in ((waits, "blue"), (works, "Go on.")):
                stood = await agent.get_task(GetTaskRequest(id=task))
                assert stood.status.state == ASKS
                told = await sent(agent, said, said, task_id=task)
                assert told[-1].status_update.status.state == DONE
                ended = await agent.get_task(GetTaskRequest(id=task))
                assert ended.artifacts[0].parts[0].text == "All is done."
