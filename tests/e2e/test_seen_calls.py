"""What a run did, with whom and at what price, read from its events by who was not there."""

import asyncio
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage
from typer.testing import CliRunner

from replan import (
    Host,
    Price,
    RunSettings,
    Specialist,
    Team,
    open_runtime,
    open_storage,
)
from replan.assembly.graphs import build_graph
from replan.base.secrets.sources import learn_values
from replan.cli.main import app
from replan.log.calls import calls_of
from replan.log.fold import Fold, counts_in
from replan.log.kept_events import prompt_of, reply_of
from replan.log.run_log import RunLog
from replan.models.providers.chat_models import LangChainModels
from replan.testing import HttpFault, OpenAIServer, Reply

PLAN = "---\ncomplexity: complex\n---\n- [ ] 1. Price of gold @buyer (retries 2)\n"
END = "---\nverdict: complete\n---\nGold is dear."
KEY = "a long key of the storage"
LONG = "ounce " * 600
SECRET = "hunter2-hunter2"  # noqa: S105 - nobody's


def calling(name, **arguments):
    called = {"name": name, "args": arguments, "id": "c", "type": "tool_call"}
    return AIMessage("", tool_calls=[called])


class Market:
    """A tool that fails as often as it is told to."""

    def __init__(self, fails=0):
        self.fails = fails

    def price(self, of: str) -> str:
        """Give the price of a thing.

        Args:
            of: The thing.
        """
        self.fails -= 1
        if self.fails >= 0:
            raise ValueError(f"no quote for {of}")
        return f"42 {LONG}"


def graph_on(server, storage, *tools, **options):
    worker = Specialist("buyer", "Buys.", chat_model="openai:m", tools=tools, effects="pure")
    team = Team(Host(model="openai:m"), [worker], prices={"m": Price(input=3, output=5)}, **options)
    return build_graph(team, storage=storage, models=LangChainModels(base_url=server.base_url))


def script(*replies):
    return {"think": PLAN, "step 1": list(replies), "feedback": END}


async def events_of(runtime, run_id, *kinds):
    return [each async for each in runtime.events(run_id) if not kinds or each.type in kinds]


@pytest.fixture(params=["sqlite", "postgres"])
def where(request, tmp_path):
    if request.param == "postgres":
        return request.getfixturevalue("empty_database")
    return str(tmp_path / "runs.db")


def check_counts(events):
    """The end has the counts of all calls, for lists of runs."""
    anomalies, calls = counts_in(events[-2:])
    fold = Fold()
    for event in events:
        fold.apply(event)
    assert anomalies == fold.counts.anomalies
    # They were added up in the order in which they happened.
    assert calls.model_dump() == pytest.approx(calls_of(events).model_dump())


async def test_the_failed_tool_of_the_second_attempt_is_told_by_whoever_opens_the_storage(where):
    market = Market(fails=1)
    replies = (
        Reply(fault=HttpFault(503)),
        "---\nstatus: failed\nretry: true\n---\nThe market is closed.",
        calling("price", of="gold"),
        "---\nstatus: failed\nretry: true\n---\nI got no price.",
        calling("price", of="gold"),
        "It is 42.",
    )
    with OpenAIServer(script(*replies)) as server:
        async with (
            open_storage(where, key=KEY) as storage,
            open_runtime(graph_on(server, storage, market.price), storage=storage) as runtime,
        ):
            result = await runtime.run("Gold?", run_id="r", settings=RunSettings())
    assert result.outcome == "completed"
    with OpenAIServer({}) as server:
        async with (
            open_storage(where, key=KEY) as storage,
            open_runtime(graph_on(server, storage), storage=storage) as runtime,
        ):
            events = await events_of(runtime, "r")
            tools = await events_of(runtime, "r", "tool_completed")
            told = [(e.attempt, e.status, e.result) for e in tools]
            answers = await events_of(runtime, "r", "model_completed")
            whole = await runtime.text("r", tools[1].refs["result"])
            prompts = await prompts_of(runtime, "r")
    check_counts(events)
    assert told[0] == (2, "failed", "Error: ValueError: no quote for gold")
    assert told[1][:2] == (3, "success")
    assert whole == f"42 {LONG}"
    assert told[1][2] == f"{whole[:1000]}…"
    assert tools[0].arguments == {"of": "gold"}
    failed = [each.error for each in answers if each.error]
    assert len(failed) == 1
    assert "Error code: 503" in failed[0]
    spent = sum(each.cost for each in answers)
    assert spent == pytest.approx(result.usage.cost)
    assert sum(e.output_tokens or 0 for e in answers) == result.usage.output_tokens
    assert any("Error: ValueError: no quote for gold" in prompt for prompt in prompts)
    if not where.startswith("postgresql"):
        assert b"no quote" not in await asyncio.to_thread(Path(where).read_bytes)


