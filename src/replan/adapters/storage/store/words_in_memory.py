"""The words of items in memory, where the database must not know them, or cannot rank them.

Those of encrypted items are also kept together: to open each item by itself takes seconds.
"""

import asyncio
import logging
import sqlite3
import threading
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from contextlib import closing
from itertools import islice

from sqlalchemy import column, delete, select, table
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.database import Database
from replan.adapters.storage.faults import UnreadableRecordError
from replan.adapters.storage.store import full_text
from replan.adapters.storage.store.rows import MOST_NAMED, below, items, prefixes_of
from replan.adapters.storage.stored_values import places
from replan.adapters.storage.stored_values.sealing import Cipher
from replan.adapters.storage.tables import schema
from replan.errors import StorageError
from replan.texts.terms import any_of

_MOST = 50_000  # items whose words stay in memory

_RANKED = """
SELECT rowid, bm25(words) AS far FROM words WHERE words MATCH ?
ORDER BY far, rowid DESC LIMIT ? OFFSET ?"""

FORM = 1  # the form of `written`: to be raised where an index or the words in it become others

State = tuple[int, int]
"""How many items there are and the newest number: a number is never given twice."""


class WordsInMemory:
    """The words of the items below one prefix of namespaces."""

    def __init__(self) -> None:
        self.state: State = (0, 0)
        self.alone = asyncio.Lock()  # whoever brings it up to date holds it
        self.unkept = 0  # changes since they were written down
        self.is_dropped = False  # whether what was written down is to be so again
        self._numbers = frozenset[int]()
        self._guard = threading.Lock()
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        # A search may still read evicted words: they are closed when no search uses them.
        weakref.finalize(self, self._db.close)
        self._is_indexed = full_text.has_full_text()
        self._db.execute(full_text.IN_MEMORY if self._is_indexed else full_text.UNINDEXED)

    @property
    def numbers(self) -> AbstractSet[int]:
        """The numbers of the items whose words are known."""
        return self._numbers

    def update(self, state: State, numbers: AbstractSet[int], new: Mapping[int, str]) -> None:
        """Take in the words of new items, and drop those of items that are gone."""
        with self._guard, self._db:
            gone = self._numbers - numbers
            self._db.executemany("DELETE FROM words WHERE rowid = ?", ((each,) for each in gone))
            self._db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", new.items())
            self._numbers = (self._numbers - gone) | new.keys()
            self.unkept += len(gone) + len(new)
            self.state = state

    def written(self) -> tuple[AbstractSet[int], bytes]:
        """Write down all words and of which items they are, with nothing of items that went."""
        with self._guard:
            with self._db:
                self._db.execute("INSERT INTO words (words) VALUES ('optimize')")
            self._db.execute("VACUUM")
            self.unkept, self.is_dropped = 0, False
            return self._numbers, self._db.serialize()

    def take(self, data: bytes) -> None:
        """Begin with words that were written down.

        Raises:
            sqlite3.Error: They are of a SQLite that has more than this one.
        """
        with closing(sqlite3.connect(":memory:")) as tried:
            tried.deserialize(data)
            numbers = frozenset(each for (each,) in tried.execute("SELECT id FROM words_docsize"))
        with self._guard:
            self._db.deserialize(data)
            self._numbers = numbers

    def ranked(self, query: str, limit: int, offset: int = 0) -> list[tuple[int, float]]:
        """Find the items that have words of a query: their numbers and scores, the best first."""
        terms = full_text.asked(query)
        with self._guard:
            if not terms or not self._numbers:
                return []
            if not self._is_indexed:
                texts = dict(self._db.execute("SELECT rowid, text FROM words"))
                return full_text.counted(terms, texts)[offset:][:limit]
            rows = self._db.execute(_RANKED, (any_of(terms), limit, offset))
            return [(number, full_text.score(far)) for number, far in rows]


class Prefixes:
    """The words below the prefixes that were searched last."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, WordsInMemory] = OrderedDict()

    def __iter__(self) -> Iterator[tuple[str, WordsInMemory]]:
        return iter([*self._known.items()])

    def of(self, prefix: str) -> WordsInMemory:
        """Return the words below a prefix, none of them at first."""
        if prefix not in self._known:
            self._known[prefix] = WordsInMemory()
        found = self._known[prefix]
        self._known.move_to_end(prefix)
        while (
            len(self._known) > 1 and sum(len(each.numbers) for each in self._known.values()) > _MOST
        ):
            self._known.popitem(last=False)
        return found


WORTH = 100  # items to open, or changes, from which words are kept; opening so many takes 20 ms
_LARGEST = 2**26  # bytes that are kept of the words below one prefix

_kept = table("replan_kept_words", column("prefix"), column("value"))
_log = logging.getLogger(__name__)

Place = Mapping[str, str]  # the namespace and the key of an item, as its row has them


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
        place = places.of_kept_words(prefix, FORM)
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
        place = places.of_kept_words(prefix, FORM)
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
        """Delete what is kept of items, and return it, before they are deleted or written anew."""
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
            if await _has_any(connection, namespace, keys)
        }
        if not changed:
            return {}
        same = _kept.c.prefix.in_(changed)
        rows = (await connection.execute(select(_kept).where(same))).all()
        await connection.execute(delete(_kept).where(same))
        return {row.prefix: row.value for row in rows}


async def _has_any(connection: AsyncConnection, namespace: str, keys: Sequence[str]) -> bool:
    for some in _chunks(keys):
        query = select(items.c.id).where(items.c.namespace == namespace, items.c.key.in_(some))
        if await connection.scalar(query.limit(1)) is not None:
            return True
    return False


def _chunks(names: Iterable[str]) -> Iterator[list[str]]:
    left = iter(names)
    while some := [*islice(left, MOST_NAMED)]:
        yield some
