"""Threads that are worked on, as advisory locks of PostgreSQL."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg

from replan.adapters.storage.database import Patience
from replan.adapters.storage.holding import MOMENT, digest_of
from replan.adapters.storage.uninterrupted import uninterrupted
from replan.errors import ThreadBusyError

_POLL = 0.05

Connection = psycopg.AsyncConnection[Any]


class AdvisoryHolds:
    """All threads that one storage holds, on one connection: they fall when it does."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], patience: Patience) -> None:
        self._connect = connect
        self._patience = patience
        self._connection: Connection | None = None
        self._held: dict[int, object] = {}
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def holding(self, thread_id: str) -> AsyncGenerator[None]:
        """Hold a thread while this lasts."""
        key = int.from_bytes(digest_of(thread_id)[:8], "big", signed=True)
        owner, latest = object(), time.monotonic() + MOMENT
        try:
            while not await self._patience.insist(lambda: self._take(key, owner)):
                if time.monotonic() > latest:
                    raise ThreadBusyError(thread_id)
                await asyncio.sleep(_POLL)
            yield
        finally:
            # A take that was cancelled went to its end.
            await uninterrupted(self._let_go(key, owner))

    async def close(self) -> None:
        """Let go of everything."""
        if self._connection is not None:
            await self._connection.close()

    async def _take(self, key: int, owner: object) -> bool:
        async with self._turn:
            # The server would give the same session the same lock twice.
            if key in self._held or not await _locked(await self._connected(), key):
                return False
            self._held[key] = owner
            return True

    async def _let_go(self, key: int, owner: object) -> None:
        async with self._turn:
            if self._held.get(key) is not owner:
                return
            del self._held[key]
            # A connection that broke holds nothing any more.
            with suppress(psycopg.Error):
                if self._connection is not None:
                    await self._connection.execute("SELECT pg_advisory_unlock(%s)", [key])

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = await self._connect()
            for key in self._held:
                await _locked(self._connection, key)
        return self._connection


async def _locked(connection: Connection, key: int) -> bool:
    row = await (await connection.execute("SELECT pg_try_advisory_lock(%s)", [key])).fetchone()
    return row is not None and bool(row[0])
