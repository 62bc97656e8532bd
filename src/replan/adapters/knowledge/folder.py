"""A folder as knowledge: its texts, found by their words, up to date whenever they are searched."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableConfig
from platformdirs import user_cache_path

from replan.adapters.knowledge.embedding import SECONDS, WithEmbeddings, found_or_problem
from replan.adapters.knowledge.fusing import DEEPEST, chunk_of, fused
from replan.adapters.knowledge.index import Hit, Index, opened, path_in
from replan.adapters.knowledge.read_files import KINDS
from replan.adapters.knowledge.vectors import Vectors
from replan.errors import RetrievalError
from replan.ports.retriever import SearchRequest, SearchResponse, best_of

TENANT = "{tenant}"
"""What is in a folder's name where each tenant has one of its own."""

_FILTERS = frozenset({"file"})


@dataclass(frozen=True)
class FolderRetriever(WithEmbeddings):
    """Finds passages in the texts of a folder: text, Markdown, HTML, PDF, DOCX.

    PDF and DOCX need the extra `documents`.

    The index is in the user's cache, for this user alone, and each search first updates it from the
    files. Links out of the folder and hidden files are left out.

    Args:
        folder: The folder; with {tenant} in its name each tenant has one of its own.
        cache: The folder for the index; else one in the user's cache.
        embeddings: Finds passages by their meaning, too: LangChain's Embeddings, or the name of a
            model such as openai:text-embedding-3-small, which the graph of a team builds. Needs
            the extra `vectors`.
        built: The model that was built for the name.
    """

    folder: Path | str
    cache: Path | str | None = None
    embeddings: Embeddings | str | None = None
    built: Embeddings | None = field(default=None, repr=False, kw_only=True)

    def search(
        self, request: SearchRequest, config: RunnableConfig | None = None
    ) -> SearchResponse:
        """Find the passages with the most, and the rarest, of the words.

        With embeddings, also those that are close in meaning; the two rankings are merged.
        The filter `file` is a pattern of the file's path, such as policies/*.

        Args:
            request: The question.
            config: The configuration of the step that searches, whose callbacks count and charge.

        Raises:
            RetrievalError: There is no such folder, tenant or filter, or the index cannot be used.
        """
        glob = _glob_in(request)
        folder = self._folder(request.tenant_id)
        with opened(path_in(self._cache, folder)) as index:
            left_out = index.update(folder)
            hits, problems = self._found(index, request, glob, config)
            found = [
                chunk_of(f"{hit.passage.file}:{hit.passage.line}", hit.passage, hit.score)
                for hit in hits
            ]
            return best_of(found, request, [*left_out, *problems])

    def prepare(self, *, tenant: str = "") -> list[str]:
        """Update the index, and compute all missing vectors.

        A search computes at most about 3,000 vectors, charged to its run; this has no bound.

        Args:
            tenant: The tenant, if each tenant has its own folder.

        Returns:
            The files that are left out, one sentence each.

        Raises:
            RetrievalError: There is no such folder, or the index cannot be used.
        """
        folder = self._folder(tenant)
        with opened(path_in(self._cache, folder)) as index:
            left_out = index.update(folder)
            if self.embeddings is not None:
                Vectors(index.path, index.connection, self.asked_by(None, None)).complete()
            return left_out

    def looked_through(self) -> tuple[int, int, list[str]]:
        """Count files and passages, and list what is left out; creates the index if needed."""
        folder = self._folder("")
        with opened(path_in(self._cache, folder)) as index:
            left_out = index.update(folder)
            return *index.size(), left_out

    def _found(
        self, index: Index, request: SearchRequest, glob: str, config: RunnableConfig | None
    ) -> tuple[list[Hit], list[str]]:
        """Return the passages, the best first, and what kept others from being found."""
        if self.embeddings is None:
            return index.search(request.query, request.top_k, glob), []
        embedding = self.asked_by(config, SECONDS)
        most = max(DEEPEST, request.top_k)
        by_words = [hit.id for hit in index.search(request.query, most, glob)]
        vectors = Vectors(index.path, index.connection, embedding)
        by_meaning, problem = found_or_problem(
            embedding, lambda: vectors.nearest(request.query, most, glob)
        )
        rankings = [by_words] if by_meaning is None else [by_words, by_meaning]
        places = fused(rankings)[: request.top_k]
        passages = index.passages([id_ for id_, _ in places])
        found = [Hit(id_, score, passages[id_]) for id_, score in places if id_ in passages]
        return found, [each for each in (problem, vectors.problem) if each]

    @property
    def _cache(self) -> Path:
        return Path(self.cache or user_cache_path("replan") / "knowledge")

    def _folder(self, tenant: str) -> Path:
        name = str(self.folder)
        if TENANT in name:
            if not re.fullmatch(r"[^\W_][\w-]*", tenant):
                reason = f"{name} needs a tenant, and {tenant!r} is none"
                raise RetrievalError(reason, "Set tenant in RunSettings: letters, digits, _ and -.")
            name = name.replace(TENANT, tenant)
        folder = Path(name)
        if not folder.is_dir():
            fix = f"Create it, and put texts into it: {', '.join(KINDS)}."
            raise RetrievalError(f"there is no folder {name}", fix)
        return folder


def _glob_in(request: SearchRequest) -> str:
    unknown = sorted(request.filters.keys() - _FILTERS)
    if unknown:
        reason = f"a folder has no filter {', '.join(unknown)}"
        raise RetrievalError(reason, "Use file, with a pattern such as policies/*.")
    return str(request.filters.get("file", ""))
