"""The board of a round: places by priority, results for who waits, nobody hangs."""

import asyncio
import gc
import weakref

import pytest
from hypothesis import given, strategies as st

from replan import SpecialistResult
from replan.log.run_log import RunLog
from replan.specialists.steps.board import Board, Boards, Slots
from replan.storage.memory_log import MemoryLogs

RESULT = SpecialistResult(specialist_name="a", step_id=1)


class Worker:
    """Holds a place from when it gets one until it is told to leave."""

    def __init__(self, slots, name=0, priority=0, order=None):
        self.leave, self.holds = asyncio.Event(), False
        self.name, self.order = name, [] if order is None else order
        self.task = asyncio.ensure_future(self._work(slots, priority))

    async def _work(self, slots, priority):
        async with slots.take(priority):
            self.order.append(self.name)
            self.holds = True
            try:
                await self.leave.wait()
            finally:
                self.holds = False


async def settle():
    """Let every task that can go on go on."""
    for _ in range(10):
        await asyncio.sleep(0)


async def finish(workers):
    for worker in workers:
        worker.leave.set()
    await asyncio.gather(*(worker.task for worker in workers), return_exceptions=True)


async def test_the_most_urgent_waiter_gets_the_next_place_and_the_first_of_equals():
    slots, order = Slots(1), []
    workers = []
    for name, priority in [("first", 0), ("low", 1), ("high", 5), ("high too", 5), ("lower", -1)]:
        workers.append(Worker(slots, name, priority, order))
        await settle()
    await finish(workers)
    assert order == ["first", "high", "high too", "low", "lower"]


async def test_a_place_comes_back_when_its_holder_fails():
    slots = Slots(1)

    async def fail():
        async with slots.take(0):
            raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            await fail()
    await asyncio.wait_for(slots.take(0).__aenter__(), 5)


async def test_a_waiter_that_is_cancelled_the_moment_it_gets_its_place_gives_it_back():
    slots = Slots(1)
    holder, unlucky, next_one = (Worker(slots, name) for name in range(3))
    await settle()
    holder.leave.set()
    # The holder leaves and hands its place over; the waiter has not gone on yet.
    while not holder.task.done():
        await asyncio.sleep(0)
        if not holder.holds:
            unlucky.task.cancel()
    await settle()
    assert unlucky.task.cancelled()
    assert next_one.holds
    await finish([next_one])


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), st.integers(0, 3)),
        st.tuples(st.sampled_from(["cancel", "leave"]), st.integers(0, 9)),
        st.just(("tick", 0)),
    ),
    max_size=30,
)


@given(st.integers(1, 3), ACTIONS)
def test_no_place_is_lost_or_made_whoever_is_cancelled_and_when(count, actions):
    async def play():
        slots, workers = Slots(count), []
        for action, number in actions:
            match action:
                case "enter":
                    workers.append(Worker(slots, priority=number))
                case "tick":
                    await asyncio.sleep(0)
                case "cancel" if number < len(workers):
                    workers[number].task.cancel()
                case "leave" if number < len(workers):
                    workers[number].leave.set()
            assert sum(worker.holds for worker in workers) <= count
        await settle()
        open_ = [worker for worker in workers if not worker.task.done()]
        assert sum(worker.holds for worker in open_) == min(count, len(open_))
        await finish(open_)
        fresh = [Worker(slots) for _ in range(count + 1)]
        await settle()
        assert sum(worker.holds for worker in fresh) == count
        await finish(fresh)

    asyncio.run(play())


async def test_a_seat_that_is_left_without_a_word_lets_nobody_hang():
    board = Board({})

    async def fail():
        async with board.seat("1/a"):
            await asyncio.sleep(0)
            raise ValueError("no")

    failing = asyncio.ensure_future(fail())
    await asyncio.sleep(0)
    assert await asyncio.wait_for(board.outcome("1/a"), 5) is None
    with pytest.raises(ValueError, match="no"):
        await failing


async def test_a_waiter_that_is_cancelled_does_not_take_the_result_from_the_others():
    board = Board({})
    async with board.seat("1/a"):
        cancelled, waiting = (asyncio.ensure_future(board.outcome("1/a")) for _ in range(2))
        await settle()
        cancelled.cancel()
        await settle()
        board.publish("1/a", RESULT)
    assert await waiting == RESULT
    assert cancelled.cancelled()


async def test_the_log_is_read_once_a_round_however_many_ask():
    class Counting(RunLog):
        read = 0

        async def results(self, run_id):
            self.read += 1
            await asyncio.sleep(0)
            return await super().results(run_id)

    log, board = Counting(MemoryLogs()), Board({"run_id": "r"})
    await asyncio.gather(*(board.load(log) for _ in range(9)))
    assert log.read == 1


def state():
    return {"max_rounds": 7}


def test_a_board_is_gone_when_the_last_task_of_its_round_is():
    boards = Boards()
    gone = weakref.ref(boards.join("r", "c", state))
    gc.collect()
    assert gone() is None
