"""The vectors of a folder's passages: kept in its index by content, searched in memory."""

import hashlib
import math
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from replan.adapters.knowledge.embedding import Embedding, EmbeddingError, embedded_text
from replan.errors import RetrievalError

FIRST, LARGEST = 16, 256
"""Passages of the first call and of any; calls that are quick are followed by larger ones."""

QUICK = 1.0
"""Seconds of a quick call; a model on this machine may take a second for each passage."""

SECONDS = 10.0
"""How long one search asks for the vectors of passages that have none; others continue it."""

MOST_CALLS = 16
"""Calls for them in one search."""

MOST = 200_000
"""Passages that are compared in memory; of a folder with more none is."""

_MOST_FOLDERS = 4

_TABLE = """
CREATE TABLE IF NOT EXISTS vectors (
  model TEXT, digest BLOB, vector BLOB, PRIMARY KEY (model, digest))"""
_PASSAGES = "SELECT rowid, file, title, coalesce(text, body) FROM passages"


@dataclass(frozen=True)
class _Matrix:
    """The passages that have vectors, in one order."""

    state: str  # of the index when it was read
    ids: Any  # numbers of passages
    files: Sequence[str]
    rows: Any  # a vector of length 1 for each
    missing: Mapping[bytes, str]  # the texts that have none, by their digests


_guard = threading.Lock()
# A search waits if another one is computing vectors of the same folder.
_turns = [threading.Lock() for _ in range(64)]
MATRICES: OrderedDict[tuple[Path, str, int], _Matrix] = OrderedDict()
"""What was read last, by the index, the model and the length of its vectors."""


def numpy() -> Any:
    """Return numpy, which is an extra."""
    try:
        return import_module("numpy")
    except ModuleNotFoundError as error:
        reason = "embeddings need numpy"
        raise RetrievalError(reason, "Install it: pip install 'replan[vectors]'.") from error


class Vectors:
    """The vectors that one model gave for the passages of an index."""

    def __init__(self, path: Path, db: sqlite3.Connection, embedding: Embedding) -> None:
        self._np = numpy()
        self._path = path
        self._db = db
        self._embedding = embedding
        self._model = embedding.names[0]
        self.problem = ""  # what of the passages cannot be found by it

    def nearest(self, query: str, most: int, glob: str = "") -> list[int]:
        """Return the passages with the vectors nearest to that of a question, the nearest first."""
        np = self._np
        vector = self._unit([self._embedding.of_query(query)])[0]
        matrix = self._matrix(len(vector), MOST_CALLS, SECONDS)
        if not len(matrix.ids):
            return []
        near = matrix.rows @ vector
        if glob:
            named = self._db.execute("SELECT name FROM files WHERE name GLOB ?", (glob,))
            allowed = {name for (name,) in named}
            near = np.where([file in allowed for file in matrix.files], near, 0)
        most = min(most, len(near))
        best = np.argpartition(-near, most - 1)[:most]
        best = best[np.argsort(-near[best], kind="stable")]
        # What points away has nothing to do with it.
        return [int(matrix.ids[each]) for each in best if near[each] > 0]

    def complete(self) -> None:
        """Ask for all vectors that are missing, however long it takes."""
        self._matrix(len(self._embedding.of_query("knowledge")), None, None)

    def _matrix(self, width: int, calls: int | None, seconds: float | None) -> _Matrix:
        key, state = (self._path, self._model, width), self._state()
        with _guard:
            known = MATRICES.get(key)
        if known is not None and known.state == state:
            return known
        if self._db.execute("SELECT count(*) FROM passages").fetchone()[0] > MOST:
            raise EmbeddingError(f"the folder has more than {MOST:,} passages")
        self._db.execute(_TABLE)
        matrix = self._read(width, state)
        if matrix.missing:
            turn = _turns[hash(key) % len(_turns)]
            if turn.acquire(timeout=-1 if seconds is None else seconds):
                try:
                    self._ask_for(self._read(width, state).missing, width, calls, seconds)
                finally:
                    turn.release()
            matrix = self._read(width, state)
        if matrix.missing:
            self.problem = (
                f"Passages without vectors yet: {len(matrix.missing):,}; they are found by their "
                "words alone, and further searches add more."
            )
            return matrix
        with _guard:
            MATRICES[key] = matrix
            MATRICES.move_to_end(key)
            if len(MATRICES) > _MOST_FOLDERS:
                MATRICES.popitem(last=False)
        return matrix

    def _state(self) -> str:
        """What changes with the passages."""
        rows = self._db.execute("SELECT name, digest, first FROM files ORDER BY name").fetchall()
        return hashlib.sha256(repr(rows).encode()).hexdigest()

    def _read(self, width: int, state: str) -> _Matrix:
        known = dict(
            self._db.execute(
                "SELECT digest, vector FROM vectors WHERE model = ? AND length(vector) = ?",
                (self._model, 4 * width),
            )
        )
        ids, files, found, missing = list[int](), list[str](), list[bytes](), dict[bytes, str]()
        used = set[bytes]()
        for id_, file, heading, text in self._db.execute(_PASSAGES):
            shown = embedded_text(heading, text)
            digest = hashlib.sha256(shown.encode("utf-8", "surrogatepass")).digest()
            if (vector := known.get(digest)) is None:
                missing[digest] = shown
                continue
            ids.append(id_)
            files.append(file)
            found.append(vector)
            used.add(digest)
        if len(known) > 2 * (len(used) + len(missing)) + FIRST:
            self._forget(known.keys() - used)
        rows = self._np.frombuffer(b"".join(found), dtype="<f4").reshape(-1, width)
        return _Matrix(state, ids, files, rows, missing)

    def _forget(self, digests: Iterable[bytes]) -> None:
        """Let the vectors go of what is no longer there; some are kept, since texts come back."""
        self._db.execute("BEGIN IMMEDIATE")
        gone = [(self._model, digest) for digest in digests]
        self._db.executemany("DELETE FROM vectors WHERE model = ? AND digest = ?", gone)
        self._db.execute("COMMIT")

    def _ask_for(
        self,
        missing: Mapping[bytes, str],
        width: int,
        calls: int | None,
        seconds: float | None,
    ) -> None:
        until = math.inf if seconds is None else time.monotonic() + seconds
        left, size, made = list(missing.items()), FIRST, 0
        while left and made != calls and (began := time.monotonic()) < until:
            batch, left, made = left[:size], left[size:], made + 1
            vectors = self._unit(self._embedding.of_texts([text for _, text in batch]))
            if vectors.shape[1] != width:
                raise EmbeddingError("its vectors of passages and of questions differ in length")
            given = [
                (self._model, digest, vector.tobytes())
                for (digest, _), vector in zip(batch, vectors, strict=True)
            ]
            # The result of each call is stored immediately, whatever happens to the next one.
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", given)
            self._db.execute("COMMIT")
            if time.monotonic() - began < QUICK:
                size = min(2 * size, LARGEST)

    def _unit(self, vectors: Sequence[Sequence[float]]) -> Any:
        """Vectors of length 1, of which the product is the cosine."""
        np = self._np
        made = np.asarray(vectors, dtype="<f4")
        lengths = np.linalg.norm(made, axis=1, keepdims=True)
        return made / np.where(lengths > 0, lengths, 1)
