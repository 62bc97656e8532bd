"""A run says the same at every door, after a kill, a question, a revision and failures."""

import asyncio
import json
import re
import signal
import sys
from datetime import datetime

import pytest
from a2a.types.a2a_pb2 import GetTaskRequest
from typer.testing import CliRunner

import warm
from doors import CREW, TEAM, asked, events_of, live, script, state_of
from pages import shown
from replan import open_runtime, open_storage
from replan.cli.main import app
from replan.testing import OpenAIServer
from served import agent_of, served, tools_of

HAPPENED = {"specialist_retried", "input_requested", "run_resumed", "answer_received"}
RESTS = ("run_stopped", "task_completed")


async def told(*words):
    done = await asyncio.to_thread(CliRunner().invoke, app, words)
    assert done.exit_code == 0, done.output
    return done.output


async def streamed(client, run_id):
    """The events of a run as they are streamed, and the last word of the stream."""
    stream = {"Accept": "text/event-stream"}
    async with client.stream("GET", f"/runs/{run_id}/events", headers=stream) as answer:
        lines = [line async for line in answer.aiter_lines() if line.startswith("data: ")]
    *events, idle = (json.loads(line.removeprefix("data: ")) for line in lines)
    return events, idle


class Doors:
    """What each door says of a run that rests."""

    async def look(self, client, run_id, front_end, where):
        self.run = (await client.get(f"/runs/{run_id}")).json()
        self.listed = (await client.get("/runs")).json()["runs"][0]
        page = (await client.get(f"/runs/{run_id}/events", params={"limit": 1000})).json()
        self.events, self.idle = await streamed(client, run_id)
        self.shown = json.loads(await told("show", run_id, "--json", "--storage", where))
        assert page["events"] == self.events == self.shown["events"]
        self.in_list = json.loads(await told("runs", "--json", "--storage", where))
        async with agent_of(client) as agent:
            self.task = await agent.get_task(GetTaskRequest(id=run_id))
        async with tools_of(client) as mcp:
            self.tool = await mcp.call_tool("town", {"task": "Go on."}, request_state=run_id)
        self.front_end = front_end
        self.metrics = (await client.get("/metrics")).text

    def metric(self, name, **labels):
        """The sum of a metric over what has these labels."""
        lines = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", self.metrics, re.MULTILINE)
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(float(n) for found, n in lines if all(each in found for each in wanted))

    def check(self, outcome, steps):
        self.check_status(outcome)
        self.check_steps(steps)
        self.check_usage()
        self.check_times()

    def check_answer(self, text):
        assert self.task.artifacts[0].parts[0].text == text
        assert self.tool.content[0].text == text
        assert self.run["answer"] == self.shown["answer"] == text

    def check_status(self, outcome):
        assert {
            self.run["outcome"],
            self.listed["outcome"],
            self.idle["outcome"],
            self.shown["outcome"],
            self.in_list["outcome"],
            self.task.metadata["replan"]["outcome"],
            self.tool.structured_content["outcome"],
            self.front_end[-1].result["outcome"],
        } == {outcome}
        assert self.metric("replan_runs_total", outcome=outcome) == 1

    def check_steps(self, expected):
        assert {each["id"]: each["status"] for each in self.run["steps"]} == expected
        assert {each["step"]: each["status"] for each in self.shown["steps"]} == expected
        state = state_of(self.front_end)["steps"]
        assert {each["id"]: each["status"] for each in state} == expected

    def check_usage(self):
        usage, shown = self.run["usage"], self.shown["usage"]
        ends = [each for each in self.events if each["type"] == "model_completed"]
        tokens = [sum(each[f"{name}put_tokens"] or 0 for each in ends) for name in ("in", "out")]
        assert usage == self.in_list["usage"] == {name: shown[name] for name in usage}
        assert usage["calls"] == len(ends)
        assert [usage["input_tokens"], usage["output_tokens"]] == tokens
        assert usage["tokens"] == sum(tokens)
        for name, number in zip(("input_tokens", "output_tokens"), tokens, strict=True):
            assert sum(each[name] for each in shown["by"].values()) == number
        (front_end,) = self.front_end[-1].usage
        assert [front_end.input_tokens, front_end.output_tokens] == tokens
        assert usage["cost"] == pytest.approx(sum(each["cost"] for each in ends))
        assert usage["unfinished_calls"] == 1
        charged = self.shown["spent"]["run"]
        assert usage["calls"] + usage["unfinished_calls"] == charged["calls"]
        assert usage["cost"] + usage["unfinished_cost"] == pytest.approx(charged["cost"])

    def check_times(self):
        began, seen = (datetime.fromisoformat(self.run[n]) for n in ("started_at", "last_seen_at"))
        took = (seen - began).total_seconds()
        assert self.shown["seconds"] == pytest.approx(took, abs=0.002)
        assert self.in_list["seconds"] == pytest.approx(took, abs=0.002)
        assert self.task.status.timestamp.ToDatetime(seen.tzinfo) == seen

    def check_metrics(self):
        """The process counts what happened since it took the run up."""
        kinds = [each["type"] for each in self.events]
        here = self.events[kinds.index("run_resumed") :]
        ends = [each for each in here if each["type"] == "model_completed"]
        assert self.metric("replan_model_call_seconds_count") == len(ends)
        for kind in ("input", "output"):
            tokens = sum(each[f"{kind}_tokens"] or 0 for each in ends)
            assert self.metric("replan_model_tokens_total", kind=kind) == tokens
        cost = sum(each["cost"] for each in ends)
        assert self.metric("replan_model_cost_total") == pytest.approx(cost)
        steps = [each["step_seconds"] for each in here if each["type"] == "specialist_completed"]
        taken = self.metric("replan_step_seconds_sum", status="completed")
        assert taken == pytest.approx(sum(steps))
        rests = [each.get("run_seconds") or each.get("seconds") for each in here]
        rests = [n for n, k in zip(rests, kinds[-len(here) :], strict=True) if k in RESTS]
        assert self.metric("replan_run_seconds_sum") == pytest.approx(sum(rests))
        assert rests == sorted(rests)


