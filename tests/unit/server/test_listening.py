"""Waiting for the end of a process that does nothing but serve."""

import asyncio
import gc
import os
import signal

from replan.server.listening import until_signalled


async def test_what_was_loaded_before_serving_is_kept_from_the_garbage_collector():
    waiting = asyncio.ensure_future(until_signalled())
    try:
        await asyncio.sleep(0)
        assert gc.get_freeze_count() > 0
        os.kill(os.getpid(), signal.SIGTERM)
        await waiting
    finally:
        gc.unfreeze()
