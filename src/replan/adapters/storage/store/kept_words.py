"""The words of encrypted items, kept together: to open each item by itself takes seconds."""

import asyncio
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from sqlalchemy import column, delete, select, table
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.database import Database
from replan.adapters.storage.faults import UnreadableRecordError
from replan.adapters.storage.store.rows import MOST_NAMED, below, items, prefixes_of
from replan.adapters.storage.store.words_in_memory import FORM, WordsInMemory
from replan.adapters.storage.stored_values.places import of_kept_words
from replan.adapters.storage.stored_values.sealing import Cipher
from replan.adapters.storage.tables import schema
from replan.errors import StorageError

WORTH = 100
"""Items to open, or changes, from which words are kept; opening so many takes 20 ms."""

_LARGEST = 2**26
"""Bytes that are kept of the words below one prefix."""

_kept = table("replan_kept_words", column("prefix"), column("value"))
_log = logging.getLogger(__name__)

Place = Mapping[str, str]
"""The namespace and the key of an item, as its row has them."""


class KeptWords:
    """The words below some prefixes, each prefix encrypted in one row.

    Which items there are is asked of the database before each search: the words of an item that is
    gone are never searched, and those of a new one are added, however old a row is.
    """

    def __init__(self, database: Database, cipher: Cipher) -> None:
        self._database = database
        self._cipher = cipher

    async def take(self, prefix: str, words: WordsInMemory) -> None:
        """Begin with the words that were kept of a prefix, if they can be read."""
        query = select(_kept.c.value).where(_kept.c.prefix == prefix)
        sealed = await self._database.read(lambda connection: connection.scalar(query))
        if sealed is not None:
            await self.open(prefix, words, sealed)

    async def open(self, prefix: str, words: WordsInMemory, sealed: bytes) -> None:
        """Begin with the words of a row, if they can be read."""
        place = of_kept_words(prefix, FORM)
        try:
            await asyncio.to_thread(lambda: words.take(self._cipher.open(bytes(sealed), place)))
        except (UnreadableRecordError, sqlite3.Error):
            # They are made again, of the items.
            _log.warning("kept words cannot be read", extra={"prefix": prefix})

    async def keep(self, prefix: str, words: WordsInMemory) -> None:
        """Keep the words of a prefix; where that fails, a new process begins without."""
        numbers, data = await asyncio.to_thread(words.written)
        if len(data) > _LARGEST:
            return
        place = of_kept_words(prefix, FORM)
        row = {"prefix": prefix, "value": await asyncio.to_thread(self._cipher.close, data, place)}
        insert = self._database.insert(schema.kept_words)
        new = {"value": insert.excluded.value}
        change = insert.on_conflict_do_update(index_elements=["prefix"], set_=new)

        async def work(connection: AsyncConnection) -> None:
            there = set((await connection.scalars(below(prefix, items.c.id))).all())
            # Nothing may stay of what was deleted in the meantime.
            if numbers <= there:
                await connection.execute(change, row)

        try:
            await self._database.write(work)
        except StorageError:
            _log.warning("words could not be kept", exc_info=True, extra={"prefix": prefix})

    async def drop(
        self, connection: AsyncConnection, gone: Sequence[Place], new: Sequence[Place]
    ) -> dict[str, bytes]:
        """Delete what is kept of items that change, in their transaction, and return it.

        Args:
            connection: That of the transaction, in which nothing has changed yet.
            gone: The places of items that are deleted.
            new: The places of items that are written, of which some may be there.
        """
        by_namespace: dict[str, list[str]] = defaultdict(list)
        for place in (*gone, *new):
            by_namespace[place["namespace"]].append(place["key"])
        asked = {each for namespace in by_namespace for each in prefixes_of(namespace)}
        kept = {
            prefix
            for some in _chunks(asked)
            for prefix in await connection.scalars(
                select(_kept.c.prefix).where(_kept.c.prefix.in_(some))
            )
        }
        # Few prefixes are searched, and so kept.
        changed = {
            prefix
            for namespace, keys in by_namespace.items()
            for prefix in kept & {*prefixes_of(namespace)}
            if await _are_any(connection, namespace, keys)
        }
        if not changed:
            return {}
        same = _kept.c.prefix.in_(changed)
        rows = (await connection.execute(select(_kept).where(same))).all()
        await connection.execute(delete(_kept).where(same))
        return {row.prefix: row.value for row in rows}


async def _are_any(connection: AsyncConnection, namespace: str, keys: Sequence[str]) -> bool:
    for some in _chunks(keys):
        query = select(items.c.id).where(items.c.namespace == namespace, items.c.key.in_(some))
        if await connection.scalar(query.limit(1)) is not None:
            return True
    return False


def _chunks(names: Iterable[str]) -> Iterator[list[str]]:
    left = iter(names)
    while some := [*islice(left, MOST_NAMED)]:
        yield some
