"""The account of a run: calls wait for room that others make, and are refused when none will."""

import asyncio
import math

import pytest
from hypothesis import given, strategies as st

from replan.errors import LimitReachedError
from replan.log.amounts import Bound, Reservation, Spending
from replan.spending import account as accounts
from replan.spending.account import Account, Accounts
from replan.spending.fitting import Ask
from replan.spending.scopes import Scope
from replan.state.limits import Budget
from replan.storage.memory_log import memory_log


def run_scope(**limits):
    return Scope("run", Budget(**limits))


def ask(name, tokens=100, scope=None, others=(), **options):
    """Ask for a reply of so many tokens; the request itself is next to nothing."""
    scopes = [scope or run_scope(max_tokens=1_000), *others]
    given = {"cuttable": False, "model": "m", "input_tokens": 1, "output_tokens": tokens - 1}
    given |= options
    likely = math.ceil(given["input_tokens"] / 2)
    return Ask(id=name, run_id="r", scopes=scopes, likely_tokens=likely, **given)


PLACE = "elsewhere/step/"


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
async def spends(log):
    """An account that has seen what replies of the model are like."""
    account = Account(log, "r")
    first = await account.take(ask("first", 10, run_scope()))
    await account.settle(first, Spending(), (1, 500))
    return account


async def tokens_of(log, scope="run"):
    return (await log.spent("r")).get(scope, Spending()).tokens


async def test_a_call_waits_for_room_and_gets_it_when_another_is_settled(spends, log):
    first = await spends.take(ask("1", 700))
    waiting = asyncio.ensure_future(spends.take(ask("2", 700)))
    await settled()
    assert not waiting.done()
    await spends.settle(first, used(50), (1, 49))
    assert (await waiting).reservation.amount.tokens == 700
    assert await tokens_of(log) == 750


async def test_a_call_that_was_settled_and_is_still_on_record_keeps_no_room(spends, log):
    first = await spends.take(ask("1", 700))
    spends.settle_now(first, used(50))
    second = await asyncio.wait_for(spends.take(ask("2", 700)), 5)
    await spends.record_settled(first, used(50))
    assert (second.reservation.amount.tokens, await tokens_of(log)) == (700, 750)


async def test_who_waits_is_served_in_order_and_nobody_is_overtaken(spends):
    order = []

    async def one(name, tokens):
        permit = await spends.take(ask(name, tokens))
        order.append(name)
        return permit

    first = await one("first", 900)
    tasks = []
    for name, tokens in (("large", 900), ("small", 50), ("smaller", 20)):
        tasks.append(asyncio.ensure_future(one(name, tokens)))
        await settled()
    # There is room for the small ones, but the large one came first.
    assert order == ["first"]
    await spends.settle(first, used(30))
    assert [await task for task in tasks[:3]]
    assert order == ["first", "large", "small", "smaller"]


async def test_who_waits_in_one_scope_keeps_nobody_waiting_in_another(spends):
    step = Scope("step/1", Budget(max_tokens=100))
    first = await spends.take(ask("1", 90, others=[step]))
    behind = asyncio.ensure_future(spends.take(ask("2", 90, others=[step])))
    await settled()
    await spends.take(ask("3", 90, others=[Scope("step/2", Budget(max_tokens=100))]))
    assert not behind.done()
    await spends.settle(first, used(1))
    await behind


async def test_a_call_is_refused_when_nothing_on_its_way_could_make_room(spends):
    await spends.settle(await spends.take(ask("1", 1_000)), used(990))
    with pytest.raises(LimitReachedError, match="max_tokens=1000 is reached"):
        await spends.take(ask("2", 700))


async def test_those_who_wait_are_refused_when_the_room_that_they_hoped_for_is_used(spends):
    first = await spends.take(ask("1", 900))
    waiting = [asyncio.ensure_future(spends.take(ask(f"w{n}", 700))) for n in range(3)]
    await settled()
    await spends.settle(first, used(990))
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [LimitReachedError] * 3


async def test_calls_on_their_way_make_no_room_for_calls(log):
    spends, scope = Account(log, "r"), run_scope(max_model_calls=1)
    await spends.take(ask("1", scope=scope))
    with pytest.raises(LimitReachedError, match="max_model_calls=1"):
        await spends.take(ask("2", scope=scope))


async def test_who_stops_waiting_leaves_the_way_to_those_behind(spends):
    first = await spends.take(ask("1", 600))
    large = asyncio.ensure_future(spends.take(ask("2", 900)))
    await settled()
    small = asyncio.ensure_future(spends.take(ask("3", 300)))
    await settled()
    assert not small.done()
    large.cancel()
    assert (await small).reservation.id == "3"
    await spends.settle(first, used(1))


async def test_who_is_cancelled_in_the_moment_of_being_served_gives_back(spends, log):
    first = await spends.take(ask("1", 900))
    served = asyncio.ensure_future(spends.take(ask("2", 900)))
    behind = asyncio.ensure_future(spends.take(ask("3", 900)))
    await settled()
    await spends.settle(first, used(10))
    served.cancel()
    with pytest.raises(asyncio.CancelledError):
        await served
    assert (await behind).reservation.id == "3"
    assert await tokens_of(log) == 910


