"""The index of a folder: a file of SQLite's full text search, for this user alone."""

import hashlib
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

from replan.base.errors import RetrievalError
from replan.base.texts.files import FolderFile, files_below
from replan.base.texts.passages import Passage
from replan.base.texts.ranking import TOKENIZER, any_of, indexed, telling, terms_of, with_parts
from replan.knowledge.documents import UnreadableFileError
from replan.knowledge.read_files import (
    KINDS,
    content_of,
    is_waiting,
    passages_in,
)

FORMAT = 2
"""Stands in the name of the file, too, so that another version leaves it alone."""

DEEPEST, MOST_FILES = 20, 20_000

_MOST_TERMS = 48
_WAIT = 60.0
_BUSY = sqlite3.SQLITE_BUSY
_COMMON_FROM = 500
"""A term in more passages than this, and in a tenth of all, is too common to search for."""

_RACY = 2_000_000_000
"""Nanoseconds in which a file may change again without another time."""

_TABLES = f"""
CREATE TABLE IF NOT EXISTS files (
  name TEXT PRIMARY KEY, stamp TEXT, digest TEXT, first INTEGER, last INTEGER, problem TEXT);
CREATE VIRTUAL TABLE IF NOT EXISTS passages USING fts5(
  heading, body, text UNINDEXED, title UNINDEXED, file UNINDEXED, line UNINDEXED,
  tokenize = '{TOKENIZER}');
CREATE TABLE IF NOT EXISTS common (term TEXT PRIMARY KEY);
"""
_COMMON = """
CREATE VIRTUAL TABLE IF NOT EXISTS temp.terms USING fts5vocab(main, passages, row);
DELETE FROM common;
INSERT INTO common SELECT term FROM temp.terms WHERE doc > max({least},
  (SELECT count(*) FROM passages) / 10)"""
