"""Find the passages of the notes that have the words of a text, with SQLite's full text search."""

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

from replan.texts.passages import Passage
from replan.texts.safe_folder import FolderFile
from replan.texts.terms import TOKENIZER, any_of, indexed, words_of
from replan_local.commands import Search
from replan_local.folder import find_file
from replan_local.notes import KINDS, bounds_met, note_files, passages_in
from replan_local.refusals import CannotAnswerError, did_you_mean

_USUAL, _MOST, _MOST_PASSAGES, _MOST_WORDS = 3, 20, 50_000, 12
_NEAR_WORD = 0.78


class Searching:
    """A search in the notes of a folder, indexed again; may be stopped from another thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End the work at the next file."""
        self._stopped.set()

    def answer(self, search: Search) -> str:
        """Quote the passages with the most, and the rarest, of the words, in Markdown."""
        files = note_files(self._directory)
        if not files:
            message = f"There is nothing to read in the folder: no file ends in {', '.join(KINDS)}."
            raise CannotAnswerError(message)
        files = (find_file(search.file, files, "text"),) if search.file else files
        words = words_of(search.query)
        if not 0 < len(words) <= _MOST_WORDS:
            count = f"{len(words)} words to look for, not 1 to {_MOST_WORDS}"
            raise CannotAnswerError(f"'{search.query}' has {count}.")
        passages = self._read(files)
        found = _found(passages, words)
        if not found:
            raise _nothing(words, files, passages)
        shown = found[: min(search.top or _USUAL, _MOST)]
        return _quoted(search.query, shown, len(found), bounds_met(files))

    def _read(self, files: Sequence[FolderFile]) -> list[Passage]:
        passages: list[Passage] = []
        for file in files:
            if self._stopped.is_set() or len(passages) >= _MOST_PASSAGES:
                break
            passages += passages_in(file)
        return passages[:_MOST_PASSAGES]


def _found(passages: Sequence[Passage], words: Sequence[str]) -> list[Passage]:
    index = sqlite3.connect(":memory:")
    try:
        index.execute(
            f"CREATE VIRTUAL TABLE passages USING fts5(heading, body, tokenize = '{TOKENIZER}')"
        )
        rows = (
            (number, indexed(f"{each.file} {each.heading}"), indexed(each.text))
            for number, each in enumerate(passages)
        )
        index.executemany("INSERT INTO passages (rowid, heading, body) VALUES (?, ?, ?)", rows)
        ranked = index.execute(
            "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY bm25(passages, 0.6, 1.0)",
            (any_of(tuple(words)),),
        )
        return [passages[number] for (number,) in ranked]
    except sqlite3.OperationalError as error:
        message = f"This Python's SQLite has no full text search (FTS5): {error}."
        raise CannotAnswerError(message) from error
    finally:
        index.close()


def _quoted(query: str, shown: Sequence[Passage], found: int, notes: Sequence[str]) -> str:
    parts = [f"**Passages on {query}** ({len(shown)} of {found})", *map(_quote, shown)]
    parts += ["\n".join(f"- {note}" for note in notes)] if notes else []
    return "\n\n".join(parts)


def _quote(passage: Passage) -> str:
    under = f", under: {passage.heading}" if passage.heading else ""
    place = f"(`{passage.file}:{passage.line}`{under})"
    return "\n".join(f"> {line}".rstrip() for line in (*passage.text.splitlines(), "", place))


def _nothing(
    words: Sequence[str], files: Sequence[FolderFile], passages: Sequence[Passage]
) -> CannotAnswerError:
    known = sorted({word for each in passages for word in words_of(f"{each.heading} {each.text}")})
    where = files[0].name if len(files) == 1 else f"the {len(files)} texts of the folder"
    if len(words) == 1:
        hint = did_you_mean(words[0], known, near=_NEAR_WORD)
        return CannotAnswerError(f"No passage in {where} has '{words[0]}'.{hint}")
    return CannotAnswerError(f"No passage in {where} has any of these words: {', '.join(words)}.")
