"""Adopt a run into a storage that was exported from another one."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, cast

from pydantic import JsonValue

from replan.calling.team_graph import alone
from replan.errors import InputError, ThreadBusyError
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.labels import checked_labels
from replan.runs.looking import config_of, snapshot_of
from replan.runs.reads import is_worked_on, kept_record_of
from replan.runs.run_input import title_of
from replan.runs.travel.portable import PortableRun, adopted, exported
from replan.runs.work import Bench


async def export_of(run_id: str, bench: Bench) -> PortableRun:
    """Take a run that waits or was stopped, with all that it takes to continue it.

    Raises:
        InputError: There is no such run, it is over, or it cannot travel.
        ThreadBusyError: A process works on the run.
    """
    record = await kept_record_of(run_id, bench)
    if await is_worked_on(run_id, bench):
        raise ThreadBusyError(record.thread_id)
    storage = cast("Storage", bench.storage)
    snapshot = await snapshot_of(bench.graph, record)
    return await exported(snapshot, bench.graph, storage.journal, storage.threads)


async def adopt_into(
    bench: Bench,
    run: PortableRun,
    thread_id: str,
    order: JsonValue,
    labels: Mapping[str, str] | None,
) -> None:
    """Enter a run from elsewhere into the list of runs, and put it on a new thread.

    Raises:
        InputError: The run is here already, the thread is not new, or runs are not kept.
    """
    if bench.storage is None:
        raise InputError("Without storage no run can be adopted. Give `storage`.")
    config = config_of(thread_id)
    async with alone(bench.graph, config) as owner:
        with owner.at_work() if owner else nullcontext():
            is_known = await bench.book.get(run.run_id) is not None
            if is_known or (await cast("Any", bench.graph).aget_state(config)).values:
                raise InputError(
                    f"The run '{run.run_id}' or the thread '{thread_id}' is here already. "
                    "Continue what is here, or adopt the run on a new thread of another storage."
                )
            await adopted(run, bench.graph, bench.storage.journal, thread_id)
            now = bench.clock()
            record = RunRecord(
                run_id=run.run_id,
                thread_id=thread_id,
                title=title_of(run.state),
                order=order,
                outcome="waiting" if run.waits else "interrupted",
                started_at=now,
                updated_at=now,
                labels=checked_labels(labels),
            )
            await bench.book.begin(record)
