"""Which texts fit a query best, by SQLite's full text search: in a file, or in memory.

Whether the texts are in an index of the file, or are encrypted and only known in memory, the same
words are found and rated by the same rule (BM25).
"""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, cast

from langgraph.store.base import get_text_at_path, tokenize_path
from sqlalchemy import Connection, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from replan.adapters.storage.store.rows import prefixes_of
from replan.adapters.storage.tables import schema
from replan.texts.terms import TOKENIZER, any_of, indexed, terms_of, with_parts

Parameters = dict[str, Any]

_MOST_TERMS = 48
_HALF = 10.0  # where bm25 is this, the score is one half

_INDEX = f"""
CREATE VIRTUAL TABLE IF NOT EXISTS replan_words USING fts5(
  place, text, tokenize = '{TOKENIZER}')"""
_STATE = """
SELECT (SELECT count(*) FROM replan_items), (SELECT max(id) FROM replan_items),
  (SELECT count(*) FROM replan_words_docsize), (SELECT max(id) FROM replan_words_docsize)"""
_INSERTED = text("INSERT INTO replan_words (rowid, place, text) VALUES (:id, :place, :text)")
_FORGOTTEN = text("""
DELETE FROM replan_words WHERE rowid =
  (SELECT id FROM replan_items WHERE namespace = :namespace AND key = :key)""")
_NOTED = text("""
INSERT INTO replan_words (rowid, place, text)
SELECT id, :place, :text FROM replan_items WHERE namespace = :namespace AND key = :key""")
# A cross join is computed in its order: the other one would ask the index for each item.
_FOUND = """
SELECT namespace, key, value, created_at, updated_at, bm25(replan_words, 0.0, 1.0) AS far
FROM replan_words CROSS JOIN replan_items ON replan_items.id = replan_words.rowid
WHERE replan_words MATCH :terms AND substr(namespace, 1, length(:prefix)) = :prefix
ORDER BY far, replan_items.id DESC LIMIT :limit OFFSET :offset"""
IN_MEMORY = f"CREATE VIRTUAL TABLE words USING fts5(text, tokenize = '{TOKENIZER}')"
"""An index of texts."""

UNINDEXED = "CREATE TABLE words (rowid INTEGER PRIMARY KEY, text TEXT NOT NULL)"
"""Texts, where SQLite has no such index."""


@cache
def has_full_text() -> bool:
    """Whether the SQLite of this Python has full text search."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(IN_MEMORY)
        except sqlite3.OperationalError:
            return False
        return True


def words_in(raw: str) -> str:
    """Write a text as the index takes its words."""
    return indexed(with_parts(raw).casefold())


@dataclass(frozen=True)
class Kept:
    """An item's value, and LangGraph's `index` of it."""

    value: dict[str, Any]
    index: list[str] | bool | None  # which fields are looked through; False: none, None: all

    @cached_property
    def words(self) -> str:
        if self.index is False:
            return ""
        if isinstance(self.index, list):
            paths = (tokenize_path(path) for path in self.index)
            texts = (said for path in paths for said in get_text_at_path(self.value, path))
        else:
            texts = _texts_in(self.value)
        return words_in("\n".join(texts))


def _texts_in(value: object) -> Iterable[str]:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict | list):
        parts = cast("Any", value)
        for each in parts.values() if isinstance(value, dict) else parts:
            yield from _texts_in(each)


def asked(query: str) -> tuple[str, ...]:
    """What a query looks for; nothing if it has no words."""
    return terms_of(query)[:_MOST_TERMS]


def score(far: float) -> float:
    """Return a number between 0 and 1 for what bm25 says about a text."""
    return -far / (_HALF - far)


def counted(terms: Sequence[str], texts: Mapping[int, str]) -> list[tuple[int, float]]:
    """Rate texts that `words_in` wrote by the share of terms in them, for a SQLite that cannot."""
    looked_for = [indexed(term).strip() for term in terms]
    found = (
        (number, sum(term in text for term in looked_for) / len(terms))
        for number, text in texts.items()
    )
    return sorted(
        ((n, share) for n, share in found if share), key=lambda each: (-each[1], -each[0])
    )


class WordIndex:
    """The index in a SQLite file without a key, changed in the transactions of its items."""

    async def forget(self, connection: AsyncConnection, rows: Sequence[Parameters]) -> None:
        """Take items out, before they are changed or deleted."""
        await connection.execute(_FORGOTTEN, [*rows])

    async def note(
        self, connection: AsyncConnection, rows: Sequence[tuple[Parameters, str]]
    ) -> None:
        """Add the words of items, after they were written."""
        noted = [{**row, "place": _prefixes(row["namespace"]), "text": said} for row, said in rows]
        await connection.execute(_NOTED, noted)

    def found(
        self, query: str, prefix: str, limit: int, offset: int
    ) -> tuple[TextClause, Parameters]:
        """The one query that finds and ranks the items below a prefix."""
        terms = f"text : ({any_of(asked(query))})"
        if prefix:
            # Else all that others said would be rated, too.
            terms = f'place : "{_token(prefix)}" AND {terms}'
        given = {"terms": terms, "prefix": prefix, "limit": limit, "offset": offset}
        return text(_FOUND), given

    def catch_up(self, connection: Connection, words: Callable[[Any], str]) -> None:
        """Create the index if it is missing or outdated, as after use by a Python without FTS5."""
        connection.exec_driver_sql(_INDEX)
        items, newest, known, newest_known = connection.exec_driver_sql(_STATE).one()
        # A number is never given twice, and each change of an item gives it a new one.
        if (items, newest) == (known, newest_known):
            return
        connection.exec_driver_sql("DELETE FROM replan_words")
        rows = connection.execute(schema.items.select()).all()
        noted = [
            {"id": row.id, "place": _prefixes(row.namespace), "text": words(row)} for row in rows
        ]
        if noted:
            connection.execute(_INSERTED, noted)


def _prefixes(namespace: str) -> str:
    """Words for a namespace and for all above it; labels may have signs that are not words."""
    return " ".join(map(_token, prefixes_of(namespace)[1:]))


def _token(namespace: str) -> str:
    return hashlib.blake2b(namespace.encode(), digest_size=8).hexdigest()
