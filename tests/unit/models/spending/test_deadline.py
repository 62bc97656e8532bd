"""The time of work: its own, and what the run and its parts have left."""

import asyncio
import gc
from contextlib import suppress

import pytest

from replan.errors import LimitReachedError
from replan.models.spending import deadline
from replan.models.spending.account import Account
from replan.models.spending.deadline import in_time
from replan.models.spending.meter import Meter
from replan.models.spending.scopes import Scope
from replan.state.limits import Budget, ClosingReserve
from replan.storage.memory_log import memory_log


@pytest.fixture
def log():
    return memory_log()


@pytest.fixture
async def account(log):
    opened = Account(log, "r")
    await opened.open()
    return opened


def meter(account, *scopes):
    return Meter(account, scopes or [Scope("run", Budget())], new_id=iter("abc").__next__)


async def hang():
    await asyncio.Event().wait()


@pytest.mark.parametrize("name", ["run", "specialist/a", "step/1"])
async def test_work_is_stopped_when_a_scope_has_no_time_left(account, name):
    scopes = [Scope("run", Budget(max_seconds=50)), Scope(name, Budget(max_seconds=0.05))]
    with pytest.raises(LimitReachedError) as caught:
        await in_time(hang, meter(account, *scopes), 60)
    assert (caught.value.limit, caught.value.scope) == ("max_seconds", name)
    # And no more work of it begins.
    begun = []

    async def work():
        begun.append(True)

    with pytest.raises(LimitReachedError):
        await in_time(work, meter(account, *scopes), 60)
    assert not begun


async def test_the_time_that_is_kept_back_is_there_for_who_may_use_it(account):
    kept = Scope("run", Budget(max_seconds=0.3), ClosingReserve(seconds=0.25))
    with pytest.raises(LimitReachedError, match=r"max_seconds=0\.3 is reached"):
        await in_time(hang, meter(account, kept))

    async def work():
        return "closing"

    closing = meter(account, Scope("run", Budget(max_seconds=0.3)))
    assert await in_time(work, closing) == "closing"


async def test_the_time_in_which_a_call_waits_for_room_is_not_the_works_own(account):
    counted = meter(account)

    async def work():
        with counted.waiting.running():
            await asyncio.sleep(0.1)
        return "done"

    assert await in_time(work, counted, 0.05) == "done"


async def test_work_that_cancels_itself_has_failed(account):
    async def work():
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="cancelled itself"):
        await in_time(work, meter(account))


async def test_work_that_will_not_stop_is_abandoned_and_its_clock_stands_still(
    account, monkeypatch
):
    monkeypatch.setattr(deadline, "GRACE", 0.02)
    release, ended = asyncio.Event(), asyncio.Event()

    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await release.wait()
            ended.set()
            raise ValueError("heard by nobody") from None

    scope = Scope("run", Budget(max_seconds=60))
    with pytest.raises(TimeoutError):
        await in_time(stubborn, meter(account, scope), 0.01)
    left = account.clocks.left([scope])
    release.set()
    await ended.wait()
    assert account.clocks.left([scope]) == left


async def test_work_that_fails_while_its_owner_is_cancelled_is_no_error_of_the_loop(account):
    gate, begun, told = asyncio.Event(), asyncio.Event(), []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    async def work():
        asyncio.current_task().add_done_callback(lambda _: owner.cancel())
        begun.set()
        await gate.wait()
        raise ValueError("too late")

    owner = asyncio.create_task(in_time(work, meter(account), 60))
    await begun.wait()
    gate.set()
    with suppress(asyncio.CancelledError):
        await owner
    assert owner.cancelled()
    # The loop tells of an error that nobody asked for when its task is gone.
    owner = None
    await asyncio.sleep(0)
    gc.collect()
    assert told == []
