"""Two runs on one thread of the server, and a process beside it on the same storage."""

from contextlib import aclosing
from pathlib import Path

import pytest
from langgraph_sdk import get_client

from replan import ThreadBusyError, open_storage, run
from replan.assembly import team_graph

WORK = '''\
"""A specialist that works until a file says that it may end, and notes what it began."""

import asyncio
from pathlib import Path

HERE = Path(__file__).parent


async def works(context):
    step = context.task_description
    with (HERE / "begun").open("a") as begun:
        begun.write(f"{step}\\n")
    while step.startswith("Wait") and not (HERE / "go on").exists():
        await asyncio.sleep(0.01)
    return f"done: {step}"
'''
TEAM = """\
host:
  model: offline
specialists:
  - name: worker
    intended_use: Works.
    run: studio_working_team:works
    effects: keyed
"""
LONG = "- [ ] 1. Begin @worker\n- [ ] 2. Wait @worker (after 1)\n"
SHORT = "- [ ] 1. Other work @worker\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("multitask")
    (folder / "studio_working_team.py").write_text(WORK, "utf-8")
    (folder / "team.yaml").write_text(TEAM, "utf-8")
    return folder


@pytest.fixture(scope="module")
def url(folder, serve_studio) -> str:
    return serve_studio(folder, {"REPLAN_TEAM": str(folder / "team.yaml")})


@pytest.fixture(autouse=True)
def fresh(folder):
    """Nothing has begun, and what waits goes on waiting."""
    for name in ("begun", "go on"):
        (folder / name).unlink(missing_ok=True)
    (folder / "begun").touch()
    return folder


def begun(folder):
    return (folder / "begun").read_text().splitlines()


def asked(said, plan):
    return {"messages": [{"role": "user", "content": said}], "plan": plan}


async def at_work(client, folder):
    """Begin a run on a new thread; it waits in its second step."""
    thread = (await client.threads.create())["thread_id"]
    stream = client.runs.stream(thread, "replan", input=asked("First", LONG), stream_mode="custom")
    run_id = None
    async with aclosing(stream):
        async for part in stream:
            run_id = run_id or part.data.get("run_id")
            if part.data.get("type") == "specialist_invoked" and part.data.get("step_id") == 2:
                break
    assert begun(folder) == ["Begin", "Wait"]
    return thread, run_id


async def said(client, thread):
    values = (await client.threads.get_state(thread))["values"]
    return [each["content"] for each in values["messages"] if each["type"] == "human"], values


async def test_a_run_that_is_rolled_back_leaves_nothing_on_the_thread(url, folder):
    async with get_client(url=url) as client:
        thread, _ = await at_work(client, folder)
        second = await client.runs.create(
            thread, "replan", input=asked("Second", SHORT), multitask_strategy="rollback"
        )
        await client.runs.join(thread, second["run_id"])
        messages, values = await said(client, thread)
        assert (messages, values["outcome"]) == (["Second"], "completed")
        assert [each["status"] for each in await client.runs.list(thread)] == ["success"]
        results = [set(each["results"]["results"]) for each in values["execution_history"]]
        assert results == [{"1/worker"}]
    assert begun(folder) == ["Begin", "Wait", "Other work"]


async def test_a_run_that_is_interrupted_keeps_what_it_finished(url, folder):
    async with get_client(url=url) as client:
        thread, _ = await at_work(client, folder)
        second = await client.runs.create(
            thread, "replan", input=asked("Second", SHORT), multitask_strategy="interrupt"
        )
        await client.runs.join(thread, second["run_id"])
        messages, values = await said(client, thread)
        assert (messages, values["outcome"]) == (["First", "Second"], "completed")
        kept = [each["results"]["results"] for each in values["execution_history"]]
        texts = [result["result"]["content"] for each in kept for result in each.values()]
        assert texts == ["done: Begin", "done: Other work"]


async def test_a_process_beside_the_server_leaves_a_thread_alone_that_is_worked_on(url, folder):
    where = folder / ".langgraph_api" / "replan.sqlite"
    async with get_client(url=url) as client:
        thread, _ = await at_work(client, folder)
        config = {"configurable": {"thread_id": thread}}
        async with open_storage(where) as storage:
            graph = team_graph(folder / "team.yaml", storage=storage)
            with pytest.raises(ThreadBusyError):
                await run(graph, None, config=config)
            (folder / "go on").touch()
            (first,) = await client.runs.list(thread)
            await client.runs.join(thread, first["run_id"])
            assert (await run(graph, None, config=config)).state["outcome"] == "completed"
    assert begun(folder) == ["Begin", "Wait"]
