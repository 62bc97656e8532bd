"""A worker ends although a cancellation of what it does meanwhile is lost."""

import asyncio

from replan.workers.queue import open_queue
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


async def test_a_question_to_the_queue_loses_no_cancellation_while_it_is_given_a_connection(
    empty_database,
):
    async with open_queue(empty_database, connections=1) as queue:
        pool = queue.app.connector.pool

        async def asks():
            while True:
                await queue.has("run:r")
                await asyncio.Event().wait()

        # The cancellation comes so many turns of the loop after the connection is given back.
        for turns in range(8):
            held = await pool.getconn()
            asking = asyncio.ensure_future(asks())
            await asyncio.sleep(0.01)
            giving = asyncio.ensure_future(pool.putconn(held))
            for _ in range(turns):
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking}, timeout=2)
            assert asking.cancelled(), turns
            await giving
