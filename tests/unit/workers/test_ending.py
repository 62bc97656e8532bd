"""A worker ends although a cancellation of what it does meanwhile is lost."""

import asyncio

from replan.workers.worker import ended


async def test_a_task_that_lost_its_cancellation_is_cancelled_once_more():
    lost = 0

    async def without_end():
        nonlocal lost
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if lost:
                    raise
                lost += 1

    task = asyncio.ensure_future(without_end())
    await asyncio.sleep(0)
    await ended(task)
    assert (task.cancelled(), lost) == (True, 1)
