"""Which texts fit a query best, by SQLite's full text search in memory (BM25)."""

from collections.abc import Sequence
from contextlib import closing

from replan.base.texts.terms import TOKENIZER, any_of, indexed, terms_of, with_parts

_MOST_TERMS = 48
_HALF = 10.0  # where bm25 is this, the score is one half

_TEXTS = f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize = '{TOKENIZER}')"
_RANKED = """
SELECT rowid, bm25(texts) AS far FROM texts WHERE texts MATCH ? ORDER BY far, rowid DESC"""


def rank(query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
    """Return the places of the texts that have words of a query, and their scores.

    The best come first, of equally good ones the last. A score is between 0 and 1; it orders the
    texts of one query and does not say how good a text is.
    """
    import sqlite3  # noqa: PLC0415 - only a search needs it

    terms = terms_of(query)[:_MOST_TERMS]
    if not terms or not texts:
        return []
    rows = ((place, indexed(with_parts(text).casefold())) for place, text in enumerate(texts))
    with closing(sqlite3.connect(":memory:")) as index:
        index.execute(_TEXTS)
        index.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", rows)
        found = index.execute(_RANKED, (any_of(terms),)).fetchall()
    return [(place, -far / (_HALF - far)) for place, far in found]
