"""Knowledge in PostgreSQL: passages of folders, found by their words and by their meaning."""

import hashlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

try:
    import psycopg
except ModuleNotFoundError as error:
    message = "PostgresRetriever needs psycopg. Install it with: pip install 'replan[postgres]'"
    raise ModuleNotFoundError(message, name=error.name) from error
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig

from replan.adapters.knowledge.collection import Collection, Row
from replan.adapters.knowledge.documents import UnreadableFileError
from replan.adapters.knowledge.embedding import (
    SECONDS,
    Embedding,
    WithEmbeddings,
    embedded_text,
    found_or_problem,
)
from replan.adapters.knowledge.fusing import DEEPEST, chunk_of, fused
from replan.adapters.knowledge.index import DEEPEST as DEEPEST_FOLDER, MOST_FILES
from replan.adapters.knowledge.read_files import (
    KINDS,
    content_of,
    passages_in,
)
from replan.errors import RetrievalError
from replan.failures import describe, is_fatal_for_run
from replan.ports.retriever import SearchRequest, SearchResponse, best_of
from replan.secrets.sources import learn_address
from replan.texts.passages import Passage
from replan.texts.safe_folder import FolderFile, files_below

BATCH = 128
"""Passages whose vectors are asked for in one call."""


@dataclass(frozen=True)
class PostgresRetriever(WithEmbeddings):
    """Finds passages in a table of PostgreSQL with pgvector; fill it with sync.

    Needs the extra `postgres`. Every passage belongs to one tenant, which may be the empty
    one, and a search finds only passages of its own tenant.

    Args:
        address: The database, as postgresql://user@host/database.
        embeddings: The model for the meaning of passages: LangChain's Embeddings, or the name of
            one such as openai:text-embedding-3-small, which the graph of a team builds.
        collection: The name of the table: letters a to z, digits and _.
        language: The text search configuration of PostgreSQL, which reduces words to their stems.
        built: The model that was built for the name.
    """

    address: str = field(repr=False)
    embeddings: Embeddings | str
    collection: str = "replan_knowledge"
    language: str = "english"
    built: Embeddings | None = field(default=None, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        learn_address(self.address)

    def search(
        self, request: SearchRequest, config: RunnableConfig | None = None
    ) -> SearchResponse:
        """Find the passages that fit best by words and by meaning; the two rankings are merged.

        The filter `file` is a pattern of the file's path, such as policies/*.

        Args:
            request: The question.
            config: The configuration of the step that searches, whose callbacks count and charge.

        Raises:
            RetrievalError: The database cannot be used, or there is no such filter.
        """
        table = self._table(request)
        most = max(DEEPEST, request.top_k)
        embedding = self.asked_by(config, SECONDS)
        vector, problem = found_or_problem(embedding, lambda: embedding.of_query(request.query))
        with self._connected() as connection:
            rankings = [table.by_words(connection, request.query, most)]
            if vector is not None:
                rankings.append(table.by_meaning(connection, vector, _model(embedding), most))
            places = fused(rankings)[: request.top_k]
            passages = table.passages(connection, [id_ for id_, _ in places])
            if not places and not table.has_any(connection):
                whose = f" of tenant {request.tenant_id}" if request.tenant_id else ""
                problem = f"There is nothing{whose} in {self.collection}."
        found = [
            chunk_of(str(id_), passages[id_], score) for id_, score in places if id_ in passages
        ]
        return best_of(found, request, [problem] if problem else [])

    def sync(
        self, folder: Path | str, *, tenant: str = "", config: RunnableConfig | None = None
    ) -> list[str]:
        """Update the passages of a tenant from a folder: new, changed and removed files.

        Each file is replaced as a whole, so that a search finds the old or the new one. Table,
        indexes and the extension vector are created if they are missing.

        Returns:
            The files that are left out, one sentence each.

        Raises:
            RetrievalError: There is no such folder, the database cannot be used, or the model for
                embeddings failed; what was done before stays.
        """
        if not Path(folder).is_dir():
            raise RetrievalError(f"there is no folder {folder}", "Create it, or name another.")
        embedding, left_out = self.asked_by(config, None), list[str]()
        table = self._table(SearchRequest(query="", tenant_id=tenant))
        with self._connected() as connection, table.alone(connection):
            table.prepare(connection)
            known = table.files(connection, _model(embedding))
            found = files_below(Path(folder), KINDS, deepest=DEEPEST_FOLDER, most=MOST_FILES)
            for name in known.keys() - {each.name for each in found.files}:
                table.replace(connection, name, ())
            for each in found.files:
                passages, digest, problem = _read(each, known.get(each.name))
                left_out += [f"{each.name} is left out: {problem}."] if problem else []
                if passages is not None:
                    table.replace(connection, each.name, _rows(embedding, digest, passages))
        return [*found.left_out, *left_out]

    def _table(self, request: SearchRequest) -> Collection:
        if request.knowledge_base_ids or request.filters.keys() - {"file"}:
            named = ", ".join(sorted({*request.knowledge_base_ids, *request.filters} - {"file"}))
            fix = "Use file, with a pattern such as policies/*."
            raise RetrievalError(f"a collection has no filter or base {named}", fix)
        glob = str(request.filters.get("file", ""))
        return Collection(self.collection, self.language, request.tenant_id, glob)

    @contextmanager
    def _connected(self) -> Generator["psycopg.Connection[Any]"]:
        try:
            with psycopg.connect(self.address, connect_timeout=10, autocommit=True) as connection:
                yield connection
        except psycopg.errors.UndefinedTable as error:
            reason = f"there is no collection {self.collection}"
            raise RetrievalError(reason, "Fill it with sync(folder).") from error
        except psycopg.Error as error:
            reason = f"the collection {self.collection} cannot be used: {describe(error)}"
            raise RetrievalError(reason, "Check the address and the rights of its user.") from error


def _model(embedding: Embedding) -> str:
    return "/".join(embedding.names)


def _read(file: FolderFile, known: str | None) -> tuple[Sequence[Passage] | None, str, str]:
    """What a file holds: its passages, None if they are there already; its digest; a problem."""
    try:
        content = content_of(file.path)
        digest = hashlib.sha256(content).hexdigest()
        if digest == known:
            return None, digest, ""
        return passages_in(file.name, content), digest, ""
    except UnreadableFileError as error:
        return (), "", str(error)


def _rows(embedding: Embedding, digest: str, passages: Sequence[Passage]) -> Iterator[Row]:
    model = _model(embedding)
    for at in range(0, len(passages), BATCH):
        batch = passages[at : at + BATCH]
        try:
            vectors = embedding.of_texts([embedded_text(p.heading, p.text) for p in batch])
        except Exception as error:
            if is_fatal_for_run(error):
                raise
            # A model is code of others.
            reason = f"{embedding.names[0]} returned no vectors: {describe(error)}"
            raise RetrievalError(reason, "Try again, or give other embeddings.") from error
        for passage, vector in zip(batch, vectors, strict=True):
            yield Row(digest, model, passage, vector)
