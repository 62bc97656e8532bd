"""The notes of a folder, within bounds, and the passages that they are made of."""

from collections.abc import Sequence
from pathlib import Path

from replan.texts.passages import Passage, decoded, passages_of
from replan.texts.safe_folder import FolderFile, files_below

KINDS = (".txt", ".md", ".rst")
"""The endings of the files that are read."""

REPORT_MARK = "<!-- written by replan -->"
"""What our own report ends with; it is not a source for another one."""

_DEEPEST, _MOST_FILES, _MOST_BYTES = 6, 1000, 1_000_000


def note_files(directory: Path) -> tuple[FolderFile, ...]:
    """Find the notes of a folder; there is a bound to how many are read."""
    return files_below(directory, KINDS, deepest=_DEEPEST, most=_MOST_FILES).files


def passages_in(file: FolderFile) -> tuple[Passage, ...]:
    """Read a file; none if it is not text, cannot be read, or is our own report."""
    text = _read(file.path)
    return () if text.rstrip().endswith(REPORT_MARK) else tuple(passages_of(file.name, text))


def bounds_met(files: Sequence[FolderFile]) -> tuple[str, ...]:
    cut = [file.name for file in files if _size(file.path) > _MOST_BYTES]
    notes = [f"Only the first {_MOST_BYTES:,} bytes were read of: {', '.join(cut)}."] if cut else []
    if len(files) == _MOST_FILES:
        notes.append(f"Only the first {_MOST_FILES} files were read.")
    return tuple(notes)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # Gone since the folder was listed.
        return 0


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES)
    except OSError:  # Gone or locked since the folder was listed: it has nothing to say.
        return ""
    return decoded(content) or ""
