"""Stop a run, whichever process works on it."""

import asyncio
from getpass import getuser
from typing import TextIO

from replan.app import viewer
from replan.cli.keeping import Place, found, opened, short
from replan.runtime import open_runtime


def stop_run(prefix: str, place: Place, output: TextIO) -> int:
    """Ask a run to stop; its owner reads that within a second.

    Raises:
        UsageError: There is no such run, or the storage cannot be opened.
        StorageError: It cannot be asked.
    """
    output.write(asyncio.run(_stopped(prefix, place)))
    return 0


async def _stopped(prefix: str, place: Place) -> str:
    async with opened(place) as storage:
        record = await found(storage.runs, prefix)
        async with open_runtime(viewer(storage), storage=storage) as runtime:
            await runtime.stop(record.run_id, by=getuser())
            view = await runtime.look(record.run_id)
    how = "is asked to stop" if view.outcome == "running" else f"is not at work: {view.outcome}"
    return f"run {short(record.run_id)} {how}\n"
