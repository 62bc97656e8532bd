"""What a runtime reads of its runs."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

from langgraph.types import StateSnapshot

from replan.base.errors import InputError
from replan.log.calls import with_counted
from replan.log.events.types import Event
from replan.log.kept_events import event_of, events_of
from replan.log.report import RunReport
from replan.log.rows import STEERS
from replan.log.whole_results import whole_values
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.asked.asks import open_asks, state_at_rest
from replan.runs.asked.requests import BEAT
from replan.runs.calling.compiled import shapes_of
from replan.runs.reports import read_run, snapshot_of, with_equal_calls
from replan.runs.result import RunResult, result_of
from replan.runs.run_at_work import Resources
from replan.state.enhanced import EnhancedState


async def record_of(run_id: str, resources: Resources) -> RunRecord:
    """The entry of a run in the list of runs."""
    record = await resources.runs.get(run_id)
    if record is None:
        problem = f"There is no run '{run_id}' here."
        raise InputError(f"{problem} `runtime.runs()` and `replan runs` list the newest.")
    return record


async def kept_record_of(run_id: str, resources: Resources) -> RunRecord:
    """The entry of a run that outlives its call."""
    check_keeps_runs(resources)
    return await record_of(run_id, resources)


def check_keeps_runs(resources: Resources) -> None:
    if resources.storage is None:
        raise InputError(
            "Without storage, a run ends with its call. Give `storage` to `open_runtime`, for "
            "example `storage='runs.db'`, or ':memory:' for as long as the process lives."
        )


async def report_of(record: RunRecord, resources: Resources, *, is_here: bool = False) -> RunReport:
    """The report of a run; `is_here` says whether this process works on it."""
    if resources.storage is None:
        return await _report_without_storage(record, resources, is_here=is_here)
    report = await read_run(resources.graph, resources.storage, record, resources.clock())
    report = await with_equal_calls(report, resources.storage)
    status = (
        await resources.queued(record.run_id) if resources.queued and not report.is_held else None
    )
    if status is not None:
        # A worker has it, or will have it: also one that has just put it back.
        changes = {"outcome": "running", "is_held": True, "is_queued": status == "waits"}
        return report.model_copy(update=changes)
    return report


async def _report_without_storage(
    record: RunRecord, resources: Resources, *, is_here: bool
) -> RunReport:
    """What is known of a run that ends with its call."""
    return RunReport(
        **record.reported,
        spent={},
        is_held=is_here,
        requests=(),
        events=tuple(await events_on_record(record.run_id, resources)),
    )


async def state_of(run_id: str, resources: Resources) -> EnhancedState:
    """The state of a run with whole results: what its report does not tell, such as settings."""
    snapshot = await snapshot_of(resources.graph, await kept_record_of(run_id, resources))
    return await whole_values(cast("EnhancedState", snapshot.values), resources.log)


async def is_worked_on(run_id: str, resources: Resources, *, is_followed: bool = False) -> bool:
    """Whether a process works on a stored run, or its work waits in a queue."""
    # In this order: a worker has the job for as long as it works on the run.
    if resources.queued and await resources.queued(run_id, is_followed=is_followed):
        return True
    record = await record_of(run_id, resources)
    return resources.storage is not None and await resources.storage.works_on(record)


async def only_waits(run_id: str, snapshot: StateSnapshot, resources: Resources) -> bool:
    """Whether nothing can continue before a person answers, and no answer is there."""
    storage = cast("Storage", resources.storage)
    asks = await open_asks(snapshot, storage.log)
    if not asks or not all(ask.interrupt for ask in asks):
        return False
    requests = await storage.log.requests([run_id])
    is_asked = any(request.kind not in STEERS for request in requests)
    return not (await is_worked_on(run_id, resources) or is_asked)


async def result_at_rest(run_id: str, resources: Resources) -> RunResult:
    record = await record_of(run_id, resources)
    report = await report_of(record, resources)
    snapshot = await snapshot_of(resources.graph, record)
    usage = with_counted(report.usage, report.calls)
    state = {**state_at_rest(snapshot), "outcome": report.outcome, "usage": usage}
    whole = await whole_values(cast("EnhancedState", state), resources.log)
    return result_in(whole, resources)


def result_in(state: Mapping[str, Any], resources: Resources) -> RunResult:
    return result_of(cast("EnhancedState", state), shapes=shapes_of(resources.graph))


async def events_on_record(run_id: str, resources: Resources) -> list[Event]:
    return events_of(run_id, await resources.log.events(run_id))


async def follow_events(run_id: str, after: int, resources: Resources) -> AsyncGenerator[Event]:
    """The events of a run after a number, past and new, until no process works on it."""
    is_coming, waited = True, False
    while is_coming:
        # Checked before the events are read: a run that comes to rest then has reported them all.
        waits = resources.queued and await resources.queued(run_id, is_followed=True) == "waits"
        if waits and waited:
            await asyncio.sleep(BEAT)
            continue
        waited = bool(waits)
        is_coming = waited or await is_worked_on(run_id, resources, is_followed=True)
        for logged in await resources.log.events(run_id, after):
            after = logged.seq
            yield event_of(run_id, logged)
        if is_coming:
            await asyncio.sleep(BEAT)
