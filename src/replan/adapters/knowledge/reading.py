"""Read the files of a folder as passages; what cannot be read says why."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from replan.texts.html import html_passages
from replan.texts.passages import Passage, decoded, merged, passages_of

LARGEST = 5_000_000
"""Bytes of a file; a larger one is left out."""

MOST_PASSAGES = 10_000
"""Passages of a file; one with more is left out."""

_Reader = Callable[[str, bytes], Iterable[Passage]]


class UnreadableFileError(Exception):
    """Why a file gives no passages."""


def content_of(path: Path) -> bytes:
    """Read a file whole."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise UnreadableFileError(f"it cannot be read: {error.strerror or error}") from error
    if len(content) > LARGEST:
        raise UnreadableFileError(f"it has more than {LARGEST:,} bytes")
    return content


def passages_in(name: str, content: bytes) -> list[Passage]:
    """Take what a file holds apart."""
    found = list(_READERS[Path(name).suffix.casefold()](name, content))
    if len(found) > MOST_PASSAGES:
        raise UnreadableFileError(f"it has more than {MOST_PASSAGES:,} passages")
    return found


def _text(name: str, content: bytes) -> Iterable[Passage]:
    return merged(passages_of(name, _decoded(content)))


def _html(name: str, content: bytes) -> Iterable[Passage]:
    return html_passages(name, _decoded(content))


def _decoded(content: bytes) -> str:
    text = decoded(content)
    if text is None:
        raise UnreadableFileError("it is no text")
    return text


_READERS: Mapping[str, _Reader] = {
    **dict.fromkeys((".txt", ".md", ".markdown", ".rst"), _text),
    **dict.fromkeys((".html", ".htm"), _html),
}
KINDS = tuple(_READERS)
"""The endings of the files that are read."""
