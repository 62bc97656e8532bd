"""A book of runs in memory: it lives as long as the process."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from pydantic import JsonValue

from replan.adapters.memory_journal import MemoryJournal
from replan.adapters.storage.holding import Holds
from replan.ports.run_book import RunOutcome, RunRecord


class MemoryRunBook:
    """Rows about runs, for graphs without a database."""

    def __init__(
        self,
        journal: MemoryJournal,
        holds: Holds,
        forget_thread: Callable[[str], Awaitable[None]],
    ) -> None:
        self._journal = journal
        self._holds = holds
        self._forget_thread = forget_thread
        self._records: dict[str, RunRecord] = {}
        self._events: dict[str, list[JsonValue]] = {}

    async def begin(self, record: RunRecord) -> None:
        """Enter a run; one that is there keeps its order, title and beginning."""
        known = self._records.setdefault(record.run_id, record)
        self._records[record.run_id] = known.replace(
            outcome=record.outcome, updated_at=record.updated_at
        )

    async def update(self, run_id: str, outcome: RunOutcome, at: datetime) -> None:
        """Say how a run stands; a run that is not there stays so."""
        if run_id in self._records:
            known = self._records[run_id]
            self._records[run_id] = known.replace(outcome=outcome, updated_at=at)

    async def get(self, run_id: str) -> RunRecord | None:
        """The run with exactly this id."""
        return self._records.get(run_id)

    async def find(self, prefix: str) -> Sequence[RunRecord]:
        """The runs whose ids begin so, the newest first."""
        return [record for record in self._newest_first() if record.run_id.startswith(prefix)]

    async def recent(self, limit: int) -> Sequence[RunRecord]:
        """The runs that began last, the newest first."""
        return self._newest_first()[:limit]

    async def remove(self, run_id: str) -> None:
        """Remove a run with its journal and events, and its thread if no other run is on it.

        Raises:
            ThreadBusyError: A run works on the thread.
        """
        record = self._records.get(run_id)
        if record is None:
            self._forget(run_id)
            return
        others = [other for other in self._records.values() if other.run_id != run_id]
        async with self._holds.holding(record.thread_id) as owner:
            if all(other.thread_id != record.thread_id for other in others):
                with owner.at_work():
                    await self._forget_thread(record.thread_id)
            self._forget(run_id)

    def _forget(self, run_id: str) -> None:
        self._journal.forget(run_id)
        self._events.pop(run_id, None)
        self._records.pop(run_id, None)

    async def add_events(self, run_id: str, events: Sequence[JsonValue]) -> None:
        """Append events of a run, in this order."""
        self._events.setdefault(run_id, []).extend(events)

    async def events(self, run_id: str) -> Sequence[JsonValue]:
        """The events of a run, in the order in which they were added."""
        return list(self._events.get(run_id, []))

    def _newest_first(self) -> list[RunRecord]:
        by_id = sorted(self._records.values(), key=lambda record: record.run_id)
        return sorted(by_id, key=lambda record: record.started_at, reverse=True)
