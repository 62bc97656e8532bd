"""Upgrades whose process is killed on its way, each in a process that is forked for it."""

import asyncio
import multiprocessing
import os
import signal
from itertools import count

from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.pool import Pool

from old_storage import changing
from replan import open_storage
from replan.adapters.storage.tables import formats
from replan.adapters.storage.tables.migrations import MIGRATIONS

PRELOADED = ("upgrade_kills", "replan.adapters.storage.opening", "replan.adapters.storage.postgres")
_CHANGES = ("INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP")


def widen(connection: Connection) -> None:
    """A migration with all that migrations do."""
    for statement in (
        "CREATE TABLE replan_extra (name TEXT PRIMARY KEY, run_id TEXT)",
        "ALTER TABLE replan_runs ADD COLUMN extra TEXT NOT NULL DEFAULT ''",
        "UPDATE replan_runs SET extra = thread_id",
        "CREATE INDEX replan_runs_by_extra ON replan_runs (extra)",
        "INSERT INTO replan_extra SELECT run_id, run_id FROM replan_runs",
        "DELETE FROM replan_events",
        "DROP TABLE replan_notes",
        "CREATE TABLE replan_notes (name TEXT PRIMARY KEY)",
    ):
        connection.execute(text(statement))


def open_it(where: str, key: str | None) -> None:
    """Open storage as every program does."""

    async def opened() -> None:
        async with open_storage(where, key=key):
            pass

    asyncio.run(opened())


def widen_it(where: str, key: str | None) -> None:
    """Upgrade to the newest format, and on to the one that `widen` makes."""
    with changing(where) as connection:
        formats.upgrade(connection, where, (*MIGRATIONS, widen))


def killed(work, where: str, key: str | None, at: int) -> bool:
    """Do it in a process that is killed at a moment; tell whether there was such a moment.

    A moment is before a statement that changes something, before the commit, and after it.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    process = context.Process(target=_until, args=(work, where, key, at))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def _until(work, where: str, key: str | None, at: int) -> None:
    moments, changed = count(1), []

    def strike(*_: object) -> None:
        if changed and next(moments) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(_c: object, _cu: object, said: str, *_: object) -> None:
        if said.lstrip().startswith(_CHANGES):
            changed.append(said)
            strike()

    event.listen(Engine, "before_cursor_execute", statement)
    event.listen(Engine, "commit", strike)
    event.listen(Pool, "checkin", strike)
    work(where, key)
