"""Find the passages of the notes that have the words of a text, as a team's knowledge is found."""

import glob
from pathlib import Path

from replan.base.errors import RetrievalError
from replan.base.texts.files import files_below
from replan.knowledge.folder import FolderRetriever
from replan.knowledge.index import DEEPEST, MOST_FILES
from replan.knowledge.read_files import KINDS
from replan.ports.retriever import SearchRequest
from replan.state.knowledge import MOST_CHUNKS, Chunk
from replan_local.commands import Search
from replan_local.named_files import find_file
from replan_local.refusals import CannotAnswerError

REPORT_MARK = "<!-- written by replan -->"
"""What our own report ends with; it is not a source for another one."""


def passages_on(search: Search, directory: Path) -> str:
    """Quote the passages with the most, and the rarest, of the words, in Markdown."""
    filters = {}
    if search.file:
        files = files_below(directory, KINDS, deepest=DEEPEST, most=MOST_FILES).files
        filters = {"file": glob.escape(find_file(search.file, files, "text").name)}
    request = SearchRequest(query=search.query, top_k=MOST_CHUNKS, filters=filters)
    try:
        found = FolderRetriever(directory).search(request)
    except RetrievalError as error:
        raise CannotAnswerError(str(error)) from error
    chunks = [chunk for chunk in found.chunks if not _is_report(directory / chunk.source)]
    if not chunks:
        where = search.file or "the texts of the folder"
        raise CannotAnswerError(f"No passage in {where} has a word of '{search.query}'.")
    parts = [f"**Passages on {search.query}**", *map(_quote, chunks[: search.top])]
    parts += ["\n".join(f"- {path}" for path in found.skipped)] if found.skipped else []
    return "\n\n".join(parts)


def _is_report(path: Path) -> bool:
    try:
        return path.suffix == ".md" and path.read_bytes().rstrip().endswith(REPORT_MARK.encode())
    except OSError:  # Gone a moment ago, or its name is not text.
        return False


def _quote(passage: Chunk) -> str:
    under = f", under: {passage.heading}" if passage.heading else ""
    place = f"(`{passage.source}:{passage.line}`{under})"
    return "\n".join(f"> {line}".rstrip() for line in (*passage.content.splitlines(), "", place))
