"""The texts of a folder, within bounds, and the passages that they are made of."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from replan.plan.model import Value
from replan_local.folder import FolderFile, files_below
from replan_local.report_mark import is_report

KINDS = (".txt", ".md", ".rst")
"""The endings of the files that are read."""

_DEEPEST, _MOST_FILES = 6, 1000
_MOST_BYTES, _MOST_CHARACTERS = 1_000_000, 900
_LONG_LIST, _UNDERLINED_LEVEL = 300, 2
_HEADING = re.compile(r"^(?P<signs>#{1,6})\s++(?P<title>\S.*)$")
_UNDERLINE = re.compile(r"^(?P<sign>[=\-~^\"'*+#])(?P=sign){2,}\s*$")
_ITEM = re.compile(r"^(?:[-*+\u2022]|\d{1,3}[.)])\s+\S")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


class Passage(Value):
    """A paragraph, list or other block of a text.

    Attributes:
        file: The file's path inside the folder.
        line: Where it begins, counted from 1.
        heading: The headings that it stands under, the outermost first; empty if none.
        text: Its lines as they stand.
    """

    file: str
    line: int
    heading: str
    text: str

    @property
    def place(self) -> str:
        """File and line, as editors read them."""
        return f"{self.file}:{self.line}"


def text_files(directory: Path) -> tuple[FolderFile, ...]:
    """Find the texts of a folder; there is a bound to how many are read."""
    return files_below(directory, KINDS, deepest=_DEEPEST, most=_MOST_FILES)


def passages_of(file: FolderFile) -> tuple[Passage, ...]:
    """Read a file; none if it is no text, cannot be read, or is a report of our own."""
    text = _read(file.path)
    return () if is_report(text) else tuple(_Reader(file.name).read(text.splitlines()))


def bounds_met(files: Sequence[FolderFile]) -> tuple[str, ...]:
    """Say what was left unread, a sentence for each bound."""
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


class _Outline:
    """The headings that a place in a text stands under."""

    def __init__(self) -> None:
        self._titles: dict[int, str] = {}

    def enter(self, level: int, title: str) -> None:
        """A heading opens its part and closes those of its level and below."""
        self._titles = {at: each for at, each in self._titles.items() if at < level}
        self._titles[level] = title

    def __str__(self) -> str:
        return ", ".join(self._titles.values())


class _Reader:
    """One pass over the lines of a text."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._outline = _Outline()
        self._block: list[str] = []
        self._start = 1
        self._in_code = False

    def read(self, lines: list[str]) -> Iterator[Passage]:
        """Give the passages in their order."""
        for number, line in enumerate(lines, start=1):
            self._in_code ^= _FENCE.match(line) is not None
            if not self._in_code and self._is_between(line):
                yield from self._ended()
                self._enter(line)
                continue
            self._start = self._start if self._block else number
            self._block.append(line.rstrip())
        yield from self._ended()

    def _is_between(self, line: str) -> bool:
        """Whether a line ends a passage without being a part of one."""
        if _UNDERLINE.match(line) and len(self._block) == 1:
            level = 1 if line[0] == "=" else _UNDERLINED_LEVEL
            self._outline.enter(level, self._block.pop().strip())
        return not line.strip() or bool(_HEADING.match(line) or _is_rule(line, self._block))

    def _enter(self, line: str) -> None:
        if found := _HEADING.match(line):
            self._outline.enter(len(found["signs"]), _unsigned(found["title"]))

    def _ended(self) -> Iterator[Passage]:
        text = "\n".join(self._block)
        heading = str(self._outline)
        yield from _cut(Passage(file=self._name, line=self._start, heading=heading, text=text))
        self._block = []


def _unsigned(title: str) -> str:
    """Give a heading without the signs that close it; signs alone are its title."""
    title = title.rstrip()
    return title.rstrip("#").rstrip() or title


def _is_rule(line: str, block: list[str]) -> bool:
    """Whether a line only draws a rule: above a heading, below one, or between two parts."""
    return not block and _UNDERLINE.match(line) is not None


def _cut(passage: Passage) -> Iterator[Passage]:
    """Divide a long list into its items, and what is too long to quote between its lines."""
    in_items = len(passage.text) > _LONG_LIST
    block: list[str] = []
    start = passage.line
    for number, line in enumerate(passage.text.splitlines(), start=passage.line):
        for piece in _pieces(line):
            too_long = sum(map(len, block)) + len(piece) > _MOST_CHARACTERS
            if block and (too_long or (in_items and _ITEM.match(piece))):
                yield passage.replace(line=start, text="\n".join(block))
                block = []
            start = start if block else number
            block.append(piece)
    if any(line.strip() for line in block):
        yield passage.replace(line=start, text="\n".join(block))


def _pieces(line: str) -> list[str]:
    return [line[at : at + _MOST_CHARACTERS] for at in range(0, len(line), _MOST_CHARACTERS)] or [
        ""
    ]
