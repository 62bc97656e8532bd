"""The numbers of the takes of threads, for holds that are no part of the database."""

import secrets

from sqlalchemy import delete, select
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.database import Database
from replan.adapters.storage.schema import threads


def first_epoch() -> int:
    """The number of the first take of a thread; no other thread of its name ever had it."""
    return secrets.randbits(48)


class Epochs:
    """How often each thread was taken, in a SQLite file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def raised(self, thread_id: str) -> int:
        first = sqlite.insert(threads).values(thread_id=thread_id, epoch=first_epoch())
        statement = first.on_conflict_do_update(
            index_elements=["thread_id"], set_={"epoch": threads.c.epoch + 1}
        ).returning(threads.c.epoch)

        async def work(connection: AsyncConnection) -> int:
            return (await connection.execute(statement)).scalar_one()

        return await self._database.write(work)

    async def current(self, thread_id: str) -> int:
        """The number of the newest take; 0 if there is none."""
        query = select(threads.c.epoch).where(threads.c.thread_id == thread_id)
        return await self._database.read(lambda connection: connection.scalar(query)) or 0

    async def forget(self, thread_id: str) -> None:
        statement = delete(threads).where(threads.c.thread_id == thread_id)
        await self._database.write(lambda connection: connection.execute(statement))
