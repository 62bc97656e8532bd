"""The account of a run: calls wait for room that others make, and are refused when none will."""

import asyncio

import pytest
from hypothesis import given, strategies as st

from replan import open_storage
from replan.errors import LimitReachedError
from replan.log.amounts import Bound, Reservation, Spending
from replan.models.spending import account as accounts
from replan.models.spending.account import Account, Accounts
from replan.models.spending.deadline import TIMES
from replan.models.spending.scopes import CallRequest, Scope
from replan.state.limits import Budget
from replan.storage.memory_log import memory_log


def run_scope(**limits):
    return Scope("run", Budget(**limits))


def call(name, tokens=100, scope=None, others=(), **options):
    """A call that wants so many tokens, of which one is for its request."""
    scopes = [scope or run_scope(max_tokens=1_000), *others]
    given = {"model": "m", "input_tokens": 1, "output_tokens": tokens - 1, **options}
    return CallRequest(id=name, run_id="r", scopes=scopes, **given)


def used(tokens):
    return Spending(calls=1, tokens=tokens)


async def settled():
    """Let everything run that can run."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
def log():
    return memory_log()


@pytest.fixture
def spends(log):
    return Account(log, "r")


async def tokens_of(log, scope="run"):
    return (await log.spent("r")).get(scope, Spending()).tokens


async def test_a_call_waits_for_room_and_gets_it_when_another_is_settled(spends, log):
    first = await spends.take(call("1", 700))
    waiting = asyncio.ensure_future(spends.take(call("2", 700)))
    await settled()
    assert not waiting.done()
    await spends.settle(first, used(50))
    assert (await waiting).reservation.amount.tokens == 700
    assert await tokens_of(log) == 750


async def test_a_call_does_not_wait_for_calls_that_make_no_room_for_it(spends):
    small = Scope("step/1", Budget(max_tokens=50))
    await spends.take(call("1", 90))
    with pytest.raises(LimitReachedError, match="max_tokens=50 of step 1"):
        await asyncio.wait_for(spends.take(call("2", 60, others=[small], input_tokens=55)), 5)


async def test_a_call_is_refused_when_nothing_in_flight_could_make_room(spends):
    await spends.settle(await spends.take(call("1", 1_000)), used(990))
    with pytest.raises(LimitReachedError, match="max_tokens=1000 is reached"):
        await spends.take(call("2", 700))


async def test_a_call_that_a_thread_ends_while_another_looks_for_room_makes_room(
    spends, monkeypatch
):
    first = await spends.take(call("1", 700))
    makes_room, loop = spends.makes_room, asyncio.get_running_loop()

    def ended_first(wanted, error):
        # A thread settles a call whenever it likes.
        if spends.ended == 0:
            spends.settle_now(first, used(50), loop)
        return makes_room(wanted, error)

    monkeypatch.setattr(spends, "makes_room", ended_first)
    assert (await spends.take(call("2", 700))).reservation.amount.tokens == 700
    await spends.wait_written()


async def test_a_call_waits_no_longer_than_its_patience_while_no_call_ends(spends):
    first = await spends.take(call("1", 900))
    with pytest.raises(LimitReachedError, match="max_tokens=1000"):
        await asyncio.wait_for(spends.take(call("2", 700), patience=0.01), 5)
    await spends.settle(first, used(1))
    assert spends.is_at_rest


async def test_a_call_that_was_given_up_stays_charged_and_nobody_waits_for_it(spends, log):
    first = await spends.take(call("1", 900))
    waiting = asyncio.ensure_future(spends.take(call("2", 900)))
    await settled()
    spends.give_up(first)
    # It takes what is left, and the next one finds nothing.
    assert (await waiting).reservation.amount.tokens == 100
    with pytest.raises(LimitReachedError):
        await spends.take(call("3", 900, part_of=frozenset({"2"})))
    assert await tokens_of(log) == 1_000


async def test_a_call_inside_another_does_not_wait_for_it_nor_for_who_does(spends):
    outer = await spends.take(call("outer", 900))
    behind = asyncio.ensure_future(spends.take(call("behind", 900)))
    await settled()
    inner = call("inner", 50, part_of=frozenset({"outer"}))
    await asyncio.wait_for(spends.take(inner), 5)
    late = call("i", 900, part_of=frozenset({"outer"}), input_tokens=60)
    with pytest.raises(LimitReachedError):
        await asyncio.wait_for(spends.take(late), 5)
    await spends.settle(outer, used(1))
    await behind


async def test_a_log_that_has_less_room_has_the_last_word(spends, log):
    await spends.open()
    other = Reservation(id="other", run_id="r", amount=Spending(calls=1, tokens=700))
    await log.reserve(other, [Bound(scope="run", tokens=1_000)])
    # What another process holds is not waited for: the call gets what is left, or is refused.
    assert (await spends.take(call("1", 700))).reservation.amount.tokens == 300
    with pytest.raises(LimitReachedError, match="max_tokens=1000"):
        await spends.take(call("2", 700, part_of=frozenset({"1"})))


async def test_room_that_another_process_gives_back_is_found_before_a_call_is_refused(spends, log):
    other = Reservation(id="other", run_id="r", amount=Spending(calls=1, tokens=950))
    await log.reserve(other, [Bound(scope="run", tokens=1_000)])
    with pytest.raises(LimitReachedError):
        await spends.take(call("1", 100))
    await log.settle(other, used(10))
    assert (await spends.take(call("2", 700))).reservation.amount.tokens == 700


@pytest.mark.parametrize("method", ["reserve", "settle"])
async def test_a_write_that_fails_is_heard_and_keeps_nobody_waiting(log, method, monkeypatch):
    spends = Account(log, "r")
    permit = await spends.take(call("1", 600))

    async def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(log, method, fail)
    writes = {
        "reserve": lambda: spends.take(call("2", 300)),
        "settle": lambda: spends.settle(permit, used(1)),
    }
    with pytest.raises(OSError, match="disk full"):
        await writes[method]()
    monkeypatch.undo()
    if method == "reserve":
        spends.give_up(permit)
    with pytest.raises(LimitReachedError):
        await asyncio.wait_for(spends.take(call("3", 600, input_tokens=590)), 5)


async def test_who_cannot_wait_takes_what_is_there_or_is_refused_and_the_log_follows(spends, log):
    loop = asyncio.get_running_loop()
    await spends.open()
    first = spends.take_now(call("1", 800), loop)
    second = spends.take_now(call("2", 800), loop)
    assert second.most_output == 199
    with pytest.raises(LimitReachedError):
        spends.take_now(call("3", 800), loop)
    assert await tokens_of(log) == 0
    spends.settle_now(first, used(5), loop)
    third = spends.take_now(call("4", 700), loop)
    await spends.wait_written()
    assert await tokens_of(log) == 5 + 200 + 700
    spends.settle_now(second, used(6), loop)
    spends.settle_now(third, used(7), loop)
    await spends.wait_written()
    assert await tokens_of(log) == 18
    assert spends.is_at_rest


async def test_a_call_that_is_made_already_is_on_record_though_the_log_would_refuse_it(log):
    spends, scope = Account(log, "r"), run_scope(max_model_calls=1)
    await spends.open()
    other = Reservation(id="other", run_id="r", amount=Spending(calls=1))
    await log.reserve(other, [Bound(scope="run", calls=1)])
    spends.take_now(call("1", scope=scope), asyncio.get_running_loop())
    await spends.wait_written()
    assert (await log.spent("r"))["run"].calls == 2


async def test_what_a_call_used_beyond_its_reservation_is_charged_and_on_record(spends, log):
    scope = run_scope(max_tokens=1_000)
    permit = await spends.take(call("1", 900, scope))
    assert spends.passed([scope]) is None
    await spends.settle(permit, used(1_100))
    assert spends.passed([scope]) == ("max_tokens", 1_000, 100)
    rows = [row for row in await log.rows("r") if row.kind == "settled"]
    assert rows[0].value["beyond"] == {"calls": 0, "tokens": 200, "cost": 0.0}
    with pytest.raises(LimitReachedError):
        await spends.take(call("2"))


def test_only_the_newest_runs_are_remembered(log, monkeypatch):
    monkeypatch.setattr(accounts, "_MOST_RUNS", 2)
    known = Accounts()
    first = known.of(log, "1")
    assert known.of(log, "1") is first
    known.of(log, "2")
    known.of(log, "3")
    assert known.of(log, "1") is not first
    second = known.of(log, "3")
    known.close("3")
    assert known.of(log, "3") is not second


async def test_a_run_that_is_at_work_is_remembered_however_many_others_begin(log, monkeypatch):
    monkeypatch.setattr(accounts, "_MOST_RUNS", 2)
    known = Accounts()
    first = known.of(log, "1")
    scopes = [run_scope(max_seconds=9)]
    with first.clocks.at_work(scopes):
        for other in "2345":
            known.of(log, other)
        assert known.of(log, "1") is first
    known.of(log, "6")
    known.of(log, "7")
    assert known.of(log, "1") is not first


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["take", "take now", "settle", "give up", "cancel", "run"]),
        st.integers(0, 9),
        st.integers(1, 2_500),
        st.booleans(),
    ),
    max_size=60,
)


@given(
    steps=STEPS,
    calls=st.integers(1, 30),
    tokens=st.integers(1, 6_000),
    of_step=st.none() | st.integers(1, 3_000),
    processes=st.integers(1, 2),
)
def test_no_interleaving_goes_past_a_limit_or_leaves_anybody_waiting(
    steps, calls, tokens, of_step, processes
):
    asyncio.run(_interleaved(steps, calls, tokens, of_step, processes))


async def _interleaved(steps, calls, tokens, of_step, processes):
    course = Course(calls, tokens, of_step, processes)
    for what, which, size, flag in steps:
        await course.go(what, which, size, flag=flag)
        await course.check()
    while not all(task.done() for task in course.tasks):
        await settled()
        while course.permits:
            await course.go("settle", 0, 1, flag=False)
        await course.check()
    failures = [task.exception() for task in course.tasks if not task.cancelled()]
    assert all(error is None or isinstance(error, LimitReachedError) for error in failures)


class Course:
    """Calls that are asked for, made, settled, given up and cancelled in any order."""

    def __init__(self, calls, tokens, of_step, processes):
        self.most = {"run": (calls, tokens), "step/1": (calls, of_step or 0)}
        self.log, self.tasks, self.permits = memory_log(), [], []
        self.processes = [Account(self.log, "r") for _ in range(processes)]
        self.scope = run_scope(max_model_calls=calls, max_tokens=tokens)
        self.inner = [Scope("step/1", Budget(max_tokens=of_step))] if of_step else []
        self.made = 0

    async def go(self, what, which, size, *, flag):
        spends = self.processes[which % len(self.processes)]
        if what in ("take", "take now"):
            self.made += 1
            asked = call(f"{self.made}", size + 1, self.scope, self.inner if flag else [])
            # Only where no other process spends, what cannot wait stays within the limits.
            if what == "take" or len(self.processes) > 1:
                self.tasks.append(asyncio.ensure_future(self.one(asked, spends)))
            else:
                await self.one_now(asked, spends)
        elif what == "cancel" and self.tasks:
            self.tasks[which % len(self.tasks)].cancel()
        elif what == "settle" and self.permits:
            spends, permit = self.permits.pop(which % len(self.permits))
            await spends.settle(permit, used(min(size, permit.reservation.amount.tokens)))
        elif what == "give up" and self.permits:
            spends, permit = self.permits.pop(which % len(self.permits))
            spends.give_up(permit)
        else:
            await settled()

    async def one(self, asked, spends):
        self.permits.append((spends, await spends.take(asked)))

    async def one_now(self, asked, spends):
        await spends.open()
        try:
            permit = spends.take_now(asked, asyncio.get_running_loop())
        except LimitReachedError:
            return
        await spends.wait_written()
        self.permits.append((spends, permit))

    async def check(self):
        for scope, spent in (await self.log.spent("r")).items():
            calls, tokens = self.most[scope]
            assert spent.calls <= calls
            assert spent.tokens <= tokens


@pytest.mark.parametrize("how", ["ends", "is recorded"])
async def test_a_call_that_begins_while_the_log_is_read_counts(spends, log, monkeypatch, how):
    loop, read, go_on = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    charged = log.charged

    async def slowly(run_id):
        found = await charged(run_id)
        read.set()
        await go_on.wait()
        return found

    await spends.open()
    spends.spends_elsewhere()
    monkeypatch.setattr(log, "charged", slowly)
    reading = asyncio.ensure_future(spends.charged())
    await read.wait()
    scope = run_scope(max_model_calls=1)
    # As a thread does it, in code that cannot wait.
    permit = spends.take_now(call("1", scope=scope), loop)
    if how == "ends":
        spends.settle_now(permit, used(50), loop)
    else:
        # The log has it before the reader hears of what it read.
        await spends.wait_written()
    go_on.set()
    assert (await reading).calls == 1
    with pytest.raises(LimitReachedError):
        spends.take_now(call("2", scope=scope), loop)


async def test_each_of_two_readers_waits_for_what_is_being_written(spends, log, monkeypatch):
    loop, writing, go_on = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    reserve = log.reserve

    async def slowly(*given):
        writing.set()
        await go_on.wait()
        return await reserve(*given)

    await spends.open()
    spends.spends_elsewhere()
    monkeypatch.setattr(log, "reserve", slowly)
    # The call of a thread is over before the log has heard that it began.
    permit = spends.take_now(call("1", scope=run_scope(max_model_calls=1)), loop)
    await writing.wait()
    spends.settle_now(permit, used(50), loop)
    readers = [asyncio.ensure_future(spends.charged()) for _ in range(2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    go_on.set()
    assert [each.calls for each in await asyncio.gather(*readers)] == [1, 1]


async def test_who_takes_a_run_again_knows_what_it_spent_elsewhere(tmp_path):
    """A run that waits may go on in another process, and come back."""
    path, own = tmp_path / "runs.db", Accounts()
    async with open_storage(path) as here, open_storage(path) as elsewhere:
        async with here.holds.lock("t") as owner:
            with owner.at_work():
                account = own.of(here.log, "r")
                await account.settle(await account.take(call("1")), used(10))
                assert own.of(here.log, "r") is account
        async with elsewhere.holds.lock("t") as owner:
            with owner.at_work():
                later = Accounts().of(elsewhere.log, "r")
                await later.settle(await later.take(call("2")), used(20))
                await elsewhere.log.note("r", f"{TIMES}run/40.000", 40.0)
        async with here.holds.lock("t") as owner:
            with owner.at_work():
                account = own.of(here.log, "r")
                assert (await account.charged()).tokens == 30
                left, _ = account.clocks.left([run_scope(max_seconds=50)])
                assert left == 10
