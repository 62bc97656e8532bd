"""The runs of a period, read from a storage."""

from collections.abc import Callable
from datetime import datetime

from replan.log.report import RunReport
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.calling.compiled import Graph
from replan.runs.reports import read_run
from replan.runs.statuses import page_of, records_of

MOST_RUNS = 2_000
"""Runs of a period that are added up: the newest ones."""


async def runs_since(
    since: datetime | None,
    storage: Storage,
    graph_of: Callable[[RunRecord], Graph],
    at: datetime,
    is_seen: Callable[[RunRecord], bool] = lambda _: True,
) -> tuple[list[RunReport], bool]:
    """Read the newest runs that began since then, and say whether there are more.

    Args:
        since: When the period begins; None: with the first run.
        storage: Where they are.
        graph_of: Gives what reads the state of a run.
        at: Now.
        is_seen: Whether a run counts.
    """

    async def read(record: RunRecord) -> RunReport | None:
        seen = is_seen(record)
        return await read_run(graph_of(record), storage, record, at) if seen else None

    records = records_of(storage.runs, since=since)
    reports, last = await page_of(records, MOST_RUNS, read, MOST_RUNS)
    return reports, bool(last)
