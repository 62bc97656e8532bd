"""Runs as things of the library: begun, followed, answered, stopped, looked at, gone on with."""

import asyncio
import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from replan import (
    Host,
    InputError,
    RunSettings,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
    run,
    run_sync,
)
from replan.errors import ThreadBusyError
from replan.testing import ScriptedModel, always
from scripts import END

CHAIN = {"plan": "# Chain\n\n- [ ] 1. One @worker\n- [ ] 2. Two @worker (after 1)\n"}
ASKS = {
    "plan": "# Paint\n\n- [ ] 1. Hall @painter\n- [ ] 2. Attic @painter\n- [ ] 3. Out @worker\n"
}


class Bench:
    """Steps that say what they did, and wait where they are told to."""

    def __init__(self):
        self.did, self.at_work, self.leave = [], asyncio.Event(), asyncio.Event()
        self.leave.set()

    async def work(self, context):
        self.did.append(context.plan_step.id)
        self.at_work.set()
        await self.leave.wait()
        return f"did {context.task_description}"

    async def paint(self, context):
        colour = ask_user(f"Which colour for {context.task_description}?")
        await self.leave.wait()
        return f"{context.task_description} is {colour}"

    def team(self, script=None, **options):
        model = ScriptedModel(script or {"feedback": always(END)})
        team = [
            Specialist(name="worker", intended_use="Works.", run=self.work, effects="pure"),
            Specialist(name="painter", intended_use="Paints.", run=self.paint, effects="pure"),
        ]
        return Team(host=Host(model=model), specialists=team, **options)


@pytest.fixture
def bench():
    return Bench()


@pytest.fixture(params=["memory", "sqlite"])
def where(request, tmp_path):
    return ":memory:" if request.param == "memory" else tmp_path / "runs.db"


async def listed(events):
    return [event async for event in events]


async def test_a_run_is_begun_awaited_and_looked_at(bench, where):
    async with open_runtime(bench.team(), storage=where) as runtime:
        run = await runtime.start(CHAIN)
        result = await run
        assert (result.outcome, result.text, result.run_id) == ("completed", "The end.", run.run_id)
        assert result.results[2].text == "did Two"
        view = await run.report()
        assert (view.outcome, view.progress, view.pending_questions) == ("completed", (2, 2), ())
        assert [(each.run_id, each.title) for each in await runtime.runs()] == [
            (run.run_id, "Chain")
        ]


async def test_events_are_numbered_timed_and_replayed_from_any_number(bench, where):
    async with open_runtime(bench.team(), storage=where) as runtime:
        bench.leave.clear()
        run = await runtime.start(CHAIN, tokens=True)
        await bench.at_work.wait()
        live = asyncio.create_task(listed(run.events()))
        with_tokens = asyncio.create_task(listed(run.events(after=3, tokens=True)))
        await asyncio.sleep(0)
        bench.leave.set()
        await run
        events = await live
        assert [event.seq for event in events] == [*range(1, len(events) + 1)]
        assert all(event.at is not None for event in events)
        assert events[-1].type == "task_completed"
        again = await listed(runtime.events(run.run_id, after=5))
        assert again == events[5:]
        with pytest.raises(InputError, match="after=-1 is not the number of an event"):
            await listed(runtime.events(run.run_id, after=-1))
        told = await with_tokens
        assert [event for event in told if event.seq is not None] == events[3:]
        pieces = [event for event in told if event.seq is None]
        assert "".join(event.text for event in pieces) == "The end."


async def test_without_storage_events_go_when_the_result_was_handed_out(bench):
    async with open_runtime(bench.team()) as runtime:
        run = await runtime.start(CHAIN)
        events = await listed(run.events())
        assert events[-1].type == "task_completed"
        assert (await run).outcome == "completed"
        with pytest.raises(InputError, match="There is no run"):
            await listed(run.events())
        with pytest.raises(InputError, match="Without storage, a run ends with its call"):
            await runtime.resume(run.run_id)


