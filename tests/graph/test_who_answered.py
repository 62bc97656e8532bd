"""Who decided what is told as an event: once for each answer, whoever called the graph."""

import asyncio
from dataclasses import replace

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from replan import (
    Host,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
    run,
)
from replan.log.events.emitter import Emitter, Hooks
from replan.specialists.steps.answer_events import report_answer
from replan.state.questions import Question
from replan.storage.memory_log import memory_log
from replan.testing import ScriptedModel, always
from scripts import END, THREAD
from states import said

PAINT = {"plan": "# Paint\n\n- [ ] 1. Hall @painter\n"}
ASKING = RunSettings(approval="always")


def team(**options):
    def paint(context):
        return f"It is {ask_user('Which colour?')}"

    script = {"feedback": always(END), "plan_update": always(PAINT["plan"])}
    host = Host(model=ScriptedModel(script))
    painter = Specialist(name="painter", intended_use="Paints.", run=paint, effects="pure")
    return Team(host=host, specialists=[painter], **options)


async def answers_told(runtime, run_id):
    names = ("key", "kind", "action", "by", "text")
    return [
        tuple(getattr(event, name) for name in names)
        for event in [each async for each in runtime.events(run_id)]
        if event.type == "answer_received"
    ]


async def test_a_runtime_tells_who_decided_about_the_plan_and_who_answered(tmp_path):
    async with open_runtime(team(), storage=tmp_path / "runs.db") as runtime:
        waits = await runtime.run(PAINT, settings=ASKING)
        said = [("reject: Too little paint", "eva"), ("approve", "otto"), ("blue", "anna")]
        for answer, by in said:
            (asked,) = waits.pending_questions
            waits = await (await runtime.answer(waits.run_id, {asked.key: answer}, by=by))
        assert waits.outcome == "completed"
    async with open_runtime(team(), storage=tmp_path / "runs.db") as runtime:
        await runtime.resume(waits.run_id)
        assert await answers_told(runtime, waits.run_id) == [
            ("plan", "plan", "rejected", "eva", "Too little paint"),
            ("plan/1/2", "plan", "approved", "otto", ""),
            ("1/painter/1", "question", "answered", "anna", "blue"),
        ]


class Late:
    """A book of runs in which what was just taken is read once more, as by a read that was late."""

    def __init__(self, book):
        self._book, self._late = book, []

    def __getattr__(self, name):
        return getattr(self._book, name)

    async def requests(self, run_ids, *, taken=False):
        found, self._late = [*await self._log.requests(run_ids, taken=taken), *self._late], []
        return found

    async def take_requests(self, requests, at):
        await self._log.take_requests(requests, at)
        self._late = [*requests]


async def test_a_decision_that_is_read_late_is_not_applied_to_the_next_plan(tmp_path):
    async with open_storage(tmp_path / "runs.db") as opened:
        late = replace(opened, runs=Late(opened.runs))
        async with open_runtime(team(), storage=late) as runtime:
            waits = await runtime.run(PAINT, settings=ASKING)
            waits = await (
                await runtime.answer(waits.run_id, {"plan": "reject: Too little"}, by="eva")
            )
            assert waits.outcome == "waiting"
            told = await answers_told(runtime, waits.run_id)
    assert told == [("plan", "plan", "rejected", "eva", "Too little")]


async def test_answers_that_come_with_the_input_are_told(tmp_path):
    async with open_runtime(team(), storage=tmp_path / "runs.db") as runtime:
        done = await runtime.run({**PAINT, "answers": {"1/painter/1": "red"}})
        assert (done.outcome, done.results["1/painter"].text) == ("completed", "It is red")
        assert await answers_told(runtime, done.run_id) == [
            ("1/painter/1", "question", "answered", "", "red")
        ]


async def test_langgraphs_own_resumption_tells_of_answers_to_callbacks():
    heard = []

    class Ears:
        async def on_event(self, event):
            heard.append(event)

    graph = build_graph(team(callbacks=[Ears()]), checkpointer=InMemorySaver())
    asked = {"messages": [("user", "Go.")], **PAINT}
    await run(graph, asked, settings=ASKING, config=THREAD)
    await graph.ainvoke(await said(graph, "approve", THREAD), THREAD)
    await graph.ainvoke(Command(resume="red"), THREAD)
    told = [(each.key, each.action, each.by) for each in heard if each.type == "answer_received"]
    assert told == [("plan", "approved", ""), ("1/painter/1", "answered", "")]


@pytest.mark.parametrize(
    ("kind", "answer", "told"),
    [
        ("approval", {"action": "approve"}, ("approved", "")),
        ("approval", {"action": "edit", "arguments": {"n": 1}}, ("edited", '{"n": 1}')),
        ("approval", {"action": "reject", "reason": "dear"}, ("rejected", "dear")),
        ("unknown_outcome", "run again", ("answered", "run again")),
        ("question", {"a": "ü"}, ("answered", '{"a": "ü"}')),
    ],
)
async def test_each_kind_of_answer_is_told_once(kind, answer, told):
    heard, log = [], memory_log()
    emitter = Emitter(heard.append, Hooks().of("r"), "r", 1)
    asked = Question(key="1/a/1", step_id=1, specialist="a", text="?", kind=kind)
    for _ in range(2):
        await report_answer(asked, answer, emitter, log)
    assert [(each.action, each.text) for each in heard] == [told]
    assert (heard[0].kind, heard[0].step_id, heard[0].specialist) == (kind, 1, "a")


async def test_a_runtime_tells_who_went_on_with_a_run_and_who_stopped_it(tmp_path):
    begun, free = asyncio.Event(), asyncio.Event()

    async def work(_):
        begun.set()
        await free.wait()
        return "Done."

    host = Host(model=ScriptedModel({"feedback": always(END)}))
    worker = Specialist(name="painter", intended_use="Paints.", run=work, effects="pure")
    one = Team(host=host, specialists=[worker])
    async with open_runtime(one, storage=tmp_path / "runs.db", grace=0) as runtime:
        first = await runtime.start(PAINT)
        await begun.wait()
        await first.stop(by="anna")
        assert (await first).outcome == "interrupted"
        free.set()
        assert (await runtime.resume(first.run_id, by="eva")).outcome == "completed"
        events = [event async for event in runtime.events(first.run_id)]
    told = [(e.type, e.by) for e in events if e.type in ("run_stopped", "run_resumed")]
    assert told == [("run_stopped", "anna"), ("run_resumed", "eva")]


async def test_a_stop_of_a_run_that_nobody_works_on_leaves_nothing(tmp_path):
    async with (
        open_storage(tmp_path / "runs.db") as storage,
        open_runtime(team(), storage=storage) as runtime,
    ):
        waits = await runtime.run(PAINT)
        await runtime.stop(waits.run_id, by="eva")
        for taken in (False, True):
            assert not await storage.log.requests([waits.run_id], taken=taken)
        assert (await runtime.get(waits.run_id)).outcome == "waiting"
