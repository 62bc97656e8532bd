"""The status of a run, and the list of runs by it."""

from collections.abc import AsyncGenerator, Collection, Mapping

from typing_extensions import TypeAliasType

from replan.errors import InputError
from replan.ports.run_book import BY_NEED, RunBook, RunOutcome, RunRecord

RunStatus = TypeAliasType("RunStatus", RunOutcome)
"""The status of a run.

`running`: a process works on it, or will. `waiting`: it waits for a person. `interrupted`: it was
stopped, or its process was killed. Otherwise how it ended: `answered`, `completed`, `partial`,
`failed` or `rejected`.
"""

PAGE = 50  # runs that are read at once


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


async def records_of(
    book: RunBook,
    *,
    labels: Mapping[str, str] | None = None,
    outcomes: Collection[RunOutcome] = (),
    page: int = PAGE,
    behind: RunRecord | None = None,  # the run after which they begin
) -> AsyncGenerator[RunRecord]:
    """Yield the runs whose records read so, the newest first, page by page."""
    while True:
        records = await book.recent(page, labels, behind=behind, outcomes=outcomes)
        for record in records:
            yield record
        if len(records) < page:
            return
        behind = records[-1]
