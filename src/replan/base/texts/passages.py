"""The passages of a text: its paragraphs, lists and other blocks, with their lines."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

LONGEST = 900
"""Characters of a passage."""

_HEADING = re.compile(r"^#{1,6}\s++(?P<title>\S.*)$")
_UNDERLINE = re.compile(r"^(?P<sign>[=\-~^])(?P=sign){2,}\s*$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_BOMS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A paragraph, list or other block of a text."""

    file: str  # the file's path inside the folder
    line: int  # where it begins, counted from 1
    heading: str  # the heading that it is under; empty if none
    text: str  # its lines as they are


def decoded(content: bytes, errors: str = "replace") -> str | None:
    """Read bytes as text; None if they are not."""
    encoding = next((name for mark, name in _BOMS if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding, errors=errors)
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def passages_of(name: str, text: str) -> Iterator[Passage]:
    """Divide a text at blank lines and headings; what is too long to quote is cut into pieces."""
    heading, start, in_code = "", 1, False
    block: list[str] = []
    for number, line in enumerate([*_lines(text), ""], start=1):
        in_code ^= _FENCE.match(line) is not None
        title = None if in_code else _HEADING.match(line)
        is_underline = not in_code and len(block) == 1 and _UNDERLINE.match(line)
        if is_underline:
            heading = block.pop().strip()[:LONGEST]
        if (line.strip() or in_code) and not title and not is_underline:
            start = start if block else number
            block.append(line.rstrip())
        else:
            yield from cut(Passage(file=name, line=start, heading=heading, text="\n".join(block)))
            block = []
        if title:
            heading = _unsigned(title["title"])[:LONGEST]


def cut(passage: Passage) -> Iterator[Passage]:
    """Cut a passage that is too long into pieces; one without words yields none."""
    block: list[str] = []
    start = passage.line
    for number, line in enumerate(_lines(passage.text), start=passage.line):
        for piece in (line[at : at + LONGEST] for at in range(0, max(len(line), 1), LONGEST)):
            if block and sum(map(len, block)) + len(piece) > LONGEST:
                yield replace(passage, line=start, text="\n".join(block))
                block = []
            start = start if block else number
            block.append(piece)
    if any(line.strip() for line in block):
        yield replace(passage, line=start, text="\n".join(block))


def merged(passages: Iterable[Passage]) -> Iterator[Passage]:
    """Put blocks under one heading together as long as they are short, each line at its place."""
    last: Passage | None = None
    for passage in passages:
        together = None if last is None else _joined(last, passage)
        if last is not None and together is None:
            yield last
        last = together or passage
    if last is not None:
        yield last


def _lines(text: str) -> list[str]:
    """The lines that an editor counts; Python divides at other signs, too."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _joined(one: Passage, other: Passage) -> Passage | None:
    gap = other.line - one.line - one.text.count("\n")
    if one.heading != other.heading or gap < 1:
        return None
    text = f"{one.text}{chr(10) * gap}{other.text}"
    return replace(one, text=text) if len(text) <= LONGEST else None


def _unsigned(title: str) -> str:
    """Return a heading without the signs that close it; signs alone are its title."""
    title = title.rstrip()
    return title.rstrip("#").rstrip() or title
