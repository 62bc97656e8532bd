"""Transactions of SQLite that a thread does as a whole: one way to it and back for each.

What goes through SQLAlchemy's asynchronous engine goes to the driver's thread and back for each
statement, three times. On a busy machine that takes longer than the disk does.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import URL, Connection, create_engine

from replan.ports.ownership import Owner

T = TypeVar("T")


class WholeWrites:
    """Writes to a SQLite file in its own thread."""

    def __init__(self, path: Path, busy: float) -> None:
        # Without an isolation level, SQLAlchemy begins no transaction by itself.
        options: dict[str, Any] = {
            "timeout": busy,
            "isolation_level": None,
            "check_same_thread": False,
        }
        url = URL.create("sqlite", database=str(path))
        self._engine = create_engine(url, connect_args=options)
        self._thread = ThreadPoolExecutor(1, "replan-writes")

    async def write(
        self, work: Callable[[Connection], T], *, lasting: bool, owner: Owner | None
    ) -> T:
        """Run a transaction; if `lasting`, it outlasts a failure of power once this returns."""

        def whole() -> T:
            with self._engine.begin() as connection:
                _begin(cast("Any", connection.connection.driver_connection), lasting, owner)
                return work(connection)

        return await asyncio.get_running_loop().run_in_executor(self._thread, whole)

    async def close(self) -> None:
        """Close the file and end the thread, once all writes are done."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._engine.dispose)
        self._thread.shutdown()


def _begin(driver: sqlite3.Connection, lasting: bool, owner: Owner | None) -> None:  # noqa: FBT001
    driver.execute(f"PRAGMA synchronous = {'FULL' if lasting else 'NORMAL'}")
    driver.execute("BEGIN IMMEDIATE")
    if owner is not None:
        query = "SELECT epoch FROM replan_threads WHERE thread_id = ?"
        found = driver.execute(query, (owner.thread_id,)).fetchone()
        owner.check(found and found[0])
