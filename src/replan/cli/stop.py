"""`replan stop`: stop a run, whichever process works on it."""
# ruff: noqa: PLC0415 - the help of a command loads no framework

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, TextIO

from replan.cli.shared.options import RunArgument, StorageOption
from replan.cli.shared.process import end_with, place

if TYPE_CHECKING:
    from replan.user_files.place import Place


def stop(run_id: RunArgument, *, storage: StorageOption = None) -> None:
    """Stop a run in any process: running steps may end, and the run can continue later."""
    end_with(lambda: stop_run(run_id, place(storage), sys.stdout))


def stop_run(prefix: str, place: Place, output: TextIO) -> int:
    """Ask a run to stop; its owner reads that within a second."""
    output.write(asyncio.run(_stopped(prefix, place)))
    return 0


async def _stopped(prefix: str, place: Place) -> str:
    from replan.assembly.graphs import viewer
    from replan.runtime import open_runtime
    from replan.user_files.order_signature import own_name
    from replan.user_files.place import found, opened_kept, short

    async with opened_kept(place) as storage:
        record = await found(storage.runs, prefix)
        async with open_runtime(viewer(storage), storage=storage) as runtime:
            await runtime.stop(record.run_id, by=own_name())
            view = await runtime.look(record.run_id)
    how = "is asked to stop" if view.outcome == "running" else f"is not at work: {view.outcome}"
    return f"run {short(record.run_id)} {how}\n"
