"""The runs of a period, read from a storage."""

from collections.abc import Callable
from datetime import datetime

from replan.log.report import RunReport
from replan.ports.run_book import RunRecord
from replan.ports.storage import Storage
from replan.runs.calling.compiled import Graph
from replan.runs.reports import read_run

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
    reports: list[RunReport] = []
    # One more than are looked at tells whether there are more.
    records = await storage.runs.recent(MOST_RUNS + 1)
    for record in records[:MOST_RUNS]:
        if since is not None and record.started_at < since:
            return reports, False
        if is_seen(record):
            reports.append(await read_run(graph_of(record), storage, record, at))
    return reports, len(records) > MOST_RUNS
