"""A database in the memory of the process, and the runs of a runtime without a storage."""

from dataclasses import dataclass

from replan.log.run_log import RunLog
from replan.ports.run_book import RunBook
from replan.storage.databases import schema
from replan.storage.databases.cipher import Cipher
from replan.storage.databases.database import Database
from replan.storage.databases.sqlite import MemoryDatabase
from replan.storage.holds import ThreadLocks
from replan.storage.memory_log import MemoryLogs
from replan.storage.runs import Runs


def memory_database() -> MemoryDatabase:
    """A new database in memory; it goes when nothing refers to it."""
    return MemoryDatabase(lambda connection: schema.make(connection, {}, ":memory:"))


@dataclass(frozen=True, kw_only=True)
class MemoryRuns:
    """The runs of a runtime without a storage, with their events, until they are handed out."""

    runs: RunBook
    log: RunLog


def memory_runs() -> MemoryRuns:
    """A list of runs that goes with the process."""
    database, logs = memory_database(), MemoryLogs()
    return MemoryRuns(runs=_Runs(database, logs), log=RunLog(logs))


class _Runs(Runs):
    """Runs whose logs are elsewhere, and whose threads nobody keeps."""

    def __init__(self, database: Database, logs: MemoryLogs) -> None:
        super().__init__(database, Cipher(), ThreadLocks(database))
        self._logs = logs

    async def remove(self, run_id: str) -> None:
        await super().remove(run_id)
        self._logs.forget(run_id)
