"""A folder as knowledge: its texts, found by their words, up to date whenever they are searched."""

import re
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from replan.adapters.knowledge.index import Hit, opened, path_in
from replan.adapters.knowledge.reading import KINDS
from replan.errors import RetrievalError
from replan.ports.retriever import SearchRequest, SearchResponse
from replan.state.knowledge import Chunk

TENANT = "{tenant}"
"""What stands in a folder's name where each tenant has one of its own."""

_FILTERS = frozenset({"file"})


@dataclass(frozen=True)
class FolderRetriever:
    """Finds passages in the texts of a folder: text, Markdown, HTML.

    The index stands in the user's cache, for this user alone, and is brought up to date by what the
    files hold whenever it is asked. Links out of the folder and hidden files are left out.

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
            index.update(folder)
            hits = index.search(request.query, request.top_k, glob)
            found = [_chunk(hit) for hit in hits if hit.score >= request.min_score]
            return SearchResponse(chunks=found, left_out=index.problems())

    def looked_through(self) -> tuple[int, int, list[str]]:
        """Count files and passages, and say what is left out; the index is made if need be."""
        folder = self._folder("")
        with opened(path_in(self._cache, folder)) as index:
            index.update(folder)
            return *index.size(), index.problems()

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
            fix = f"Make it, and put texts into it: {', '.join(KINDS)}."
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
