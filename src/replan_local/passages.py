"""The notes of a folder, within bounds, and the passages that they are made of."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from replan.plan.model import Value
from replan_local.folder import FolderFile, files_below

KINDS = (".txt", ".md", ".rst")
"""The endings of the files that are read."""

REPORT_MARK = "<!-- written by replan -->"
"""What a report of our own ends with; it is no source for another one."""

_DEEPEST, _MOST_FILES, _MOST_BYTES = 6, 1000, 1_000_000
_LONGEST = 900
_HEADING = re.compile(r"^#{1,6}\s++(?P<title>\S.*)$")
_UNDERLINE = re.compile(r"^(?P<sign>[=\-~^])(?P=sign){2,}\s*$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


class Passage(Value):
    """A paragraph, list or other block of a note."""

    file: str  # the file's path inside the folder
    line: int  # where it begins, counted from 1
    heading: str  # the heading that it stands under; empty if none
    text: str  # its lines as they stand


def note_files(directory: Path) -> tuple[FolderFile, ...]:
    """Find the notes of a folder; there is a bound to how many are read."""
    return files_below(directory, KINDS, deepest=_DEEPEST, most=_MOST_FILES)


def passages_of(file: FolderFile) -> tuple[Passage, ...]:
    """Read a file; none if it is no text, cannot be read, or is a report of our own."""
    text = _read(file.path)
    return () if text.rstrip().endswith(REPORT_MARK) else tuple(_passages(file.name, text))


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
    encoding = next((name for mark, name in _BOMS if content.startswith(mark)), "utf-8")
    text = content.decode(encoding, errors="replace")
    return "" if "\x00" in text else text


def _passages(name: str, text: str) -> Iterator[Passage]:
    """Divide a text at blank lines and headings; what is too long to quote is cut into pieces."""
    heading, start, in_code = "", 1, False
    block: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        in_code ^= _FENCE.match(line) is not None
        title = None if in_code else _HEADING.match(line)
        is_underline = not in_code and len(block) == 1 and _UNDERLINE.match(line)
        if is_underline:
            heading = block.pop().strip()
        if (line.strip() or in_code) and not title and not is_underline:
            start = start if block else number
            block.append(line.rstrip())
        else:
            yield from _cut(Passage(file=name, line=start, heading=heading, text="\n".join(block)))
            block = []
        if title:
            heading = _unsigned(title["title"])


def _unsigned(title: str) -> str:
    """Give a heading without the signs that close it; signs alone are its title."""
    title = title.rstrip()
    return title.rstrip("#").rstrip() or title


def _cut(passage: Passage) -> Iterator[Passage]:
    block: list[str] = []
    start = passage.line
    for number, line in enumerate(passage.text.splitlines(), start=passage.line):
        for piece in (line[at : at + _LONGEST] for at in range(0, max(len(line), 1), _LONGEST)):
            if block and sum(map(len, block)) + len(piece) > _LONGEST:
                yield passage.replace(line=start, text="\n".join(block))
                block = []
            start = start if block else number
            block.append(piece)
    if any(line.strip() for line in block):
        yield passage.replace(line=start, text="\n".join(block))