async def told(*words, code=0):
    done = await asyncio.to_thread(CliRunner().invoke, app, words)
    assert done.exit_code == code, done.output
    return done.output


async def prompts_of(runtime, run_id):
    found = await events_of(runtime, run_id, "model_invoked")
    refs = {part.ref for each in found for part in each.prompt}
    return [await runtime.text(run_id, ref) for ref in refs]


@pytest.mark.one_store
async def test_a_team_that_keeps_no_prompts_leaves_none(where):
    with OpenAIServer(script("It is 42.")) as server:
        async with (
            open_storage(where) as storage,
            open_runtime(graph_on(server, storage, keep_prompts=False), storage=storage) as runtime,
        ):
            await runtime.run("Gold?", run_id="r")
            calls = await events_of(runtime, "r", "model_invoked", "model_completed")
    assert len(calls) == 6
    assert not any(prompt_of(each) or reply_of(each) for each in calls)


async def test_prompts_go_when_their_days_are_over_and_with_their_run(where):
    replies = {"think": [PLAN] * 2, "step 1": ["It is 42."] * 2, "feedback": [END] * 2}
    with OpenAIServer(replies) as server:
        async with (
            open_storage(where, keep_days=0) as storage,
            open_runtime(graph_on(server, storage), storage=storage) as runtime,
        ):
            await runtime.run("Gold?", run_id="first")
            assert None not in await prompts_of(runtime, "first")
            await runtime.run("Gold?", run_id="second")
            assert set(await prompts_of(runtime, "first")) == {None}
            assert None not in await prompts_of(runtime, "second")
            called, *_ = await events_of(runtime, "second", "model_invoked")
            ref = called.prompt[0].ref
            await storage.runs.remove("second")
            assert await storage.log.text("second", ref) is None


@pytest.mark.one_store
async def test_known_secrets_stand_in_no_prompt_and_no_argument(where):
    learn_values([SECRET])
    replies = calling("price", of=f"gold {SECRET}"), f"It is 42, {SECRET}."
    with OpenAIServer(script(*replies)) as server:
        async with (
            open_storage(where) as storage,
            open_runtime(graph_on(server, storage, Market().price), storage=storage) as runtime,
        ):
            await runtime.run("Gold?", run_id="r")
            calls = await events_of(runtime, "r")
            kept = "".join(each.written for each in calls)
            kept += "".join(await prompts_of(runtime, "r"))
    assert SECRET not in kept
    assert "gold ***" in kept
    (warned,) = (each.text for each in calls if each.type == "warning")
    assert warned.startswith("The result of step 1 holds a secret value")
    assert calls[-1].warnings == (warned,)
    timed = {name for each in calls for name, value in each if value is not None}
    assert {"step_seconds", "round_seconds", "run_seconds"} <= timed


async def test_who_stops_a_run_is_known_also_if_it_ends_before_the_request_is_on_record(
    monkeypatch,
):
    begun, ended, add = asyncio.Event(), asyncio.Event(), RunLog.add_request

    async def late(log, request, **named):
        await ended.wait()
        return await add(log, request, **named)

    async def wait(context):
        begun.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(RunLog, "add_request", late)
    team = Team("offline", [Specialist("worker", "Works.", run=wait, effects="pure")])
    async with open_runtime(team, storage=":memory:", grace=0) as runtime:
        run = await runtime.start({"plan": "- [ ] 1. Wait @worker\n"})
        await begun.wait()
        stopping = asyncio.create_task(run.stop(by="otto"))
        assert (await run).outcome == "interrupted"
        ended.set()
        await stopping
        (stopped,) = await events_of(runtime, run.run_id, "run_stopped")
    assert (stopped.reason, stopped.by) == ("interrupted", "otto")


async def test_a_run_whose_model_cannot_be_reached_tells_of_each_call_and_of_its_end(where):
    with OpenAIServer({"think": [Reply(fault=HttpFault(401, message="no such key"))]}) as server:
        async with (
            open_storage(where) as storage,
            open_runtime(graph_on(server, storage), storage=storage) as runtime,
        ):
            run = await runtime.start("Gold?")
            with pytest.raises(Exception, match="no such key"):
                await run
            told = await events_of(runtime, run.run_id)
    (answered,) = (each for each in told if each.type == "model_completed")
    assert "Error code: 401" in answered.error
    assert (answered.output_tokens, answered.node) == (None, "think")
    assert told[-1].type == "run_stopped"
    assert told[-1].reason == "failed"
    assert "no such key" in told[-1].error
