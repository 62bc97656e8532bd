"""Processes that are killed while they make or upgrade storage."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from itertools import count

from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.pool import Pool

import warm
from replan import open_storage
from replan.adapters.storage.tables import formats
from stored_tables import changing

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
    """Upgrade to the format that `widen` makes."""
    with changing(where) as connection:
        formats.upgrade(connection, where, (*formats.MIGRATIONS, widen))


def moments_of(work, where: str) -> int:
    """Do it, and count its moments."""
    counted = warm.call(_count, work, where)
    assert counted.returncode == 0, counted.stderr
    return int(counted.stdout)


def killed(work, where: str, key: str | None, at: int) -> bool:
    """Do it in a process that is killed at a moment; tell whether there was such a moment.

    A moment is before a statement that changes something, before the commit, and after it.
    """
    ended = warm.call(_until, work, where, key, at)
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr
    return ended.returncode != 0


def _until(work, where: str, key: str | None, at: int) -> None:
    moments = count(1)

    def strike() -> None:
        if next(moments) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    _at_each_moment(strike)
    work(where, key)


def _count(work, where: str) -> None:
    met: list[None] = []
    _at_each_moment(lambda: met.append(None))
    work(where, None)
    sys.stdout.write(str(len(met)))


def _at_each_moment(strike: Callable[[], None]) -> None:
    changed: list[str] = []

    def met(*_: object) -> None:
        if changed:
            strike()

    def statement(_c: object, _cu: object, said: str, *_: object) -> None:
        if said.lstrip().startswith(_CHANGES):
            changed.append(said)
            strike()

    event.listen(Engine, "before_cursor_execute", statement)
    event.listen(Engine, "commit", met)
    event.listen(Pool, "checkin", met)