async def test_a_call_that_was_given_up_stays_charged_and_nobody_waits_for_it(spends, log):
    first = await spends.take(ask("1", 900))
    waiting = asyncio.ensure_future(spends.take(ask("2", 900)))
    await settled()
    spends.give_up(first)
    with pytest.raises(LimitReachedError):
        await waiting
    assert await tokens_of(log) == 900
    # What it says later is put on record, and makes no room any more in this process.
    await spends.settle(first, used(10))
    assert await tokens_of(log) == 10


async def test_what_a_crash_left_unsettled_is_charged_in_full_and_not_waited_for(log):
    lost = Reservation(id="lost", run_id="r", amount=Spending(calls=1, tokens=600))
    await log.reserve(lost, [Bound(scope="run", tokens=1_000)])
    spends = Account(log, "r")
    with pytest.raises(LimitReachedError):
        await asyncio.wait_for(spends.take(ask("1", 700, cuttable=True, input_tokens=800)), 5)
    await spends.take(ask("2", 400))
    assert await tokens_of(log) == 1_000


async def test_of_a_model_that_nothing_is_known_of_one_call_goes_ahead_alone(log):
    spends = Account(log, "r")
    first = await spends.take(ask("1", 10))
    same = asyncio.ensure_future(spends.take(ask("2", 10)))
    other = await spends.take(ask("3", 10, model="another"))
    await settled()
    assert not same.done()
    # Its replies turn out to be so long that two of them at once are too many.
    await spends.settle(first, used(600), (1, 599))
    assert (await same).reservation.amount.tokens == 10
    await spends.settle(other, used(1))
    # A reply that its server cuts needs nobody to go ahead.
    await asyncio.gather(*(spends.take(ask(f"c{n}", 10, cuttable=True)) for n in range(3)))


async def test_a_call_inside_another_does_not_wait_for_it_nor_for_who_does(spends):
    outer = await spends.take(ask("outer", 900))
    behind = asyncio.ensure_future(spends.take(ask("behind", 900)))
    await settled()
    inner = ask("inner", 50, part_of=frozenset({"outer"}))
    await asyncio.wait_for(spends.take(inner), 5)
    with pytest.raises(LimitReachedError):
        await asyncio.wait_for(spends.take(ask("i", 900, part_of=frozenset({"outer"}))), 5)
    await spends.settle(outer, used(1))
    await behind


async def test_a_log_that_has_less_room_has_the_last_word(spends, log):
    other = Reservation(id="other", run_id="r", amount=Spending(calls=1, tokens=700))
    await log.reserve(other, [Bound(scope="run", tokens=1_000)])
    with pytest.raises(LimitReachedError, match="max_tokens=1000"):
        await spends.take(ask("1", 700))
    # And this process has learned of it.
    assert (await spends.take(ask("2", 300))).reservation.amount.tokens == 300


@pytest.fixture
async def shared(log):
    """The account of a run, and that of a process which does a step of it."""
    owner, guest = Account(log, "r"), Account(log, "r")
    await owner.share()
    await guest.share(PLACE)
    return owner, guest


async def looked(*processes):
    """Let all who wait see what other processes settled."""
    for one in processes:
        await one.refresh()
    await settled()


async def test_a_call_waits_for_room_that_another_process_holds(shared, log):
    owner, guest = shared
    mine = await owner.take(ask("1", 700))
    theirs = asyncio.ensure_future(guest.take(ask(f"{PLACE}2", 700)))
    await looked(*shared)
    assert not theirs.done()
    await owner.settle(mine, used(50))
    await looked(*shared)
    await guest.settle(await theirs, used(300))
    # And the other way round; who takes the room meanwhile is waited for, too.
    await guest.take(ask(f"{PLACE}3", 400))
    last = asyncio.ensure_future(owner.take(ask("4", 600, cuttable=True, input_tokens=500)))
    await looked(*shared)
    assert not last.done()
    await log.settle(Reservation(id=f"{PLACE}3", run_id="r", amount=used(400)), used(20))
    await looked(*shared)
    assert (await last).reservation.amount.tokens <= 1_000 - 370


async def test_a_call_is_refused_if_what_is_settled_elsewhere_leaves_no_room(shared):
    owner, guest = shared
    mine = await owner.take(ask("1", 1_000))
    waits = asyncio.ensure_future(guest.take(ask(f"{PLACE}2", 700)))
    await looked(*shared)
    await owner.settle(mine, used(990))
    await looked(*shared)
    for refused in (waits, guest.take(ask(f"{PLACE}3", 700))):
        with pytest.raises(LimitReachedError, match="max_tokens=1000 is reached"):
            await refused


async def test_nobody_waits_for_what_processes_left_that_died(shared, log):
    owner, guest = shared
    await guest.take(ask(f"{PLACE}1", 450))
    await owner.take(ask("1", 450))
    big = {"tokens": 500, "cuttable": True, "input_tokens": 450}
    # Others do both; the run is taken up by who shares it again, the step by another worker.
    owner, guest = Account(log, "r"), Account(log, "r")
    await guest.share(PLACE)
    waits = asyncio.ensure_future(guest.take(ask(f"{PLACE}2", **big)))
    await looked(guest)
    assert not waits.done()
    await owner.share()
    await looked(guest)
    for refused in (waits, owner.take(ask("2", **big))):
        with pytest.raises(LimitReachedError):
            await refused
    assert await tokens_of(log) == 900


