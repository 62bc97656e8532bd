"""Threads of pipelines in the memory of one caller."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from replan.state.pipeline.thread_rows import Changes, Rows
from replan.state.pipeline.threads import Thread
from replan.storage.row_repository import RowRepository

MOST_CLOSED = 100  # runs that are over whose threads stay, where no storage keeps any


@dataclass
class _Stored:
    run_id: str
    revision: int = 0
    rows: dict[str, JsonValue] = field(default_factory=dict[str, Any])


class MemoryThreads(RowRepository):
    """Threads of one caller, as long as it has them; those of a run until it is removed.

    If runs are never removed, the newest `most_closed` finished runs keep their threads:
    a run that ended at a limit may continue when that is raised.
    """

    def __init__(self, *, most_closed: int | None = None) -> None:
        super().__init__()
        self._threads: dict[str, _Stored] = {}
        self._most_closed = most_closed
        self._closed: dict[str, None] = {}

    async def closed(self, run_id: str) -> None:
        """Forget the threads of the run that was over first, if there are too many."""
        if self._most_closed is None:
            return
        self._closed.pop(run_id, None)
        self._closed[run_id] = None
        if len(self._closed) > self._most_closed:
            await self.forget(next(iter(self._closed)))

    async def _read(self, thread_id: str) -> tuple[Rows, int, str] | None:
        stored = self._threads.get(thread_id)
        return None if stored is None else (dict(stored.rows), stored.revision, stored.run_id)

    async def _write(self, thread: Thread, changes: Changes, *, lasting: bool) -> bool:
        stored = self._threads.get(thread.id, _Stored(thread.run_id))
        if stored.revision != thread.revision:
            return False
        for path in changes.gone:
            del stored.rows[path]
        stored.rows.update(changes.rows)
        stored.revision += 1
        self._threads[thread.id] = stored
        return True

    async def rows(self, run_id: str) -> Mapping[str, Rows]:
        return {
            thread_id: dict(stored.rows)
            for thread_id, stored in self._threads.items()
            if stored.run_id == run_id
        }

    async def adopt(self, run_id: str, threads: Mapping[str, Rows]) -> None:
        for thread_id, rows in threads.items():
            self._threads.setdefault(thread_id, _Stored(run_id, 1, dict(rows)))

    async def forget(self, run_id: str) -> None:
        self._closed.pop(run_id, None)
        for thread_id in [
            name for name, stored in self._threads.items() if stored.run_id == run_id
        ]:
            del self._threads[thread_id]