async def test_questions_are_answered_one_by_one_by_whoever_knows(bench, where):
    async with open_runtime(bench.team(), storage=where) as runtime:
        result = await runtime.run(ASKS)
        assert (result.outcome, [ask.key for ask in result.pending_questions]) == (
            "waiting",
            ["1/painter/1", "2/painter/1"],
        )
        with pytest.raises(InputError, match="open: '1/painter/1', '2/painter/1'"):
            await runtime.answer(result.run_id, "blue")
        result = await (await runtime.answer(result.run_id, {"2": "grey"}, by="anna"))
        assert [ask.key for ask in result.pending_questions] == ["1/painter/1"]
        result = await (await runtime.answer(result.run_id, "blue", by="otto"))
        assert (result.outcome, result.results[1].text, result.results[2].text) == (
            "completed",
            "Hall is blue",
            "Attic is grey",
        )
        with pytest.raises(InputError, match="is over, and asks nothing any more"):
            await runtime.answer(result.run_id, "red")


async def test_an_answer_comes_while_other_steps_are_at_work(bench, where):
    async with open_runtime(bench.team(), storage=where) as runtime:
        bench.leave.clear()
        run = await runtime.start(ASKS)
        async for event in run.events():
            if getattr(event, "key", None) == "2/painter/1":
                break
        await runtime.answer(run.run_id, {"1/painter/1": "blue", "2/painter/1": "grey"})
        bench.leave.set()
        result = await run
        assert (result.outcome, bench.did) == ("completed", [3])
        assert result.results[2].text == "Attic is grey"


async def test_of_two_answers_at_once_the_first_counts_and_the_other_is_refused(
    bench, where, monkeypatch
):
    async with (
        open_storage(where, keep_days=30) as storage,
        open_runtime(bench.team(), storage=storage) as runtime,
    ):
        waits = await runtime.run(ASKS)
        forget = runtime.storage.log.forget_texts

        async def late(before):
            await bench.leave.wait()
            await forget(before)

        # The run is begun, and goes on when all answers have come.
        monkeypatch.setattr(runtime.storage.log, "forget_texts", late)
        bench.leave.clear()
        blue = await runtime.answer(waits.run_id, {"1": "blue", "2": "grey"}, by="eva")
        with pytest.raises(InputError, match="by eva, came before this one"):
            await runtime.answer(waits.run_id, {"1": "red"}, by="ben")
        # The same words are no other answer.
        await runtime.answer(waits.run_id, {"1": "blue"}, by="ben")
        bench.leave.set()
        assert (await blue).results[1].text == "Hall is blue"


async def test_an_answer_that_comes_as_the_run_comes_to_rest_is_not_lost(bench, where, monkeypatch):
    async with open_runtime(bench.team(), storage=where) as runtime:
        resting, leave = asyncio.Event(), asyncio.Event()
        update, add = runtime.storage.runs.update, runtime.storage.log.add_request

        async def late(run_id, outcome, at):
            resting.set()
            await leave.wait()
            await update(run_id, outcome, at)

        async def added(request, **options):
            stored = await add(request, **options)
            leave.set()
            return stored

        monkeypatch.setattr(runtime.storage.runs, "update", late)
        monkeypatch.setattr(runtime.storage.log, "add_request", added)
        run = await runtime.start(ASKS)
        await resting.wait()
        result = await (await runtime.answer(run.run_id, {"1": "blue", "2": "grey"}))
        assert (await run).outcome == "waiting"
        assert (result.outcome, result.results[1].text) == ("completed", "Hall is blue")


async def test_who_followed_a_run_to_its_rest_finds_it_at_rest(bench, where, monkeypatch):
    async with open_runtime(bench.team(), storage=where) as runtime:
        update = runtime.storage.runs.update

        async def late(run_id, outcome, at):
            for _ in range(200):
                await asyncio.sleep(0)
            await update(run_id, outcome, at)

        monkeypatch.setattr(runtime.storage.runs, "update", late)
        run = await runtime.start(ASKS)
        assert [event.type async for event in run.events()][-1] == "run_stopped"
        assert (await runtime.get(run.run_id)).outcome == "waiting"


async def test_whoever_goes_on_with_a_run_hears_it_and_can_stop_it(bench, where):
    async with open_runtime(bench.team(), storage=where) as runtime:
        heard, stop = [], asyncio.Event()
        waits = await runtime.run(ASKS, on_event=heard.append)
        assert [event.type for event in heard].count("input_requested") == 2
        assert [event.seq for event in heard] == [*range(1, len(heard) + 1)]
        again = await runtime.resume(waits.run_id, on_event=heard.append)
        assert (again.outcome, again.pending_questions) == ("waiting", waits.pending_questions)
        told = len(heard)
        run = await runtime.answer(waits.run_id, {"1": "blue"}, on_event=heard.append, tokens=True)
        assert (await run).outcome == "waiting"
        assert "specialist_completed" in [event.type for event in heard[told:]]
        stop.set()
        run = await runtime.answer(waits.run_id, {"2": "grey"}, stop=stop)
        assert (await run).outcome == "interrupted"
        result = await runtime.resume(waits.run_id, tokens=True, on_event=heard.append)
        assert result.outcome == "completed"
        pieces = [event.text for event in heard if event.type == "answer_token"]
        assert "".join(pieces) == "The end."


