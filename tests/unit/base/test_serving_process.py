"""Waiting for the end of a process that does nothing but serve."""

import asyncio
import gc
import os
import signal

from replan.base.own_loop import until_signalled


async def test_the_garbage_collector_of_a_server_looks_at_less():
    usual = gc.get_threshold()
    gc.set_threshold(pythons_own := 700)
    waiting = asyncio.ensure_future(until_signalled())
    try:
        await asyncio.sleep(0)
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > pythons_own
        os.kill(os.getpid(), signal.SIGTERM)
        await waiting
    finally:
        gc.unfreeze()
        gc.set_threshold(*usual)
