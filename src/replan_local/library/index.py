"""An index of passages in memory, with SQLite's full text search."""

import math
import sqlite3
from collections.abc import Sequence

from replan.plan.model import Value
from replan_local.library.terms import indexed, sought
from replan_local.library.texts import Passage
from replan_local.refusals import CannotAnswerError

_HEADING_WEIGHT = 0.6


class Hit(Value):
    """A passage that was found.

    Attributes:
        passage: The passage.
        terms: Which of the terms stand in it.
        coverage: How much of what was asked it covers, 0 to 1; rare terms count more.
        rank: SQLite's bm25: the lower, the better.
    """

    passage: Passage
    terms: tuple[str, ...]
    coverage: float
    rank: float


class Index:
    """The passages of some texts; belongs to the thread that made it."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._passages = tuple(passages)
        self._database = sqlite3.connect(":memory:")
        try:
            self._database.execute(
                "CREATE VIRTUAL TABLE passages USING fts5"
                "(heading, body, tokenize = 'porter unicode61 remove_diacritics 2')"
            )
        except sqlite3.OperationalError as error:
            self.close()
            message = f"This Python's SQLite has no full text search (FTS5): {error}."
            raise CannotAnswerError(message) from error
        rows = (
            (number, indexed(f"{passage.file} {passage.heading}"), indexed(passage.text))
            for number, passage in enumerate(self._passages)
        )
        self._database.executemany(
            "INSERT INTO passages (rowid, heading, body) VALUES (?, ?, ?)", rows
        )

    def close(self) -> None:
        """Give the memory back."""
        self._database.close()

    def find(self, terms: Sequence[str]) -> list[Hit]:
        """The passages with any of the terms, the best first: most of the terms, then bm25."""
        ranks = {term: self._ranks(term) for term in terms}
        weights = {term: self._weight(len(found)) for term, found in ranks.items()}
        whole = sum(weights.values())
        hits = [
            Hit(
                passage=self._passages[number],
                terms=own,
                coverage=sum(weights[term] for term in own) / whole,
                rank=sum(ranks[term][number] for term in own),
            )
            for number in sorted({number for found in ranks.values() for number in found})
            if (own := tuple(term for term in terms if number in ranks[term]))
        ]
        return sorted(hits, key=lambda hit: (-hit.coverage, hit.rank))

    def _ranks(self, term: str) -> dict[int, float]:
        rows = self._database.execute(
            "SELECT rowid, bm25(passages, ?, 1.0) FROM passages WHERE passages MATCH ?",
            (_HEADING_WEIGHT, sought(term)),
        )
        return {int(number): float(rank) for number, rank in rows}

    def _weight(self, passages: int) -> float:
        """The inverse document frequency: a term that few passages have says more."""
        return math.log(1 + (len(self._passages) + 1) / (passages + 0.5))
