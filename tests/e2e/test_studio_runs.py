"""Runs in Studio: questions, approvals, two runs on a thread, a process on the same storage."""

import asyncio
import re
import shutil
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph_sdk import get_client

import mcp_servers
from replan import open_storage, run, waiting_for
from replan.assembly.graphs import team_graph
from replan.errors import ThreadBusyError
from replan.testing import OpenAIServer

PATIENCE = 60.0
TEAM = Path(__file__).with_name("studio_team")
MIXED = """\
- [ ] 1. Wait @worker
- [ ] 2. Which colour? @asker
- [ ] 3. First @twin
- [ ] 4. Second @twin
- [ ] 5. Both @joiner (after 1, 2)
- [ ] 6. Third @twin
"""
LONG = "- [ ] 1. Begin @worker\n- [ ] 2. Wait @worker (after 1)\n"
SHORT = "- [ ] 1. Other work @worker\n"
QUESTIONS = """\
- [ ] 1. Which colour? @asker
- [ ] 2. Which size? @asker
- [ ] 3. Aside @joiner
- [ ] 4. Both @joiner (after 1, 2)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    shutil.copytree(TEAM, folder, dirs_exist_ok=True)
    return folder


def call(tool, **arguments):
    return AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": "call"}])


@pytest.fixture(scope="module")
def caller():
    """A model that asks twice who serves it, and then orders something."""
    who = call("shop__own_process")
    order = call("shop__order", name="shoes")
    # Not a strict script: each worker has this server, and only one of them runs the test.
    replies = iter([who, "First.", who, "Second.", order, "Ordered."])
    with OpenAIServer(lambda _: next(replies)) as model:
        yield model


@pytest.fixture(scope="module")
def url(folder, caller, serve_studio) -> str:
    team = (folder / "team.yaml").read_text("utf-8").replace("ADDRESS", caller.base_url)
    for name, value in (("PYTHON", sys.executable), ("PROGRAM", mcp_servers.PROGRAM)):
        team = team.replace(name, str(value))
    (folder / "team.yaml").write_text(team.replace("FOLDER", str(folder)), "utf-8")
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


async def interrupted(client: Any, thread: str) -> list[Any]:
    state = await client.threads.get_state(thread)
    return [interrupt for task in state["tasks"] for interrupt in task["interrupts"]]


async def resume(client: Any, thread: str, value: object, **options: Any) -> Any:
    return await client.runs.wait(thread, "replan", command={"resume": value}, **options)


async def test_questions_are_shown_and_answered_one_by_one_in_any_order(url):
    async with get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        state = await client.runs.wait(thread, "replan", input={"plan": QUESTIONS})
        asked = waiting_for(await interrupted(client, thread))
        assert asked == waiting_for(state)
        assert [(q.key, q.text) for q in asked] == [
            ("1/asker/1", "Which colour?"),
            ("2/asker/1", "Which size?"),
        ]
        assert set(state["current_specialist_results"]) == {"3/joiner"}
        # A text alone does not say which question it answers.
        await resume(client, thread, "large")
        (again,) = await interrupted(client, thread)
        assert "It is not clear which question" in again["value"]["problem"]
        assert [each["description"] for each in again["value"]["action_requests"]] == [
            "Which colour?",
            "Which size?",
        ]
        assert "decisions" in again["response_schema"]["anyOf"][1]["properties"]
        await resume(client, thread, {"2/asker/1": "large"})
        (left,) = waiting_for(await interrupted(client, thread))
        assert left.key == "1/asker/1"
        # New limits hold from there on, where they are no looser than the team's.
        new = {"limits": {"step_retries": 1, "max_model_calls": 1_000_000}}
        state = await resume(client, thread, "blue", context=new)
    assert state["outcome"] == "completed"
    assert state["settings"]["limits"]["step_retries"] == 1
    assert state["settings"]["limits"]["max_model_calls"] == 200
    texts = {
        key: result["result"]["content"]
        for key, result in state["current_specialist_results"].items()
    }
    assert texts == {
        "1/asker": "heard blue",
        "2/asker": "heard large",
        "3/joiner": "done",
        "4/joiner": "heard blue and heard large",
    }
    assert {q["answer"] for q in state["questions"].values()} == {"blue", "large"}


async def test_a_plan_is_shown_changed_with_a_mistake_and_then_run_as_the_person_wrote_it(url):
    context = {"approval": "always"}
    plan = "- [ ] 1. One @joiner\n- [ ] 2. Two @joiner (after 1)\n"
    async with get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        state = await client.runs.wait(thread, "replan", input={"plan": plan}, context=context)
        (asked,) = waiting_for(state)
        assert (asked.kind, asked.text) == ("plan", plan)
        assert asked.details == {"version": 1, "reason": "A plan was handed in.", "changes": ""}
        assert asked.fingerprint
        wrong = {"action": "edit", "plan": plan.replace("after 1", "after 7")}
        # Alone it does not say which plan it is about.
        state = await resume(client, thread, wrong)
        assert "whole key of what it is about: 'plan'" in waiting_for(state)[0].problem
        state = await resume(client, thread, {"plan": wrong})
        assert "line 2" in waiting_for(state)[0].problem
        state = await resume(client, thread, {"plan": plan.replace("Two", "Second")})
    assert state["outcome"] == "completed"
    assert state["current_plan"]["steps"][1]["description"] == "Second"
    assert [update["by"] for update in state["current_plan"]["update_history"]] == ["person"]


async def begun_and_asked(client: Any, thread: str, most: int) -> tuple[str, set[int], set[int]]:
    """Begin a run, and go away when so many steps ask; the run, what began, and what asks."""
    asking, begun, run_id = set[int](), set[int](), ""
    told = list[Any]()
    given = {"input": {"plan": MIXED}, "stream_mode": "custom", "on_disconnect": "continue"}
    try:
        async with (
            asyncio.timeout(PATIENCE),
            aclosing(client.runs.stream(thread, "replan", **given)) as stream,
        ):
            async for part in stream:
                run_id = part.data.get("run_id") or run_id
                told.append(part.data)
                if part.data.get("type") == "specialist_invoked":
                    begun.add(part.data["step_id"])
                if part.data.get("type") == "input_requested":
                    asking.add(part.data["step_id"])
                if len(asking) == most:
                    break
    except TimeoutError:
        pytest.fail(f"Of {most} steps {asking} ask, {begun} have begun; it was told: {told}")
    return run_id, begun, asking


async def test_steps_that_ask_are_told_from_those_that_run_and_answered_by_interrupt(url, folder):
    async with get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        run_id, begun, asking = await begun_and_asked(client, thread, 4)
        assert (begun - asking, asking) == ({1}, {2, 3, 4, 6})
        assert (await client.threads.get(thread))["status"] == "busy"
        (folder / "go on").touch()
        await client.runs.join(thread, run_id)
        state = await client.threads.get_state(thread)
        # The tasks of a round stand in the order in which its steps were sent.
        sent = [each["step_id"] for each in state["values"]["dispatched"]]
        asks = {sent[t["path"][1]]: i["id"] for t in state["tasks"] for i in t["interrupts"]}
        assert set(asks) == {3, 4, 6}
        await resume(client, thread, {asks[4]: "one"})
        left = {each["id"] for each in await interrupted(client, thread)}
        assert left == {asks[3], asks[6]}
        await resume(client, thread, {asks[3]: "two", asks[6]: "three"})
        # Now that no step runs, the host asks for those that asked it.
        (own,) = await interrupted(client, thread)
        state = await resume(client, thread, {own["id"]: {"2/asker/1": "red"}})
    assert state["outcome"] == "completed"
    results = state["current_specialist_results"].items()
    texts = {key: result["result"]["content"] for key, result in results}
    heard = ("3/twin", "4/twin", "6/twin", "2/asker")
    assert [texts[key] for key in heard] == ["heard two", "heard one", "heard three", "heard red"]


def drawn_by_agent_inbox(thread: Any) -> tuple[str, Any, set[str]]:
    """What Agent Inbox draws of a thread: the first action of its first interrupt."""
    value = next(iter(thread["interrupts"].values()))[0]["value"]
    assert isinstance(value["action_requests"], list)
    first, config = value["action_requests"][0], value["review_configs"][0]
    return first["name"], first["args"], set(config["allowed_decisions"])


def is_drawn_by_agent_chat_ui(interrupt: Any) -> bool:
    """Whether Agent Chat UI has buttons for it: its actions have names and mappings of args."""
    actions, configs = interrupt["value"]["action_requests"], interrupt["value"]["review_configs"]
    return (
        bool(actions and configs)
        and all(isinstance(a["name"], str) and isinstance(a["args"], dict) for a in actions)
        and all(isinstance(c["action_name"], str) for c in configs)
        and all(isinstance(c["allowed_decisions"], list) for c in configs)
    )


PAINTED = "- [ ] 1. Aside @joiner\n"
EDITED = {"plan": "- [ ] 1. Changed @joiner\n"}


@pytest.mark.parametrize(
    ("given", "outcome", "step"),
    [
        # A reason goes to the host, which asks about its plan again.
        ({"decisions": [{"type": "reject", "message": "No."}]}, None, "Aside"),
        ({"decisions": [{"type": "approve"}]}, "completed", "Aside"),
        (
            {
                "decisions": [
                    {"type": "edit", "edited_action": {"name": "run_plan", "args": EDITED}}
                ]
            },
            "completed",
            "Changed",
        ),
        ({"decisions": [{"type": "reject"}]}, "rejected", "Aside"),
    ],
)
async def test_what_inboxes_draw_of_a_plan_and_send_is_taken(url, given, outcome, step):
    context = {"approval": "always", "allow_dynamic_update": False}
    async with get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "replan", input={"plan": PAINTED}, context=context)
        shown = drawn_by_agent_inbox(await client.threads.get(thread))
        assert shown == ("run_plan", {"plan": PAINTED}, {"approve", "edit", "reject"})
        (interrupt,) = await interrupted(client, thread)
        assert is_drawn_by_agent_chat_ui(interrupt)
        state = await resume(client, thread, given)
    assert (state["outcome"], state["current_plan"]["steps"][0]["description"]) == (outcome, step)


async def test_what_inboxes_draw_of_questions_is_answered_one_after_the_other(url):
    async with get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        await client.runs.wait(thread, "replan", input={"plan": QUESTIONS})
        shown = drawn_by_agent_inbox(await client.threads.get(thread))
        assert shown == ("answer", {"answer": ""}, {"respond", "edit"})
        assert all(map(is_drawn_by_agent_chat_ui, await interrupted(client, thread)))
        edited = {"name": "answer", "args": {"answer": "blue"}}
        await resume(client, thread, {"decisions": [{"type": "edit", "edited_action": edited}]})
        (left,) = waiting_for(await interrupted(client, thread))
        assert left.key == "2/asker/1"
        told = {"decisions": [{"type": "respond", "message": "large"}]}
        state = await resume(client, thread, told)
    assert state["outcome"] == "completed"
    assert {q["answer"] for q in state["questions"].values()} == {"blue", "large"}


async def test_a_job_asks_in_studio_with_its_view_until_it_is_done(url):
    async with get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        given = {"input": {"plan": "- [ ] 1. Book @booker\n"}, "stream_mode": "custom"}
        told, asked = list[Any](), list[Any]()
        for answer in ("2026-05-01", "4711", "yes", None):
            told += [part.data async for part in client.runs.stream(thread, "replan", **given)]
            waiting = waiting_for(await interrupted(client, thread))
            asked += waiting
            given = {"command": {"resume": answer}, "stream_mode": "custom"}
        values = (await client.threads.get_state(thread))["values"]
    assert [each.text.split("\n")[:2] for each in asked] == [
        ["On which day?", "I also need: pin."],
        ["Understood: day: 2026-05-01.", "Which PIN?"],
        ["Please confirm: book, with", "- day: 2026-05-01"],
    ]
    assert asked[2].details["collected"] == {"day": "2026-05-01", "pin": "***"}
    assert (asked[1].details["missing"], asked[2].details["stage"]) == (["pin"], "acting")
    result = values["current_specialist_results"]["1/booker"]
    assert result["result"]["content"] == "Done: book.\nResult: booked 2026-05-01 with ***"
    assert (values["outcome"], result["output"]["status"]) == ("completed", "completed")
    # An id, a digest or a time may have these digits in it by chance.
    assert not re.search(r"(?<![0-9a-f.])4711(?![0-9a-f])", str([told, asked, result]))


async def test_a_tool_server_lives_as_long_as_the_process_and_asks_in_studio(url, folder, caller):
    buying = asked("Buy", "- [ ] 1. Buy shoes @buyer\n")
    async with get_client(url=url) as client:
        for _ in range(2):
            thread = (await client.threads.create())["thread_id"]
            values = await client.runs.wait(thread, "replan", input=buying)
            assert values["outcome"] == "completed", values
        thread = (await client.threads.create())["thread_id"]
        waits = await client.runs.wait(thread, "replan", input=buying)
        (question,) = waiting_for(waits)
        assert question.text.startswith("The tool server shop asks: What size for shoes?")
        values = await client.runs.wait(thread, "replan", command={"resume": "42"})
        assert values["outcome"] == "completed", values
    told = [message.text for message in told_of_calls(caller)]
    assert len(set(told[:2])) == 1
    assert told[2:] == ["ordered shoes in 42"]
    assert mcp_servers.calls(folder) == ["order shoes 42"]


async def test_a_tool_server_that_cannot_be_used_is_told_with_its_last_words(url):
    async with get_client(url=url) as client:
        thread = (await client.threads.create())["thread_id"]
        # Studio's server ends what blocks its loop: that, too, would be told instead.
        settings = {"limits": {"step_retries": 0, "max_rounds": 1}}
        values = await client.runs.wait(
            thread, "replan", input=asked("Visit", "- [ ] 1. Visit @guest\n"), context=settings
        )
    error = values["current_specialist_results"]["1/guest"]["error"]
    assert error.startswith("ToolServerError: tool server gone: the program ")
    assert error.endswith("it said: no licence")


def told_of_calls(model):
    """The results of tools, each as the model was told it."""
    given = (request.messages[-1] for request in model.requests)
    return [message for message in given if isinstance(message, ToolMessage)]
