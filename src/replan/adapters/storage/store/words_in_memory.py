"""The words of items in memory, where the database must not know them, or cannot rank them."""

import asyncio
import sqlite3
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Set as AbstractSet
from contextlib import closing

from replan.adapters.storage.store import full_text
from replan.texts.terms import any_of

_MOST = 50_000
"""Items whose words stay in memory."""

_RANKED = """
SELECT rowid, bm25(words) AS far FROM words WHERE words MATCH ?
ORDER BY far, rowid DESC LIMIT ? OFFSET ?"""

FORM = 1
"""The form of `written`: to be raised where an index or the words in it become others."""

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
