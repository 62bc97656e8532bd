"""The table of a collection in PostgreSQL, as one tenant sees it. All values are parameters."""

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from replan.errors import RetrievalError
from replan.texts.passages import Passage
from replan.texts.terms import indexed, terms_of, with_parts

Connection = psycopg.Connection[Any]

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_MOST_TERMS = 48

_TABLES = (
    """
CREATE TABLE IF NOT EXISTS {table} (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant TEXT NOT NULL, file TEXT NOT NULL,
  digest TEXT NOT NULL, model TEXT NOT NULL, line INTEGER NOT NULL, heading TEXT NOT NULL,
  content TEXT NOT NULL, words TSVECTOR NOT NULL, embedding VECTOR NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS {files} ON {table} (tenant, file)",
    "CREATE INDEX IF NOT EXISTS {words} ON {table} USING gin (words)",
)
_INSERTED = """
INSERT INTO {table} (tenant, file, digest, model, line, heading, content, words, embedding)
VALUES (%s, %s, %s, %s, %s, %s, %s,
  setweight(to_tsvector(%s::regconfig, %s), 'A') || to_tsvector(%s::regconfig, %s), %s::vector)"""
_BY_WORDS = """
SELECT id FROM {table}, (SELECT {asked} AS asked) AS question
WHERE tenant = %s AND file LIKE %s AND words @@ asked
ORDER BY ts_rank(words, asked) DESC, id LIMIT %s"""
_BY_MEANING = """
SELECT id FROM (
  SELECT id, embedding <=> %s::vector AS far FROM {table}
  WHERE tenant = %s AND file LIKE %s AND model = %s ORDER BY far, id LIMIT %s) AS nearest
WHERE far < 1"""


@dataclass(frozen=True, slots=True)
class Row:
    """A passage with its stored metadata."""

    digest: str  # of its file
    model: str
    passage: Passage
    vector: Sequence[float]


@dataclass(frozen=True)
class Collection:
    """What one tenant has in a table.

    Raises:
        RetrievalError: This is not a name of a table.
    """

    name: str
    language: str
    tenant: str
    glob: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            fix = "Use letters a to z, digits and _, at most 41."
            raise RetrievalError(f"{self.name!r} cannot be the name of a collection", fix)

    def prepare(self, connection: Connection) -> None:
        """Create what is not there."""
        _prepare_extension(connection)
        for statement in _TABLES:
            connection.execute(self._sql(statement))

    @contextmanager
    def alone(self, connection: Connection) -> Generator[None]:
        """Hold the lock under which the passages of a tenant are changed."""
        key = f"{self.name}/{self.tenant}"
        connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (key,))
        # The lock ends with the connection at the latest.
        yield
        connection.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", (key,))

    def files(self, connection: Connection, model: str) -> Mapping[str, str]:
        """The digests of the files that are there, empty for one of another model."""
        asked = "SELECT DISTINCT file, digest, model FROM {table} WHERE tenant = %s"
        rows = connection.execute(self._sql(asked), (self.tenant,))
        return {file: digest if own == model else "" for file, digest, own in rows}

    def replace(self, connection: Connection, file: str, rows: Iterable[Row]) -> None:
        """Put passages into the place of all that a file had."""
        given = [self._row(file, row) for row in rows]
        with connection.transaction(), connection.cursor() as cursor:
            gone = "DELETE FROM {table} WHERE tenant = %s AND file = %s"
            cursor.execute(self._sql(gone), (self.tenant, file))
            cursor.executemany(self._sql(_INSERTED), given)

    def has_any(self, connection: Connection) -> bool:
        """Whether the tenant has anything."""
        asked = self._sql("SELECT EXISTS (SELECT 1 FROM {table} WHERE tenant = %s)")
        return bool(connection.execute(asked, (self.tenant,)).fetchall()[0][0])

    def by_words(self, connection: Connection, query: str, most: int) -> list[int]:
        """Find passages that have some of the words, the best first."""
        terms = terms_of(query)[:_MOST_TERMS]
        if not terms:
            return []
        one = sql.SQL("phraseto_tsquery(%s::regconfig, %s)")
        asked = sql.SQL(" || ").join([one] * len(terms))
        given = [part for term in terms for part in (self.language, indexed(term))]
        statement = self._sql(_BY_WORDS, asked=asked)
        rows = connection.execute(statement, (*given, self.tenant, self._like, most))
        return [id_ for (id_,) in rows]

    def by_meaning(
        self, connection: Connection, vector: Sequence[float], model: str, most: int
    ) -> list[int]:
        """Find the passages with the nearest vectors; what points away does not count."""
        given = (_written(vector), self.tenant, self._like, model, most)
        return [id_ for (id_,) in connection.execute(self._sql(_BY_MEANING), given)]

    def passages(self, connection: Connection, ids: Sequence[int]) -> dict[int, Passage]:
        """Return passages by their numbers."""
        asked = "SELECT id, file, line, heading, content FROM {table} WHERE id = ANY(%s)"
        return {
            id_: Passage(file=file, line=line, heading=heading, text=text)
            for id_, file, line, heading, text in connection.execute(self._sql(asked), (list(ids),))
        }

    @property
    def _like(self) -> str:
        escaped = re.sub(r"([\\%_])", r"\\\1", self.glob or "*")
        return escaped.replace("*", "%").replace("?", "_")

    def _row(self, file: str, row: Row) -> tuple[object, ...]:
        passage = row.passage
        shown = indexed(with_parts(f"{passage.heading} ({file})"))
        own = (self.tenant, file, row.digest, row.model, passage.line, passage.heading)
        words = (self.language, shown, self.language, indexed(passage.text))
        return (*own, passage.text, *words, _written(row.vector))

    def _sql(self, text: str, **parts: sql.Composable) -> sql.Composed:
        names = {
            "table": sql.Identifier(self.name),
            "files": sql.Identifier(f"{self.name}_files"),
            "words": sql.Identifier(f"{self.name}_words"),
        }
        return sql.SQL(text).format(**names, **parts)  # pyright: ignore[reportArgumentType] - ours


def _written(vector: Sequence[float]) -> str:
    return f"[{','.join(str(float(each)) for each in vector)}]"


def _prepare_extension(connection: Connection) -> None:
    asked = "SELECT 1 FROM pg_extension WHERE extname = 'vector'"
    if connection.execute(asked).fetchone():
        return
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except psycopg.errors.InsufficientPrivilege as error:
        reason = "the database has no extension vector, and this user may not create it"
        fix = "Have an administrator of it run: CREATE EXTENSION vector;"
        raise RetrievalError(reason, fix) from error
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
        raise RetrievalError("the server has no pgvector", "Install pgvector on it.") from error
