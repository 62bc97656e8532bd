"""How a process ends under work that does not want to end."""

import asyncio

import warm
from replan.base.own_loop import is_work_left, run_in_own_loop

STUBBORN = """
import asyncio, sys
from replan.base import own_loop
from replan.cli import main

async def never():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

async def work():
    work.task = asyncio.create_task(never())
    await asyncio.sleep(0)

own_loop.run_in_own_loop(work)
main.app = lambda **_: sys.exit(3)
main.main()
"""


def test_what_ends_when_it_is_cancelled_is_waited_for():
    ended = []

    async def goes():
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append(True)

    async def work():
        work.task = asyncio.create_task(goes())
        await asyncio.sleep(0)
        return 7

    assert run_in_own_loop(work) == 7
    assert ended == [True]
    assert not is_work_left()


def test_a_process_ends_under_a_task_that_ignores_its_cancellation():
    ended = warm.run("-c", STUBBORN)
    assert (ended.returncode, ended.stderr) == (3, "")