async def test_a_word_that_a_stopped_run_did_not_come_to_stays(bench, where):
    async with open_runtime(bench.team(), storage=where) as runtime:
        waits = await runtime.run(CHAIN, settings=RunSettings(approval="always"))
        stop = asyncio.Event()
        stop.set()
        run = await runtime.answer(waits.run_id, {"plan": "approve"}, stop=stop)
        assert (await run).outcome == "interrupted"
        assert (await runtime.resume(waits.run_id)).outcome == "completed"


async def test_a_run_that_is_stopped_at_once_gets_no_grace(bench, where):
    async with open_runtime(bench.team(), storage=where, grace=600) as runtime:
        bench.leave.clear()
        stop = asyncio.Event()
        run = await runtime.start(CHAIN, stop=stop)
        await bench.at_work.wait()
        await run.stop()
        assert stop.is_set(), "whoever stops it, who began it knows"
        await runtime.stop(run.run_id, force=True)
        assert (await run).outcome == "interrupted"
        bench.leave.set()
        assert (await runtime.resume(run.run_id)).outcome == "completed"


class Stale:
    """A book of runs that gives the record of a run some times as it was before it came to rest."""

    def __init__(self, book, times):
        self._book, self._times = book, times

    def __getattr__(self, name):
        return getattr(self._book, name)

    async def get(self, run_id):
        record = await self._book.get(run_id)
        if record and record.outcome != "running" and self._times:
            self._times -= 1
            return record.replace(outcome="running")
        return record


async def test_who_stops_a_run_that_comes_to_rest_meanwhile_leaves_it_as_it_is(bench, where):
    async with open_storage(where) as storage:
        async with open_runtime(bench.team(), storage=storage) as runtime:
            waits = await runtime.run(ASKS, run_id="r")
            assert waits.outcome == "waiting"
            await storage.runs.update("r", "interrupted", datetime.now(UTC))
        late = replace(storage, runs=Stale(storage.runs, times=2))
        async with open_runtime(bench.team(), storage=late) as runtime:
            await runtime.stop("r")
            assert (await runtime.get("r")).outcome == "interrupted"
        late = replace(storage, runs=Stale(storage.runs, times=1))
        async with open_runtime(bench.team(), storage=late) as runtime:
            assert (await runtime.get("r")).outcome == "interrupted"


async def test_who_leaves_the_runtime_leaves_runs_that_can_go_on(bench, tmp_path):
    where = tmp_path / "runs.db"
    bench.leave.clear()
    async with open_runtime(bench.team(), storage=where, grace=0.01) as runtime:
        run = await runtime.start(CHAIN)
        await bench.at_work.wait()
    bench.leave.set()
    async with open_runtime(bench.team(), storage=where) as runtime:
        assert (await runtime.get(run.run_id)).outcome == "interrupted"
        assert (await runtime.resume(run.run_id)).outcome == "completed"
        numbers = [event.seq for event in await listed(runtime.events(run.run_id))]
        assert numbers == [*range(1, len(numbers) + 1)]


async def test_stop_and_answers_reach_the_owner_through_the_storage(bench, tmp_path, monkeypatch):
    where = tmp_path / "runs.db"
    async with (
        open_runtime(bench.team(), storage=where) as owner,
        open_runtime(bench.team(), storage=where) as other,
    ):
        bench.leave.clear()
        run = await owner.start(ASKS)
        followed = asyncio.create_task(listed(other.events(run.run_id)))
        async for event in run.events():
            if getattr(event, "key", None) == "2/painter/1":
                break
        with pytest.raises(ThreadBusyError):
            await other.resume(run.run_id)
        stop_taken, take = asyncio.Event(), owner.storage.log.take_requests

        async def taken(requests, at):
            await take(requests, at)
            if any(request.kind == "stop" for request in requests):
                stop_taken.set()

        monkeypatch.setattr(owner.storage.log, "take_requests", taken)
        elsewhere = await other.answer(run.run_id, {"1": "blue", "2": "grey"}, by="anna")
        await other.stop(run.run_id, by="otto")
        await stop_taken.wait()
        bench.leave.set()
        assert (await run).outcome == "interrupted"
        assert (await followed) == await listed(other.events(run.run_id))
        assert (await elsewhere).outcome == "interrupted"
        result = await other.resume(run.run_id)
        assert (result.outcome, result.results[2].text) == ("completed", "Attic is grey")
        assert bench.did == [3]


