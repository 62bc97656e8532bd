"""Threads of pipelines: what every repository of them does, and that in memory."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import JsonValue

from replan.adapters.uninterrupted import uninterrupted
from replan.errors import StaleThreadError
from replan.state.pipeline.thread_rows import Changes, Rows, Saved, is_below, thread_from
from replan.state.pipeline.threads import Thread
from replan.threads.messages import change_message


class RowRepository(ABC):
    """Keeps threads as rows; a subclass says where."""

    def __init__(self) -> None:
        self._saved = Saved()

    @abstractmethod
    async def _read(self, thread_id: str) -> tuple[Rows, int, str] | None:
        """Read the rows of a thread, its revision and its run."""

    @abstractmethod
    async def _write(self, thread: Thread, changes: Changes, *, lasting: bool) -> bool:
        """Write changes if the thread still has its revision, and raise that by one."""

    async def get_thread(self, thread_id: str) -> Thread | None:
        if (found := await self._read(thread_id)) is None:
            return None
        rows, revision, run_id = found
        thread = thread_from(rows, run_id=run_id)
        thread.revision = revision
        self._saved.take(thread)
        return thread

    async def get_thread_settings(self, thread_id: str) -> dict[str, Any]:
        found = await self._read(thread_id)
        return {} if found is None else dict(cast("Any", found[0][""])["settings"])

    async def update_thread_settings(self, thread: Thread, settings: Mapping[str, Any]) -> None:
        before = dict(thread.settings)
        # Its agent holds the same dictionary.
        thread.settings.clear()
        thread.settings.update(settings if settings is not thread.settings else before)
        await self.save_thread(thread)

    async def update_message(
        self, thread: Thread, message_id: str, changes: Mapping[str, Any]
    ) -> None:
        change_message(thread, message_id, **changes)
        await self.save_thread(thread)

    async def save_thread(self, thread: Thread, *, lasting: bool = True) -> None:
        changes = self._saved.changes(thread)
        if changes.rows or changes.gone:
            # Who is cancelled meanwhile, such as by a time limit, may continue the thread.
            await uninterrupted(self._save(thread, changes, lasting=lasting))

    async def _save(self, thread: Thread, changes: Changes, *, lasting: bool) -> None:
        try:
            is_written = await self._write(thread, changes, lasting=lasting)
        except BaseException:
            changes.undo()
            raise
        if not is_written:
            changes.undo()
            raise StaleThreadError(thread.id)
        thread.revision += 1


MOST_CLOSED = 100  # runs that are over whose threads stay, where no storage keeps any


@dataclass
class _Kept:
    run_id: str
    revision: int = 0
    rows: dict[str, JsonValue] = field(default_factory=dict[str, Any])


class MemoryThreads(RowRepository):
    """Keeps threads as long as the process; those of a run until it is removed.

    If runs are never removed, the newest `most_closed` finished runs keep their threads:
    a run that ended at a limit may continue when that is raised.
    """

    def __init__(self, *, most_closed: int | None = None) -> None:
        super().__init__()
        self._kept: dict[str, _Kept] = {}
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
        kept = self._kept.get(thread_id)
        return None if kept is None else (dict(kept.rows), kept.revision, kept.run_id)

    async def _write(self, thread: Thread, changes: Changes, *, lasting: bool) -> bool:
        kept = self._kept.get(thread.id, _Kept(thread.run_id))
        if kept.revision != thread.revision:
            return False
        for gone in changes.gone:
            for path in [path for path in kept.rows if is_below(path, gone)]:
                del kept.rows[path]
        kept.rows.update(changes.rows)
        kept.revision += 1
        self._kept[thread.id] = kept
        return True

    async def rows(self, run_id: str) -> Mapping[str, Rows]:
        return {
            thread_id: dict(kept.rows)
            for thread_id, kept in self._kept.items()
            if kept.run_id == run_id
        }

    async def adopt(self, run_id: str, threads: Mapping[str, Rows]) -> None:
        for thread_id, rows in threads.items():
            self._kept.setdefault(thread_id, _Kept(run_id, 1, dict(rows)))

    async def forget(self, run_id: str) -> None:
        self._closed.pop(run_id, None)
        for thread_id in [name for name, kept in self._kept.items() if kept.run_id == run_id]:
            del self._kept[thread_id]
