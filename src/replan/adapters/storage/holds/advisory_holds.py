"""Threads that are worked on, as advisory locks of PostgreSQL."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, LiteralString

import psycopg

from replan.adapters.storage.database import Patience
from replan.adapters.thread_holds import Holds, digest_of, first_epoch
from replan.ports.ownership import Owner

Connection = psycopg.AsyncConnection[Any]

_TAKE = """
INSERT INTO replan_threads (thread_id, epoch)
SELECT %(thread)s, %(first)s WHERE pg_try_advisory_lock(%(key)s)
ON CONFLICT (thread_id) DO UPDATE SET epoch = replan_threads.epoch + 1
RETURNING epoch
"""
_FORGET = "DELETE FROM replan_threads WHERE thread_id = %(thread)s"
_CURRENT = "SELECT epoch FROM replan_threads WHERE thread_id = %(thread)s"


class AdvisoryHolds(Holds):
    """All threads that one storage holds, on one connection: they fall when it does."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], patience: Patience) -> None:
        super().__init__(patience.where)
        self._connect = connect
        self._patience = patience
        self._connection: Connection | None = None
        self._fallen: set[Owner] = set()
        # Whoever asks at the same time gets the same connection; another one would stay open.
        self._connecting = asyncio.Lock()

    async def close(self) -> None:
        await super().close()
        if self._connection is not None:
            await self._connection.close()

    async def forget(self, thread_id: str) -> None:
        async def attempt() -> None:
            connection = await self._connected()
            await connection.execute(_FORGET, {"thread": thread_id})

        await self._patience.insist(attempt)

    async def _take(self, owner: Owner) -> int:
        async def attempt() -> int:
            connection = await self._connected()
            try:
                return await _query_number(connection, _TAKE, owner)
            except psycopg.Error:
                # A lock that was taken already would have to be given back twice.
                await self._unlock(owner)
                raise

        return await self._patience.insist(attempt)

    async def _is_taken(self, thread_id: str) -> bool:
        # In a separate transaction, so that what was free is immediately free again.
        query: LiteralString = "SELECT pg_try_advisory_xact_lock(%(key)s)::int"

        async def attempt() -> int:
            return await _query_number(await self._connected(), query, Owner(self.where, thread_id))

        return not await self._patience.insist(attempt)

    async def _leave(self, owner: Owner) -> None:
        self._fallen.discard(owner)
        await self._unlock(owner)

    async def _unlock(self, owner: Owner) -> None:
        # A broken connection holds nothing.
        with suppress(psycopg.Error):
            if self._connection is not None:
                await self._connection.execute("SELECT pg_advisory_unlock(%s)", [_key(owner)])

    async def _look_after(self) -> None:
        # While the server is away, nothing can be taken, and the next check comes soon.
        with suppress(psycopg.OperationalError):
            if self._connection is not None:
                # It finds out what broke, and keeps what a firewall would else forget.
                with suppress(psycopg.OperationalError):
                    await self._connection.execute("SELECT 1")
            await self._connected()

    async def _connected(self) -> Connection:
        async with self._connecting:
            return await self._reconnect()

    async def _reconnect(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = await self._connect()
            self._fallen = {owner for owner in self._held.values() if owner.epoch}
        for owner in [*self._fallen]:
            await self._take_again(self._connection, owner)
        return self._connection

    async def _take_again(self, connection: Connection, owner: Owner) -> None:
        """Lock a thread whose lock was lost, unless another process has taken it since."""
        is_locked = await _query_number(
            connection, "SELECT pg_try_advisory_lock(%(key)s)::int", owner
        )
        if await _query_number(connection, _CURRENT, owner) != owner.epoch:
            owner.lose()
        # Else the server has yet to notice that the connection before is gone.
        if is_locked or owner.is_lost:
            self._fallen.discard(owner)


async def _query_number(connection: Connection, query: LiteralString, owner: Owner) -> int:
    """What a query about a thread gives; 0 if it gives no row."""
    names = {"thread": owner.thread_id, "key": _key(owner), "first": first_epoch()}
    row = await (await connection.execute(query, names)).fetchone()
    return 0 if row is None else int(row[0])


def _key(owner: Owner) -> int:
    return lock_number(owner.thread_id)


def lock_number(thread_id: str) -> int:
    return int.from_bytes(digest_of(thread_id)[:8], "big", signed=True)
