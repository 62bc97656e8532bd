"""Threads of pipelines in the memory of one caller."""

from collections.abc import Mapping
from functools import partial

from replan.state.pipeline.thread_rows import Changes, Rows
from replan.state.pipeline.threads import Thread
from replan.storage.databases import schema
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.sqlite import MemoryDatabase
from replan.storage.pipeline_threads import Threads

MOST_CLOSED = 100  # runs that are over whose threads stay, where no storage keeps any


class MemoryThreads(Threads):
    """Threads of one caller, as long as it has them; those of a run until it is removed.

    If runs are never removed, the newest `most_closed` finished runs keep their threads:
    a run that ended at a limit may continue when that is raised.
    """

    def __init__(self, *, most_closed: int | None = None) -> None:
        # One table is made in a tenth of a millisecond, all of them in two.
        super().__init__(
            MemoryDatabase(partial(schema.make_table, name="replan_thread_rows")), Cipher()
        )
        self._most_closed = most_closed
        self._runs = set[str]()  # those that have threads; most have none
        self._closed: dict[str, None] = {}

    async def adopt(self, run_id: str, threads: Mapping[str, Rows]) -> None:
        self._runs.add(run_id)
        await super().adopt(run_id, threads)

    async def closed(self, run_id: str) -> None:
        """Forget the threads of the run that was over first, if there are too many."""
        if self._most_closed is None or run_id not in self._runs:
            return
        self._closed.pop(run_id, None)
        self._closed[run_id] = None
        if len(self._closed) > self._most_closed:
            await self.forget(next(iter(self._closed)))

    async def forget(self, run_id: str) -> None:
        self._closed.pop(run_id, None)
        self._runs.discard(run_id)
        await super().forget(run_id)

    async def _write(self, thread: Thread, changes: Changes, *, lasting: bool) -> bool:
        self._runs.add(thread.run_id)
        return await super()._write(thread, changes, lasting=lasting)
