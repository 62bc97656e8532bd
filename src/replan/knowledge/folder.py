"""A folder as knowledge: its texts, found by their words, up to date whenever they are searched."""

import re
from dataclasses import dataclass
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from langchain_core.documents import Document
from platformdirs import user_cache_path

from replan.base.errors import RetrievalError
from replan.base.texts.passages import Passage
from replan.knowledge.index import Hit, opened, path_in
from replan.knowledge.read_files import KINDS
from replan.ports.retriever import SearchRequest, SearchResponse, best_of
from replan.state.knowledge import Chunk

TENANT = "{tenant}"
"""What is in a folder's name where each tenant has one of its own."""

_FILTERS = frozenset({"file"})


@dataclass(frozen=True)
class FolderRetriever:
    """Finds passages in the texts of a folder: text, Markdown, HTML, PDF, DOCX.

    PDF and DOCX need the extra `documents`.

    The index is in the user's cache, for this user alone, and each search first updates it from the
    files. Links out of the folder and hidden files are left out.

    Args:
        folder: The folder; with {tenant} in its name each tenant has one of its own.
        cache: The folder for the index; else one in the user's cache.
    """

    folder: Path | str
    cache: Path | str | None = None

    def search(self, request: SearchRequest) -> SearchResponse:
        """Find the passages with the most, and the rarest, of the words.

        The filter `file` is a pattern of the file's path, such as policies/*.

        Raises:
            RetrievalError: There is no such folder, tenant or filter, or the index cannot be used.
        """
        glob = _glob_in(request)
        folder = self._folder(request.tenant_id)
        with opened(path_in(self._cache, folder)) as index:
            left_out = index.update(folder)
            hits = index.search(request.query, request.top_k, glob)
            return best_of([_chunk(hit) for hit in hits], request, left_out)

    def documents(self, *, tenant: str = "") -> list[Document]:
        """Return all passages as documents of LangChain, for a vector store.

        Their metadata has `source`, `line` and `heading`, and `tenant` if one is given. The id of a
        document stays the same while its place and its text do.

        Raises:
            RetrievalError: There is no such folder or tenant, or the index cannot be used.
        """
        folder = self._folder(tenant)
        with opened(path_in(self._cache, folder)) as index:
            index.update(folder)
            return [_document(passage, tenant) for passage in index.passages()]

    def looked_through(self, tenant: str = "") -> tuple[int, int, list[str]]:
        """Bring the index up to date; count files and passages, and list what is left out."""
        folder = self._folder(tenant)
        with opened(path_in(self._cache, folder)) as index:
            left_out = index.update(folder)
            return *index.size(), left_out

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


def _chunk(hit: Hit) -> Chunk:
    passage = hit.passage
    return Chunk(
        id=f"{passage.file}:{passage.line}",
        content=passage.text,
        score=hit.score,
        source=passage.file,
        line=passage.line,
        heading=passage.heading,
    )


def _document(passage: Passage, tenant: str) -> Document:
    place = {"source": passage.file, "line": passage.line, "heading": passage.heading}
    # Some stores take only UUIDs as ids.
    id_ = str(uuid5(NAMESPACE_URL, "\0".join(map(str, (tenant, *place.values(), passage.text)))))
    text = f"{passage.heading}\n{passage.text}" if passage.heading else passage.text
    of_tenant = {"tenant": tenant} if tenant else {}
    return Document(text, id=id_, metadata={**place, **of_tenant})