@pytest.mark.parametrize("method", ["reserve", "settle"])
async def test_a_write_that_fails_is_heard_and_keeps_nobody_waiting(log, method, monkeypatch):
    spends = Account(log, "r")
    permit = await spends.take(ask("1", 600, cuttable=True))

    async def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(log, method, fail)
    writes = {
        "reserve": lambda: spends.take(ask("2", 300, cuttable=True)),
        "settle": lambda: spends.settle(permit, used(1)),
    }
    with pytest.raises(OSError, match="disk full"):
        await writes[method]()
    monkeypatch.undo()
    if method == "reserve":
        # Whether it was written is not known, so it stays charged here.
        spends.give_up(permit)
    with pytest.raises(LimitReachedError):
        await asyncio.wait_for(spends.take(ask("3", 600, cuttable=True, input_tokens=900)), 5)


async def test_who_asks_and_does_not_wait_gets_what_is_there_or_learns_what_is_missing(spends, log):
    permit = spends.ask(ask("1", 800))
    waiter = spends.ask(ask("2", 800))
    with pytest.raises(LimitReachedError), spends.in_line(waiter):
        spends.permit_of(waiter)
    with pytest.raises(LimitReachedError):
        spends.ask(ask("3", 800, run_scope(max_model_calls=1)))
    await spends.record(permit)
    spends.settle_now(permit, used(5))
    assert await tokens_of(log) == 800
    await spends.record_settled(permit, used(5))
    assert await tokens_of(log) == 5
    assert spends.is_at_rest


async def test_the_time_at_work_is_on_record_and_goes_on_from_there(log, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("replan.spending.deadline.time.monotonic", lambda: now[0])
    scopes = [run_scope(max_seconds=60), Scope("step/1", Budget(max_seconds=20)), run_scope()]
    spends = Account(log, "r")
    await spends.open()
    with spends.clocks.at_work(scopes):
        now[0] += 15
        assert spends.clocks.left(scopes) == (5, scopes[1])
        await spends.clocks.note(scopes)
        now[0] += 0.5
        await spends.clocks.note(scopes)
    assert list(await log.notes("r")) == ["seconds/run/15.000", "seconds/step/1/15.000"]
    again = Account(log, "r")
    await again.open()
    assert again.clocks.left(scopes[:1]) == (45, scopes[0])
    assert again.clocks.left(scopes)[0] == 5


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
        st.sampled_from(["take", "settle", "give up", "cancel", "run"]),
        st.integers(0, 9),
        st.integers(1, 500),
        st.booleans(),
    ),
    max_size=60,
)


@given(
    steps=STEPS,
    calls=st.integers(1, 30),
    tokens=st.integers(1, 2_000),
    of_step=st.none() | st.integers(1, 1_000),
    processes=st.integers(1, 2),
)
def test_no_interleaving_goes_past_a_limit_or_leaves_anybody_waiting(
    steps, calls, tokens, of_step, processes
):
    asyncio.run(_interleaved(steps, calls, tokens, of_step, processes))


async def _interleaved(steps, calls, tokens, of_step, processes):
    course = Course(calls, tokens, of_step, processes)
    await course.begin()
    for what, which, size, flag in steps:
        await course.go(what, which, size, flag=flag)
        await course.check()
    while not all(task.done() for task in course.tasks):
        await settled()
        while course.permits:
            await course.go("settle", 0, 1, flag=False)
        await course.go("run", 0, 1, flag=False)
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

    async def begin(self):
        if len(self.processes) > 1:
            await self.processes[0].share()
            await self.processes[1].share(PLACE)

    async def go(self, what, which, size, *, flag):
        if what == "take":
            inner = self.inner if flag else []
            number = which % len(self.processes)
            name = f"{PLACE if number else ''}{len(self.tasks)}"
            asked = ask(name, size + 1, self.scope, inner, cuttable=flag)
            self.tasks.append(asyncio.ensure_future(self.one(asked, self.processes[number])))
        elif what == "cancel" and self.tasks:
            self.tasks[which % len(self.tasks)].cancel()
        elif what == "settle" and self.permits:
            spends, permit = self.permits.pop(which % len(self.permits))
            size = min(size, permit.reservation.amount.tokens)
            await spends.settle(permit, used(size), (1, size))
        elif what == "give up" and self.permits:
            spends, permit = self.permits.pop(which % len(self.permits))
            spends.give_up(permit)
            if spends.is_shared:
                await spends.share()
        else:
            await looked(*self.processes)

    async def one(self, asked, spends):
        self.permits.append((spends, await spends.take(asked)))

    async def check(self):
        for scope, spent in (await self.log.spent("r")).items():
            calls, tokens = self.most[scope]
            assert spent.calls <= calls
            assert spent.tokens <= tokens