_INSERTED = """
INSERT INTO passages (rowid, heading, body, text, title, file, line)
VALUES (?, ?, ?, ?, ?, ?, ?)"""
_ALL = "SELECT file, line, title, coalesce(text, body) FROM passages ORDER BY file, rowid"
_FOUND = """
SELECT rowid, file, line, title, coalesce(text, body)
FROM passages WHERE passages MATCH ? {} ORDER BY bm25(passages, 1.5, 1.0) LIMIT ?"""
_AMONG = "SELECT rowid FROM passages WHERE passages MATCH ? AND rowid IN ({})"


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found."""

    score: float  # between 0 and 1; none is larger than that of a better hit
    passage: Passage


@dataclass(frozen=True, slots=True)
class _Known:
    """What the index has of a file."""

    stamp: str
    digest: str
    first: int
    last: int
    problem: str


def path_in(cache: Path, folder: Path) -> Path:
    """Where the index of a folder is."""
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
    return cache / f"{name}-{FORMAT}.db"


@contextmanager
def opened(path: Path) -> Generator["Index"]:
    """Open an index; one that is damaged is made again."""
    try:
        _make_private(path)
        connection = _connected(path)
        try:
            yield Index(connection)
        finally:
            connection.close()
    except (sqlite3.Error, OSError) as error:
        reason = f"the index {path} cannot be used: {error}"
        raise RetrievalError(reason, "Make its folder writable, or name another cache.") from error


class Index:
    """An open index, of one thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def update(self, folder: Path) -> list[str]:
        """Bring the index up to date, and say what of the folder is left out.

        What changed is read again, what is gone goes.
        """
        listing = files_below(folder, KINDS, deepest=DEEPEST, most=MOST_FILES)
        files = {file.name: file for file in listing.files}
        if self._is_behind(files):
            # Whoever comes second finds it done.
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._catch_up(files)
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        rows = self._db.execute("SELECT name, problem FROM files WHERE problem != '' ORDER BY name")
        return [*listing.left_out, *(f"{name} is left out: {problem}." for name, problem in rows)]

    def size(self) -> tuple[int, int]:
        """How many files and passages there are."""
        files = self._db.execute("SELECT count(*) FROM files WHERE problem = ''").fetchone()[0]
        return files, self._db.execute("SELECT count(*) FROM passages").fetchone()[0]

    def search(self, query: str, most: int, glob: str = "") -> list[Hit]:
        """Find the passages that fit best, the best first."""
        terms = self._distinctive(terms_of(query))[:_MOST_TERMS]
        if not terms:
            return []
        only = "AND file GLOB ?" if glob else ""
        parameters = [any_of(terms), *([glob] if glob else []), most]
        rows = self._db.execute(_FOUND.format(only), parameters).fetchall()
        scores = self._scores([row[0] for row in rows], telling(terms))
        return [
            Hit(score, Passage(file=file, line=line, heading=heading, text=text))
            for (_, file, line, heading, text), score in zip(rows, scores, strict=True)
        ]

    def _scores(self, ids: Sequence[int], terms: Sequence[str]) -> list[float]:
        """Score ranked passages: the share of the terms that a passage, or a later one, has."""
        # What bm25 gives depends on the size of the folder. The share means the same in each, and
        # the order of the ranking stays.
        scores = Counter[int]()
        statement = _AMONG.format(", ".join("?" * len(ids)))
        for term in terms if ids else ():
            rows = self._db.execute(statement, [any_of((term,)), *ids])
            scores.update(id_ for (id_,) in rows)
        shares = [scores[id_] / len(terms) for id_ in ids]
        return [*accumulate(reversed(shares), max)][::-1]

    def passages(self) -> list[Passage]:
        """All passages, file by file."""
        return [
            Passage(file=file, line=line, heading=heading, text=text)
            for file, line, heading, text in self._db.execute(_ALL)
        ]

    def _distinctive(self, terms: tuple[str, ...]) -> tuple[str, ...]:
        """The terms of a question without the commonest ones, if others are left."""
        common = {term for (term,) in self._db.execute("SELECT term FROM common")}
        return tuple(term for term in terms if term not in common) or terms

    def _is_behind(self, files: Mapping[str, FolderFile]) -> bool:
        stamps = dict(self._db.execute("SELECT name, stamp FROM files"))
        return files.keys() != stamps.keys() or any(
            _stamp(file) != stamps[name] for name, file in files.items()
        )

    def _catch_up(self, files: Mapping[str, FolderFile]) -> None:
        rows = self._db.execute("SELECT name, stamp, digest, first, last, problem FROM files")
        indexed = {name: _Known(*rest) for name, *rest in rows}
        for name in indexed.keys() - files.keys():
            self._forget(name, indexed[name])
        for name, file in files.items():
            stamp, old = _stamp(file), indexed.get(name)
            if old is None or stamp != old.stamp:
                self._read_file(file, stamp, old)
        for statement in _COMMON.format(least=_COMMON_FROM).split(";"):
            self._db.execute(statement)

    def _read_file(self, file: FolderFile, stamp: str, old: _Known | None) -> None:
        digest, problem, rows = "", "", list[_Row]()
        try:
            content = content_of(file.path)
            digest = hashlib.sha256(content).hexdigest()
            if old is not None and old.digest == digest:
                self._db.execute("UPDATE files SET stamp = ? WHERE name = ?", (stamp, file.name))
                return
            rows = [_row(passage) for passage in passages_in(file.name, content)]
        except UnreadableFileError as error:
            problem, digest = str(error), ""
        if old is not None:
            self._forget(file.name, old)
        first, last = self._insert(rows)
        row = (file.name, stamp, digest, first, last, problem)
        self._db.execute("INSERT INTO files VALUES (?, ?, ?, ?, ?, ?)", row)

    def _insert(self, rows: Sequence["_Row"]) -> tuple[int, int]:
        """Add the passages of a file; return the numbers of the first and the last of them."""
        first = self._db.execute("SELECT coalesce(max(last), 0) + 1 FROM files").fetchone()[0]
        numbered = ((number, *row) for number, row in enumerate(rows, start=first))
        self._db.executemany(_INSERTED, numbered)
        return first, first + len(rows) - 1

    def _forget(self, name: str, old: _Known) -> None:
        self._db.execute("DELETE FROM passages WHERE rowid BETWEEN ? AND ?", (old.first, old.last))
        self._db.execute("DELETE FROM files WHERE name = ?", (name,))


_Row = tuple[str, str, str | None, str, str, int]


def _row(passage: Passage) -> _Row:
    shown = indexed(with_parts(f"{passage.heading} ({passage.file})"))
    body = indexed(passage.text)
    # What is in the index as it is in the file is kept once.
    text = None if body == passage.text else passage.text
    return (shown, body, text, passage.heading, passage.file, passage.line)


def _stamp(file: FolderFile) -> str:
    """What changes with a file; of one that changed just now nothing that stays the same."""
    try:
        stat = os.stat(file.path)  # noqa: PTH116 - it is asked of each file for each search
    except OSError:  # Gone since the folder was listed; the next search sees it.
        return "gone"
    changed = max(stat.st_mtime_ns, stat.st_ctime_ns)
    now = time.time_ns()
    racy = f"/{now}" if now - changed < _RACY else ""
    waiting = "/waiting" if is_waiting(file.name) else ""
    return f"{stat.st_ino}/{stat.st_size}/{stat.st_mtime_ns}/{stat.st_ctime_ns}{racy}{waiting}"


def _make_private(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == _BUSY


# Of two that make a new index at once, SQLite refuses one at the change of its log's mode,
# whatever time it has.
_patiently = retry(
    retry=retry_if_exception(_is_busy),
    wait=wait_random(0, 0.05),
    stop=stop_after_delay(_WAIT),
    reraise=True,
)


def _connected(path: Path) -> sqlite3.Connection:
    try:
        return _prepared(path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        # It is not a database, or damaged: all of it can be made again.
        for ending in ("", "-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        _make_private(path)
        return _prepared(path)


@_patiently
def _prepared(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        if connection.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(f"{_TABLES} PRAGMA user_version = {FORMAT};")
    except BaseException:
        connection.close()
        raise
    return connection
