"""What a crash or a shutdown left is resumed: the own runs, once, and nothing that is another's."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from replan import (
    Host,
    InputError,
    Specialist,
    Team,
    ask_user,
    build_graph,
    open_runtime,
    open_storage,
    run,
)
from replan.log.rows import Request
from replan.runs.statuses import PAGE
from replan.views.run.evidence import evidence_of
from replan.views.run.history import history_lines
from replan.views.run.next_steps import next_lines
from replan.views.run.open_asks import pending_lines
from replan.views.run.overview import duration_text
from scripts import THREAD

PLAN = {"plan": "# Chain\n\n- [ ] 1. One @worker\n- [ ] 2. Two @worker (after 1)\n"}
ASKS = {"plan": "# Paint\n\n- [ ] 1. Hall @painter\n"}


class Shop:
    """Steps that count what they did; step 2 hangs until it is let go."""

    def __init__(self, name="shop", specialists=("worker", "painter"), effects="pure"):
        self.did, self.at_work, self.most = [], 0, 0
        self.began, self.leave = asyncio.Queue(), asyncio.Event()
        work = {"worker": self.work, "painter": lambda _: ask_user("Which colour?")}
        self.team = Team(
            Host("offline"),
            [
                Specialist(each, "Works.", run=work.get(each, self.work), effects=effects)
                for each in specialists
            ],
            name=name,
        )

    async def work(self, context):
        self.at_work += 1
        self.most = max(self.most, self.at_work)
        try:
            if context.plan_step.id == 2:
                self.began.put_nowait(context.plan_step.id)
                await self.leave.wait()
        finally:
            self.at_work -= 1
        self.did.append(context.plan_step.id)
        return f"did {context.task_description}"

    def open(self, storage, **options):
        return open_runtime(self.team, storage=storage, grace=0.01, **options)


async def left_by(storage, *run_ids, shop=None, is_killed=True, given=PLAN, **options):
    """Leave runs in the middle of step 2, as a shutdown does, or a kill."""
    shop = shop or Shop()
    async with shop.open(storage) as runtime:
        for run_id in run_ids:
            await runtime.start(given, run_id=run_id, **options)
            await shop.began.get()
    for run_id in run_ids if is_killed else ():
        await killed(storage, run_id)
    return shop


async def killed(storage, run_id):
    """What the record of a run says whose process was killed."""
    await storage.runs.update(run_id, "running", datetime.now(UTC))


async def recovered(storage, shop=None, **options):
    shop = shop or Shop()
    shop.leave.set()
    async with shop.open(storage) as runtime:
        return await runtime.resume_interrupted(**options)


def reasons(recovery):
    return {each.run_id: each.reason for each in recovery.left_alone}


def outcomes(recovery):
    return {each.run_id: each.outcome for each in recovery.resumed}


@pytest.mark.one_store
@pytest.mark.parametrize("is_killed", [True, False])
async def test_what_was_cut_off_is_resumed_and_finished_work_is_kept(where, is_killed):
    async with open_storage(where) as storage:
        await left_by(storage, "r", is_killed=is_killed)
        shop = Shop()
        recovery = await recovered(storage, shop, by="startup")
        assert (outcomes(recovery), recovery.left_alone) == ({"r": "completed"}, ())
        assert (shop.did, recovery.has_more) == ([2], False)
        async with shop.open(storage) as runtime:
            events = [event async for event in runtime.events("r")]
            resumed = [each.by for each in events if each.type == "run_resumed"]
            assert resumed == ["startup"]
            assert await runtime.resume_interrupted() == type(recovery)()


async def test_a_run_that_was_killed_before_it_had_a_state_begins(storage):
    shop = Shop()
    shop.leave.set()
    async with shop.open(storage) as runtime:
        await runtime.run(PLAN, run_id="r")
        record = await storage.runs.get("r")
        await storage.runs.remove("r")
        await storage.runs.begin(record.replace(outcome="running"))
        await storage.runs.begin(record.replace(run_id="own", thread_id="own", order={"a": 1}))
        await storage.runs.update("own", "running", datetime.now(UTC))
    recovery = await recovered(storage)
    assert (outcomes(recovery), reasons(recovery)) == ({"r": "completed"}, {"own": "other_team"})


async def test_a_run_that_was_killed_behind_its_end_is_over(storage):
    shop = Shop()
    shop.leave.set()
    async with shop.open(storage) as runtime:
        await runtime.run(PLAN, run_id="r")
    await killed(storage, "r")
    recovery = await recovered(storage, shop)
    assert (outcomes(recovery), shop.did) == ({"r": "completed"}, [1, 2])
    assert (await storage.runs.get("r")).outcome == "completed"
    assert await recovered(storage) == type(recovery)()


@pytest.mark.parametrize("is_killed", [True, False])
async def test_a_run_that_waits_is_left_alone_until_its_answer_is_there(storage, is_killed):
    async with Shop().open(storage) as runtime:
        assert (await runtime.run(ASKS, run_id="r")).outcome == "waiting"
    if is_killed:
        await killed(storage, "r")
    assert reasons(await recovered(storage)) == {"r": "waiting"}
    async with Shop().open(storage) as runtime:
        (ask,) = (await runtime.get("r")).pending_questions
    await answered(storage, ask)
    assert outcomes(await recovered(storage)) == {"r": "completed"}


async def test_a_run_that_was_answered_is_not_said_to_have_waited_for_a_person(storage):
    def in_an_hour():
        return datetime.now(UTC) + timedelta(hours=1)

    async with Shop().open(storage) as runtime:
        await runtime.run(ASKS, run_id="r")
        (ask,) = (await runtime.get("r")).pending_questions
    await answered(storage, ask)
    await killed(storage, "r")
    async with Shop().open(storage, clock=in_an_hour) as runtime:
        rests = await runtime.get("r")
        await runtime.resume_interrupted()
        report = await runtime.get("r")
    assert rests.waited < 60
    assert report.waited < 60 < report.idle
    (resumed,) = [line for line in history_lines(report) if "resumed" in line]
    assert "nobody worked on it for 1:00:00" in resumed
    assert "with nobody at work" in duration_text(report)


async def answered(storage, ask):
    """What is on record if a process is killed between an answer and the run."""
    row = {"answer": "blue", "fingerprint": ask.fingerprint, "is_keyed": ask.is_keyed}
    asked = {"kind": "answer", "at": datetime.now(UTC), "by": "anna", "answers": {ask.key: row}}
    await storage.log.add_request(Request(run_id="r", name=ask.key, **asked))


async def test_what_is_answered_is_not_asked_for_once_more(storage):
    two = {"plan": "# Paint\n\n- [ ] 1. Hall @painter\n- [ ] 2. Attic @painter\n"}

    def shown(report):
        (*_, last), lines = next_lines(report), pending_lines(asks, evidence(report))
        return (
            report.reason,
            last.partition("FILE")[2],
            [each for each in lines if "on" in each],
        )

    def evidence(report):
        return [evidence_of(ask, report) for ask in asks]

    async with Shop().open(storage) as runtime:
        await runtime.run(two, run_id="r")
        asks = (await runtime.get("r")).pending_questions
        await answered(storage, asks[0])
        told = "  anna answered {}: blue; it counts when the run continues"
        assert shown(await runtime.get("r")) == (
            "1 answer needed",
            " --answer 2/painter/1=TEXT",
            [told.format("1/painter/1")],
        )
        await answered(storage, asks[1])
        why, last, lines = shown(report := await runtime.get("r"))
        assert (why, last) == ("what it asked is answered; it has not continued since", "")
        assert lines == [told.format(ask.key) for ask in asks]
        assert report.outcome == "waiting"
        await killed(storage, "r")
        report = await runtime.get("r")
        assert (report.outcome, report.reason) == ("interrupted", why)


@pytest.mark.one_store
@pytest.mark.parametrize("is_killed", [True, False])
async def test_what_a_person_stopped_stays_stopped_until_it_is_resumed(where, is_killed):
    async with open_storage(where) as storage:
        shop = Shop()
        async with shop.open(storage) as runtime:
            running = await runtime.start(PLAN, run_id="r")
            await shop.began.get()
            since = (await storage.runs.get("r")).updated_at
            await runtime.stop("r")
            assert (await running).outcome == "interrupted"
        if is_killed:
            # While it came to rest.
            await storage.runs.update("r", "running", since)
        recovery = await recovered(storage)
        assert (reasons(recovery), recovery.resumed) == ({"r": "stopped"}, ())
        shop = Shop()
        async with shop.open(storage) as runtime:
            await runtime.resume("r", wait=False)
            await shop.began.get()
        # Whoever resumed it took the stop back.
        assert outcomes(await recovered(storage)) == {"r": "completed"}


async def test_a_run_that_was_shut_down_can_still_be_stopped(storage):
    await left_by(storage, "shut", is_killed=False)
    await left_by(storage, "killed")
    async with Shop().open(storage) as runtime:
        for run_id in ("shut", "killed"):
            await runtime.stop(run_id, by="anna")
    assert reasons(await recovered(storage)) == {"shut": "stopped", "killed": "stopped"}


async def test_the_stop_of_a_program_is_no_word_of_a_person(storage):
    shop, stop = Shop(), asyncio.Event()
    async with shop.open(storage) as runtime:
        running = await runtime.start(PLAN, run_id="r", stop=stop)
        await shop.began.get()
        stop.set()
        assert (await running).outcome == "interrupted"
        assert reasons(await runtime.resume_interrupted(stop=stop)) == {"r": "not_begun"}
    assert outcomes(await recovered(storage)) == {"r": "completed"}


async def test_who_stops_one_of_them_stops_no_other(storage):
    await left_by(storage, "a", "b", "c")
    shop, stop = Shop(), asyncio.Event()
    async with shop.open(storage) as runtime:
        recovering = asyncio.ensure_future(runtime.resume_interrupted(stop=stop, at_once=3))
        for _ in range(3):
            await shop.began.get()
        await runtime.stop("b", by="anna")
        assert (await runtime.wait("b")).outcome == "interrupted"
        assert (runtime.at_work, stop.is_set()) == (2, False)
        stop.set()
        assert outcomes(await recovering) == dict.fromkeys("abc", "interrupted")
    recovery = await recovered(storage)
    assert (outcomes(recovery).keys(), reasons(recovery)) == ({"a", "c"}, {"b": "stopped"})


async def test_a_stop_counts_whatever_the_clocks_say(storage):
    shop = Shop()
    async with shop.open(storage) as runtime:
        running = await runtime.start(PLAN, run_id="r")
        await shop.began.get()
        async with shop.open(storage, clock=lambda: datetime.now(UTC) - timedelta(1)) as other:
            await other.stop("r", by="anna")
        assert (await running).outcome == "interrupted"
    assert reasons(await recovered(storage)) == {"r": "stopped"}


@pytest.mark.one_store
async def test_a_run_of_another_team_is_left_alone(where):
    async with open_storage(where) as storage:
        await left_by(storage, "other", shop=Shop("bakery"))
        await left_by(storage, "lost", shop=Shop(specialists=("worker", "painter", "tailor")))
        await left_by(storage, "unknown", order={"mine": 1})
        await left_by(storage, "served", order={}, labels={"team": "shop"})
        await left_by(storage, "own")
        shop = Shop(specialists=("worker", "painter", "newcomer"))
        recovery = await recovered(storage, shop)
        assert outcomes(recovery) == {"own": "completed", "served": "completed"}
        assert reasons(recovery) == dict.fromkeys(("other", "lost", "unknown"), "other_team")
        assert shop.did == [2, 2]


async def test_what_workers_or_sessions_do_is_left_to_them(storage):
    await left_by(storage, "queued", labels={"version": "0" * 16})
    await left_by(storage, "turn", labels={"session": "s"})
    recovery = await recovered(storage)
    assert reasons(recovery) == {"queued": "in_queue", "turn": "in_session"}


async def test_a_run_behind_which_its_thread_went_on_is_left_alone(storage):
    await left_by(storage, "first", thread_id="t")
    await left_by(storage, "second", thread_id="t")
    recovery = await recovered(storage)
    assert outcomes(recovery) == {"second": "completed"}
    assert reasons(recovery).keys() == {"first"}
    assert reasons(await recovered(storage)) == {"first": "superseded"}


async def test_a_run_behind_which_a_graph_was_called_is_left_alone(storage):
    await left_by(storage, "r", thread_id="t")
    await run(build_graph(Shop().team, storage=storage), "Hello", config=THREAD)
    assert reasons(await recovered(storage)) == {"r": "superseded"}


async def test_an_adopted_run_belongs_to_who_adopted_it(storage):
    async with open_storage(":memory:") as elsewhere:
        await left_by(elsewhere, "r", is_killed=False)
        async with Shop().open(elsewhere) as there, Shop().open(storage) as here:
            await here.adopt(await there.export("r"))
    assert outcomes(await recovered(storage)) == {"r": "completed"}


async def test_no_more_runs_are_at_work_than_wanted(storage):
    ids = [f"r{number}" for number in range(7)]
    await left_by(storage, *ids)
    shop = Shop()
    async with shop.open(storage) as runtime:
        recovering = asyncio.ensure_future(runtime.resume_interrupted(at_once=3))
        for _ in range(3):
            await shop.began.get()
        assert runtime.at_work == 3
        shop.leave.set()
        assert outcomes(await recovering) == dict.fromkeys(ids, "completed")
    assert (shop.most, shop.did) == (3, [2] * 7)


async def test_no_more_runs_are_looked_at_than_wanted(storage):
    await left_by(storage, *(f"r{number}" for number in range(4)))
    first = await recovered(storage, limit=3)
    assert (outcomes(first).keys(), first.has_more) == ({"r1", "r2", "r3"}, True)
    last = await recovered(storage, limit=3)
    assert (outcomes(last).keys(), last.has_more) == ({"r0"}, False)


async def test_runs_that_wait_hide_none_that_was_cut_off(storage):
    await left_by(storage, "killed")
    async with Shop().open(storage) as runtime:
        await runtime.run(ASKS, run_id="asks")
    recovery = await recovered(storage, limit=1)
    assert (outcomes(recovery), recovery.has_more) == ({"killed": "completed"}, True)


async def test_all_pages_are_looked_at(storage):
    await left_by(storage, "newest")
    record = await storage.runs.get("newest")
    for number in range(2 * PAGE + 1):
        began = record.started_at - timedelta(seconds=number)
        await storage.runs.begin(
            record.replace(run_id=f"r{number}", started_at=began, labels={"session": "s"})
        )
    recovery = await recovered(storage)
    assert (outcomes(recovery), recovery.has_more) == ({"newest": "completed"}, False)
    assert [*reasons(recovery)] == [f"r{number}" for number in range(2 * PAGE + 1)]


class Broken:
    """A part of a storage that fails for one run."""

    def __init__(self, whole, name, run_id):
        self._whole, self._name, self._run_id = whole, name, run_id

    def __getattr__(self, name):
        found = getattr(self._whole, name)
        if name != self._name:
            return found

        async def failing(first, *given, **named):
            if self._run_id in str(first):
                raise ValueError("torn")
            return await found(first, *given, **named)

        return failing


@pytest.mark.parametrize(("name", "reason"), [("get", "unreadable"), ("begin", "failed")])
async def test_a_run_that_fails_stops_no_other(storage, monkeypatch, name, reason):
    await left_by(storage, "a", "bad", "c")
    broken = Broken(storage.runs, name, "bad")
    shop = Shop()
    shop.leave.set()
    async with shop.open(storage) as runtime:
        monkeypatch.setattr(runtime.resources.runs, name, getattr(broken, name))
        recovery = await runtime.resume_interrupted(at_once=1)
    monkeypatch.undo()
    assert outcomes(recovery) == {"a": "completed", "c": "completed"}
    (left,) = recovery.left_alone
    assert (left.run_id, left.reason, str(left.error)) == ("bad", reason, "torn")
    assert left.text.endswith("ValueError: torn")
    assert outcomes(await recovered(storage)) == {"bad": "completed"}


async def test_two_that_look_at_the_same_moment_resume_each_run_once(where):
    ids = {f"r{number}" for number in range(6)}
    async with open_storage(where) as storage, open_storage(where) as other:
        await left_by(storage, *ids)
        shops = Shop(), Shop()
        both = await asyncio.gather(
            recovered(storage, shops[0], at_once=6), recovered(other, shops[1], at_once=6)
        )
        assert sorted(each for one in both for each in outcomes(one)) == sorted(ids)
        assert len(shops[0].did) + len(shops[1].did) == 6
    async with open_storage(where) as storage:
        await left_by(storage, "again")
        shop = Shop()
        shop.leave.set()
        async with shop.open(storage) as runtime:
            twice = await asyncio.gather(*(runtime.resume_interrupted() for _ in range(2)))
        assert [len(each.resumed) for each in twice].count(1) == 1
        assert shop.did == [2]


@pytest.mark.one_store
@pytest.mark.parametrize("is_over", [False, True])
async def test_who_looks_while_another_brings_a_run_to_its_end_did_not_resume_it(
    where, monkeypatch, is_over
):
    async with open_storage(where) as storage, open_storage(where) as other:
        await left_by(storage, "r")
        if is_over:
            await recovered(other)
            await killed(storage, "r")
        requests, found = storage.log.requests, []

        async def answer_late(*given, **named):
            known = await requests(*given, **named)
            if not found:
                found.append(await recovered(other))
            return known

        monkeypatch.setattr(storage.log, "requests", answer_late)
        late = await recovered(storage)
        assert [outcomes(each) for each in (*found, late)] == [{"r": "completed"}, {}]
        assert late.left_alone == ()


async def test_a_runtime_that_is_closed_begins_no_further_run(storage):
    await left_by(storage, "a", "b")
    shop = Shop()
    async with shop.open(storage) as runtime:
        recovering = asyncio.ensure_future(runtime.resume_interrupted(at_once=1))
        await shop.began.get()
    recovery = await recovering
    assert (outcomes(recovery), reasons(recovery)) == ({"b": "interrupted"}, {"a": "not_begun"})
    assert outcomes(await recovered(storage)).keys() == {"a", "b"}


async def test_whoever_stops_waiting_leaves_the_runs_to_the_runtime(storage):
    await left_by(storage, "a", "b")
    shop = Shop()
    async with shop.open(storage) as runtime:
        recovering = asyncio.ensure_future(runtime.resume_interrupted(at_once=1))
        await shop.began.get()
        recovering.cancel()
        shop.leave.set()
        assert (await runtime.wait("b")).outcome == "completed"
        assert (await runtime.get("a")).outcome == "interrupted"


async def test_without_storage_nothing_can_be_resumed():
    async with Shop().open(None) as runtime:
        with pytest.raises(InputError, match="Without storage"):
            await runtime.resume_interrupted()
        for name in ("at_once", "limit"):
            async with Shop().open(":memory:") as other:
                with pytest.raises(InputError, match=f"{name}=0 resumes nothing"):
                    await other.resume_interrupted(**{name: 0})


def test_synchronous_code_resumes_and_lists_runs(tmp_path):
    shop = Shop()
    shop.leave.set()
    with shop.open(tmp_path / "runs.db") as runtime:
        run_id = runtime.run(ASKS).run_id
        recovery = runtime.resume_interrupted(at_once=1, limit=5, by="startup")
        assert reasons(recovery) == {run_id: "waiting"}
        assert [each.run_id for each in runtime.runs(status="waiting")] == [run_id]


async def test_runs_are_listed_by_their_status(where):
    async with open_storage(where) as storage:
        await left_by(storage, "killed")
        await left_by(storage, "shut", is_killed=False)
        shop = Shop()
        async with shop.open(storage) as runtime:
            await runtime.run(ASKS, run_id="asks")
            await runtime.start(PLAN, run_id="works", labels={"user": "eva"})
            await shop.began.get()

            async def listed(status, **options):
                return [each.run_id for each in await runtime.runs(status=status, **options)]

            assert await listed("interrupted") == ["shut", "killed"]
            assert await listed("running") == ["works"]
            assert await listed(["waiting", "running"]) == ["works", "asks"]
            assert await listed({"interrupted"}, limit=1) == ["shut"]
            assert await listed("interrupted", labels={"user": "eva"}) == []
            assert await listed(()) == ["works", "asks", "shut", "killed"]
            assert await listed("completed") == []
            with pytest.raises(InputError, match="no status 'done' of runs"):
                await listed(["running", "done"])
