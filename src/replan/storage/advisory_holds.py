"""Threads that are worked on, as advisory locks of PostgreSQL."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, LiteralString, TypeVar

import psycopg

from replan.ports.ownership import Owner
from replan.storage.databases.postgres import PostgresDatabase
from replan.storage.holds import ThreadLocks, first_epoch, lock_number

T = TypeVar("T")
Driver = psycopg.Connection[Any]

_TAKE = """
INSERT INTO replan_threads (thread_id, epoch)
SELECT %(thread)s, %(first)s WHERE pg_try_advisory_lock(%(key)s)
ON CONFLICT (thread_id) DO UPDATE SET epoch = replan_threads.epoch + 1
RETURNING epoch
"""
_LOCK = "SELECT pg_try_advisory_lock(%(key)s)::int"
_CURRENT = "SELECT epoch FROM replan_threads WHERE thread_id = %(thread)s"
# In a separate transaction, so that what was free is immediately free again.
_IS_FREE = "SELECT pg_try_advisory_xact_lock(%(key)s)::int"


class AdvisoryHolds(ThreadLocks):
    """All threads that one storage holds, on one connection: they fall when it does.

    The connection has a thread of its own, which does one thing at a time.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        self._connect = database.connect
        self._thread = ThreadPoolExecutor(1, "replan-holds")
        self._connection: Driver | None = None
        self._disconnected: set[Owner] = set()
        self._lost: list[Owner] = []  # whose work is to be stopped, in its own loop

    async def close(self) -> None:
        await super().close()
        await self._in_thread(self._disconnect)
        self._thread.shutdown()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()

    async def _take(self, owner: Owner) -> int:
        def take() -> int:
            connection = self._connected()
            try:
                return _query_number(connection, _TAKE, owner.thread_id)
            except psycopg.Error:
                # A lock that was taken already would have to be given back twice.
                self._unlock(owner)
                raise

        return await self._retry(take)

    async def _is_taken(self, thread_id: str) -> bool:
        return not await self._retry(lambda: _query_number(self._connected(), _IS_FREE, thread_id))

    async def _leave(self, owner: Owner) -> None:
        self._disconnected.discard(owner)
        await self._in_thread(lambda: self._unlock(owner))

    async def _look_after(self) -> None:
        # While the server is away, nothing can be taken, and the next check comes soon.
        with suppress(psycopg.OperationalError):
            await self._in_thread(self._look_at_connection)
        self._stop_lost()

    def _look_at_connection(self) -> None:
        if self._connection is not None:
            # It finds out what broke, and keeps what a firewall would else forget.
            with suppress(psycopg.OperationalError):
                self._connection.execute("SELECT 1")
        self._connected()

    async def _retry(self, work: Callable[[], T]) -> T:
        try:
            return await self.database.retrier.run(lambda: self._in_thread(work))
        finally:
            self._stop_lost()

    def _in_thread(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _stop_lost(self) -> None:
        while self._lost:
            self._lost.pop().lose()

    def _unlock(self, owner: Owner) -> None:
        # A broken connection holds nothing.
        with suppress(psycopg.Error):
            if self._connection is not None:
                key = lock_number(owner.thread_id)
                self._connection.execute("SELECT pg_advisory_unlock(%s)", [key])

    def _connected(self) -> Driver:
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
            self._disconnected = {owner for owner in [*self._held.values()] if owner.epoch}
        for owner in [*self._disconnected]:
            self._lock_again(self._connection, owner)
        return self._connection

    def _lock_again(self, connection: Driver, owner: Owner) -> None:
        """Lock a thread whose lock was lost, unless another process has taken it since."""
        is_locked = _query_number(connection, _LOCK, owner.thread_id)
        is_lost = _query_number(connection, _CURRENT, owner.thread_id) != owner.epoch
        if is_lost:
            self._lost.append(owner)
        # Else the server has yet to notice that the connection before is gone.
        if is_locked or is_lost:
            self._disconnected.discard(owner)


def _query_number(connection: Driver, query: LiteralString, thread_id: str) -> int:
    """What a query about a thread gives; 0 if it gives no row."""
    names = {"thread": thread_id, "key": lock_number(thread_id), "first": first_epoch()}
    row = connection.execute(query, names).fetchone()
    return 0 if row is None else int(row[0])
