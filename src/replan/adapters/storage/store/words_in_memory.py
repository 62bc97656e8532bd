"""The words of items in memory, where the database must not know them, or cannot rank them."""

import asyncio
import sqlite3
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Set as AbstractSet

from replan.adapters.storage.store import full_text
from replan.texts.terms import any_of

_MOST = 50_000
"""Items whose words stay in memory."""

_RANKED = """
SELECT rowid, bm25(words) AS far FROM words WHERE words MATCH ?
ORDER BY far, rowid DESC LIMIT ? OFFSET ?"""

State = tuple[int, int]
"""How many items there are and the newest number: a number is never given twice."""


class WordsInMemory:
    """The words of the items below one prefix of namespaces."""

    def __init__(self) -> None:
        self.state: State = (0, 0)
        self.alone = asyncio.Lock()  # whoever brings it up to date holds it
        self._texts: dict[int, str] = {}
        self._guard = threading.Lock()
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        # A search may still read what was pushed out: it is closed when nobody has it any more.
        weakref.finalize(self, self._db.close)
        self._is_indexed = full_text.has_full_text()
        if self._is_indexed:
            self._db.execute(full_text.IN_MEMORY)

    @property
    def numbers(self) -> AbstractSet[int]:
        """The numbers of the items whose words are known."""
        return self._texts.keys()

    def update(self, state: State, numbers: AbstractSet[int], new: Mapping[int, str]) -> None:
        """Take in the words of new items, and let those go that are not there any more."""
        with self._guard:
            for number in self._texts.keys() - numbers:
                self._index(
                    "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)", number
                )
                del self._texts[number]
            self._texts |= new
            for number in new:
                self._index("INSERT INTO words (rowid, text) VALUES (?, ?)", number)
            self.state = state

    def ranked(self, query: str, limit: int, offset: int = 0) -> list[tuple[int, float]]:
        """Find the items that have words of a query: their numbers and scores, the best first."""
        terms = full_text.asked(query)
        with self._guard:
            if not terms or not self._texts:
                return []
            if not self._is_indexed:
                return full_text.counted(terms, self._texts)[offset:][:limit]
            rows = self._db.execute(_RANKED, (any_of(terms), limit, offset))
            return [(number, full_text.score(far)) for number, far in rows]

    def _index(self, statement: str, number: int) -> None:
        if self._is_indexed:
            self._db.execute(statement, (number, self._texts[number]))


class Prefixes:
    """The words below the prefixes that were searched last."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, WordsInMemory] = OrderedDict()

    def of(self, prefix: str) -> WordsInMemory:
        """Give the words below a prefix, none of them at first."""
        if prefix not in self._known:
            self._known[prefix] = WordsInMemory()
        found = self._known[prefix]
        self._known.move_to_end(prefix)
        while (
            len(self._known) > 1 and sum(len(each.numbers) for each in self._known.values()) > _MOST
        ):
            self._known.popitem(last=False)
        return found
