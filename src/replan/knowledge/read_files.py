"""Read the files of a folder as passages; what cannot be read says why."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from replan.base.texts.passages import Passage, decoded, merged, passages_of
from replan.knowledge import documents
from replan.knowledge.documents import UnreadableFileError, html_passages

LARGEST = 5_000_000
"""Bytes of a file; a larger one is left out. Of a document, documents.LARGEST."""

MOST_PASSAGES = 10_000
"""Passages of a file; one with more is left out."""

_Reader = Callable[[str, bytes], Iterable[Passage]]


def content_of(path: Path) -> bytes:
    """Read a file whole."""
    largest = documents.LARGEST if _ending(path) in documents.KINDS else LARGEST
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except OSError as error:
        raise UnreadableFileError(f"it cannot be read: {error.strerror or error}") from error
    if len(content) > largest:
        raise UnreadableFileError(f"it has more than {largest:,} bytes")
    return content


def is_waiting(name: str) -> bool:
    """Whether a file is left out until an extra is installed."""
    # It is asked of each file for each search.
    end = name[-5:].casefold()
    return end.endswith(documents.KINDS) and not documents.can_be_read(_ending(Path(name)))


def passages_in(name: str, content: bytes) -> list[Passage]:
    """Take what a file holds apart.

    Raises:
        UnreadableFileError: It gives no passages, whatever its reader made of it.
    """
    try:
        passages = list(_READERS[_ending(Path(name))](name, content))
    except UnreadableFileError:
        raise
    except Exception as error:
        raise UnreadableFileError(f"it cannot be read ({type(error).__name__})") from error
    if len(passages) > MOST_PASSAGES:
        raise UnreadableFileError(f"it has more than {MOST_PASSAGES:,} passages")
    return passages


def _ending(path: Path) -> str:
    return path.suffix.casefold()


def _text(name: str, content: bytes) -> Iterable[Passage]:
    return merged(passages_of(name, _decoded(content)))


def _html(name: str, content: bytes) -> Iterable[Passage]:
    return html_passages(name, _decoded(content))


def _decoded(content: bytes) -> str:
    text = decoded(content, "strict")
    if text is None:
        is_text = decoded(content) is not None
        raise UnreadableFileError("it is not written in UTF-8" if is_text else "it is not text")
    return text


_READERS: Mapping[str, _Reader] = {
    **dict.fromkeys((".txt", ".md", ".markdown", ".rst"), _text),
    **dict.fromkeys((".html", ".htm"), _html),
    **dict.fromkeys(documents.KINDS, documents.document_passages),
}
KINDS = tuple(_READERS)
"""The endings of the files that are read."""
