"""Threads of pipelines, row by row, wherever the rows are."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, cast

from replan.errors import StaleThreadError
from replan.pipelines.messages import change_message
from replan.state.pipeline.thread_rows import Changes, Rows, Saved, thread_from
from replan.state.pipeline.threads import Thread

MAIN = ""  # the path of the row of a main thread, which says who wrote last


class RowRepository(ABC):
    """A `ThreadRepository` of rows; a subclass says where they are."""

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
        thread = await self._read(thread_id)
        return {} if thread is None else dict(cast("Any", thread[0][MAIN])["settings"])

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
            await self._save(thread, changes, lasting=lasting)

    async def _save(self, thread: Thread, changes: Changes, *, lasting: bool) -> None:
        if not await self._write(thread, changes, lasting=lasting):
            raise StaleThreadError(thread.id)
        self._saved.take(thread, changes)
        thread.revision += 1