@pytest.fixture
async def killed(tmp_path, monkeypatch):
    """The folder of a run whose process was killed while it called a model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    # That of another test is another file.
    monkeypatch.delitem(sys.modules, "crew_at_doors", raising=False)
    monkeypatch.setenv("NO_KEY", "none")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "crew_at_doors.py").write_text(CREW)
    with OpenAIServer(script(tmp_path)) as models:
        (tmp_path / "town.yaml").write_text(TEAM.replace("URL", models.base_url))
        ended = await asyncio.to_thread(warm.call, live, tmp_path)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        (tmp_path / "again").touch()
        yield tmp_path


async def test_all_doors_say_the_same_of_a_run(killed):
    where, doors = str(killed / "runs.db"), Doors()
    async with served({"town": "town.yaml"}, where) as client:
        (listed,) = (await client.get("/runs")).json()["runs"]
        assert listed["outcome"] == "interrupted"
        await client.post(f"/runs/{listed['run_id']}/resume", json={})
        # The same request follows the same run.
        front_end = await events_of(client, asked("Buy gold."))
        await doors.look(client, listed["run_id"], front_end, where)
        doors.check("waiting", {1: "completed", 2: "completed", 3: "completed", 4: "waiting"})
        (question,) = front_end[-1].outcome.interrupts
        answer = {"interruptId": question.id, "status": "resolved", "payload": "blue"}
        front_end = await events_of(client, asked(resume=[answer]))
        await doors.look(client, listed["run_id"], front_end, where)
    doors.check("completed", dict.fromkeys(range(1, 6), "completed"))
    doors.check_metrics()
    doors.check_answer("All is done.")
    assert {each["type"] for each in doors.events} >= HAPPENED
    assert doors.run["usage"]["uncounted_cost"] > 0
    await check_program_and_page(doors, where)


async def test_the_result_of_a_run_that_goes_on_counts_attempts_that_were_killed(killed):
    async with (
        open_storage(str(killed / "runs.db")) as storage,
        open_runtime("town.yaml", storage=storage) as runtime,
    ):
        (record,) = await storage.runs.find("")
        asked = await runtime.resume(record.run_id)
        result = await (await runtime.answer(record.run_id, "blue"))
        calls = (await runtime.get(record.run_id)).calls
    assert (asked.outcome, result.outcome) == ("waiting", "completed")
    assert asked.usage.by["(cut off)"].total_tokens > 0
    assert result.usage.input_tokens == calls.input_tokens
    assert result.usage.output_tokens == calls.output_tokens


async def check_program_and_page(doors, where):
    run_id, charged = doors.run["run_id"], doors.shown["spent"]["run"]
    async with open_storage(where) as storage:
        async with open_runtime("town.yaml", storage=storage) as runtime:
            result = await runtime.wait(run_id)
        async with shown({"town": "town.yaml"}, storage) as client:
            page = (await client.get(f"/runs/{run_id}")).text
    assert (result.outcome, result.text) == (doors.run["outcome"], doors.run["answer"])
    assert result.usage.calls == charged["calls"]
    assert result.usage.cost == pytest.approx(charged["cost"])
    tokens = [result.usage.input_tokens, result.usage.output_tokens, result.usage.total_tokens]
    assert tokens == [doors.run["usage"][f"{name}tokens"] for name in ("input_", "output_", "")]
    text = await told("show", run_id, "--storage", where)
    (used,) = re.findall(r"^used (.*)$", text, re.MULTILINE)
    assert used.split(",")[0] in page