async def test_a_named_answer_that_comes_again_in_other_words_is_refused(
    bench, tmp_path, monkeypatch
):
    where = tmp_path / "runs.db"
    async with (
        open_runtime(bench.team(), storage=where) as owner,
        open_runtime(bench.team(), storage=where) as other,
    ):
        bench.leave.clear()
        run = await owner.start(ASKS)
        async for event in run.events():
            if getattr(event, "key", None) == "2/painter/1":
                break
        reads, requests = asyncio.Event(), owner.storage.log.requests

        async def late(run_ids, **options):
            await reads.wait()
            return await requests(run_ids, **options)

        monkeypatch.setattr(owner.storage.log, "requests", late)
        words = {"1/painter/1": "blue", "2/painter/1": "grey"}
        elsewhere = await other.answer(run.run_id, words, name="n")
        try:
            with pytest.raises(InputError, match="Another answer has this name"):
                await owner.answer(run.run_id, {**words, "1/painter/1": "red"}, name="n")
            await owner.answer(run.run_id, words, name="n")
        finally:
            bench.leave.set()
            reads.set()
        assert (await run).results[1].text == "Hall is blue"
        assert (await elsewhere).outcome == "completed"


@pytest.mark.parametrize("words", [{"1": "blue"}, "blue"])
async def test_a_named_answer_that_comes_again_counts_once(bench, where, words):
    async with open_runtime(bench.team(), storage=where) as runtime:
        result = await runtime.run(ASKS)
        await (await runtime.answer(result.run_id, {"2": "grey"}))
        answered = await (await runtime.answer(result.run_id, words, name="n"))
        for _ in range(2):
            again = await (await runtime.answer(result.run_id, words, name="n"))
            assert (again.outcome, again.text) == (answered.outcome, answered.text)
        assert again.results[1].text == "Hall is blue"
        assert len(await runtime.storage.log.requests([result.run_id], taken=True)) == 2


@pytest.mark.parametrize("other", [{"2": "red"}, {"1": "red"}, "red"])
async def test_other_words_under_the_name_of_a_taken_answer_are_refused(bench, where, other):
    async with open_runtime(bench.team(), storage=where) as runtime:
        result = await runtime.run(ASKS)
        waits = await (await runtime.answer(result.run_id, {"1": "blue"}, name="n"))
        with pytest.raises(InputError, match="Another answer has this name"):
            await runtime.answer(result.run_id, other, name="n")
        assert (await runtime.get(result.run_id)).pending_questions == waits.pending_questions
        ended = await (await runtime.answer(result.run_id, {"2": "grey"}))
    assert ended.results[1].text == "Hall is blue"


async def test_a_named_answer_that_its_run_has_noted_counts_once(bench, where):
    async with open_runtime(bench.team(), storage=where) as runtime:
        bench.leave.clear()
        run = await runtime.start(ASKS)
        async for event in run.events():
            if getattr(event, "key", None) == "2/painter/1":
                break
        words = {"1/painter/1": "blue", "2/painter/1": "grey"}
        for _ in range(2):
            again = await runtime.answer(run.run_id, words, name="n")
        bench.leave.set()
        assert (await again).results[1].text == "Hall is blue"
        assert (await run).outcome == "completed"


async def test_runs_of_one_conversation_are_told_apart(bench, where):
    script = {"think": always("---\ncomplexity: simple\n---\nHello."), "feedback": always(END)}
    async with open_runtime(bench.team(script), storage=where) as runtime:
        first = await runtime.run(CHAIN, thread_id="talk")
        second = await runtime.run("Hello?", thread_id="talk")
        assert [message.type for message in second.state["messages"]] == ["human", "ai"] * 2
        assert (await runtime.get(first.run_id)).progress == (2, 2)
        assert (await runtime.get(second.run_id)).plan is None


