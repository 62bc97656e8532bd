"""The status of a run, the list of runs by it, and the runs of a period."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import aclosing
from datetime import datetime
from typing import TypeVar

from typing_extensions import TypeAliasType

from replan.base.errors import InputError
from replan.log.report import RunReport
from replan.ports.run_book import BY_NEED, RunBook, RunOrder, RunOutcome, RunRecord
from replan.ports.storage import Storage
from replan.runs.calling.compiled import Graph
from replan.runs.reports import read_run

T = TypeVar("T")

RunStatus = TypeAliasType("RunStatus", RunOutcome)
"""The status of a run.

`running`: a process works on it, or will. `waiting`: it waits for a person. `interrupted`: it was
stopped, or its process was killed. Otherwise how it ended: `answered`, `completed`, `partial`,
`failed` or `rejected`.
"""

PAGE = 50  # runs that are read at once

SCANNED = 1_000
"""Runs that are looked at for one page of a list, if it says nothing else."""


def checked_statuses(status: RunStatus | Collection[RunStatus] | None) -> frozenset[RunStatus]:
    """The statuses that a caller names: one, several, or none.

    Raises:
        InputError: There is no such status.
    """
    named: Collection[RunStatus] = (status,) if isinstance(status, str) else status or ()
    if unknown := sorted(set(named) - set(BY_NEED)):
        raise InputError(
            f"There is no status '{unknown[0]}' of runs. Give one or several of: "
            f"{', '.join(BY_NEED)}."
        )
    return frozenset(named)


async def records_of(  # noqa: PLR0913 - what a list may ask for
    book: RunBook,
    *,
    labels: Mapping[str, str] | None = None,
    statuses: Collection[RunOutcome] = (),
    page: int = PAGE,
    behind: RunRecord | None = None,  # the run after which they begin
    order: RunOrder = "began",
    since: datetime | None = None,  # those that began then or later
) -> AsyncGenerator[RunRecord]:
    """Yield the runs that may have one of these statuses, by default the newest first, by pages.

    The record of a run whose process was killed says `running`: what it is tells its report.
    """
    said: set[RunOutcome] = {*statuses, "running"} if statuses else set()
    while True:
        records = await book.recent(page, labels, behind=behind, outcomes=said, order=order)
        for record in records:
            if since is not None and record.started_at < since:
                return
            yield record
        if len(records) < page:
            return
        behind = records[-1]


async def page_of(
    records: AsyncGenerator[RunRecord],
    limit: int,
    entry_of: Callable[[RunRecord], Awaitable[T | None]],
    scanned: int = SCANNED,
) -> tuple[list[T], str]:
    """A page of a list of runs, and the run behind which the next one begins; empty at the end.

    Args:
        records: The runs, in the order of the list.
        limit: The entries of a page at most.
        entry_of: Makes the entry of a run; None for one that is not in the list.
        scanned: The runs at most that are looked at.
    """
    entries, last = list[T](), ""
    async with aclosing(records):
        async for record in records:
            if len(entries) == limit or not scanned:
                return entries, last
            last, scanned = record.run_id, scanned - 1
            if (entry := await entry_of(record)) is not None:
                entries.append(entry)
    return entries, ""


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