async def test_a_refused_request_leaves_no_run(bench, where):
    async with open_runtime(bench.team(), storage=where) as runtime:
        with pytest.raises(InputError):
            await runtime.start("  ")
        with pytest.raises(InputError, match="nobody"):
            await runtime.start({"plan": "- [ ] 1. Go @nobody\n"})
        with pytest.raises(InputError, match="A run begins with a text"):
            await runtime.start(None)
        bench.leave.clear()
        run = await runtime.start(CHAIN, thread_id="talk")
        await bench.at_work.wait()
        with pytest.raises(ThreadBusyError):
            await runtime.start(CHAIN, thread_id="talk")
        bench.leave.set()
        await run
        assert [each.run_id for each in await runtime.runs()] == [run.run_id]


async def test_clock_and_ids_can_be_handed_in(bench, where):
    noon, ids = datetime(2026, 1, 1, 12, tzinfo=UTC), map(str, itertools.count(1))
    ticks = (noon + timedelta(seconds=n) for n in itertools.count())
    async with open_runtime(
        bench.team(), storage=where, clock=lambda: next(ticks), new_id=lambda: next(ids)
    ) as runtime:
        run = await runtime.start(CHAIN)
        await run
        assert run.run_id == "1"
        at = [event.at for event in await listed(run.events())]
        assert at == sorted(at)
        assert at[0] > noon
        assert (await run.report()).started_at == noon


async def test_the_clock_that_is_handed_in_is_that_of_attempts_too(bench):
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    async with (
        open_storage(":memory:") as storage,
        open_runtime(bench.team(), storage=storage, clock=lambda: noon) as runtime,
    ):
        run_id = (await runtime.run(CHAIN)).run_id
        ledger = await storage.log.ledger(run_id)
    assert [(each.started_at, each.ended_at) for each in ledger] == [(noon, noon)] * 2


async def test_a_graph_with_its_storage_is_a_team_too(bench):
    async with open_storage(":memory:") as storage:
        graph = build_graph(bench.team(), storage=storage)
        async with open_runtime(graph, storage=storage) as runtime:
            assert runtime.graph is graph
            assert (await runtime.run(CHAIN)).outcome == "completed"


def test_synchronous_code_has_the_same_with_storage(tmp_path):
    bench = Bench()
    with open_runtime(bench.team(), storage=tmp_path / "runs.db") as runtime:
        result = runtime.run(ASKS)
        assert result.outcome == "waiting"
        result = runtime.answer(result.run_id, {"1": "blue", "2": "grey"}).result()
        assert result.outcome == "completed"
        run = runtime.start(CHAIN)
        assert [event.type for event in runtime.events(run.run_id)][-1] == "task_completed"
        assert run.result().outcome == "completed"
        assert runtime.resume(run.run_id).run_id == run.run_id
        runtime.stop(run.run_id)
        assert runtime.get(run.run_id).outcome == "completed"
        assert len(runtime.runs()) == 2


def test_a_runtime_that_was_left_says_so_and_its_events_are_over():
    with open_runtime(Bench().team()) as runtime:
        events = runtime.events(runtime.start(CHAIN).run_id)
        assert next(events).type == "run_started"
    events.close()
    with pytest.raises(RuntimeError, match="This runtime is closed"):
        runtime.runs()


def test_a_team_file_that_is_not_there_is_told_to_synchronous_code(tmp_path):
    with pytest.raises(InputError.__mro__[1]), open_runtime(tmp_path / "gone.yaml"):
        pass


def test_a_team_is_run_without_a_graph_and_gives_a_result():
    bench = Bench()
    result = run_sync(bench.team(), CHAIN)
    assert (result.outcome, result.results[2].text) == ("completed", "did Two")
    assert result.duration > 0


def test_langgraphs_invoke_works_where_no_loop_runs():
    graph = build_graph(Bench().team())
    assert graph.invoke(CHAIN)["outcome"] == "completed"
    with pytest.raises(TypeError, match=r"use `async for part in graph\.astream"):
        graph.stream(CHAIN)


async def test_langgraphs_invoke_says_what_to_call_where_a_loop_runs(bench):
    graph = build_graph(bench.team())
    with pytest.raises(RuntimeError, match=r"await graph\.ainvoke"):
        graph.invoke(CHAIN)
    assert (await run(graph, CHAIN)).outcome == "completed"
