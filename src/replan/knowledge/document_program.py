"""A program of its own that reads one HTML page, PDF or DOCX from its standard input.

What takes too long, needs too much memory or crashes here is ended by the parent process. It
imports nothing of Replan, and its libraries, which are an extra, by name. It writes a line of JSON
for each passage: [place, heading, text]. The place is the line of a page's source, the page of a
PDF, the paragraph of a DOCX or the row of a table in it, counted from 1. The last line is how it
ended: [] or the problem, as text.
"""

import io
import json
import sys
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from typing import Any

MOST_PAGES = 2_000
"""Pages of a PDF."""

LARGEST_INSIDE = 100_000_000
"""Bytes of a DOCX when all of it is unpacked."""

MOST_TEXT = 20_000_000
"""Characters of one document."""

MOST_LINES = 500_000
"""Paragraphs, rows and pages of one document."""

LONGEST_HEADING = 900
"""Characters of a heading, since it stands at each passage below it."""

MOST_COLUMNS = 1_000
"""Columns of a table."""

MOST_CPU_SECONDS = 60
"""Of this program, where the system can bound them: its parent may be gone."""

MOST_MEMORY = 2_000_000_000
"""Bytes of this program, where the system can bound them."""

_BODY = "word/document.xml"
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg"})
# What is inside a line of text ends no passage.
_INLINE = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "br", "cite", "code", "data", "dfn", "em", "font", "i", "img"}
    | {"ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup"}
    | {"td", "th", "time", "tt", "u", "var", "wbr"}
)
_Line = tuple[int, str, str]


class _Problem(Exception):  # noqa: N818 - it is not a fault of this program
    """Why a document gives no text."""


def main() -> None:
    """Read the document of the kind that the first argument names."""
    _bound_resources()
    kind = sys.argv[1]
    read = {"pdf": _pdf, "docx": _docx, "html": _html}[kind]
    try:
        written = _write(read(sys.stdin.buffer.read()))
        end: object = [] if written or kind == "html" else "it has no text, as a scan has none"
    except _Problem as problem:
        end = str(problem)
    except MemoryError:
        end = "it takes too much memory"
    except Exception as error:  # noqa: BLE001 - whatever the libraries raise for a broken file
        end = f"it is damaged ({type(error).__name__})"
    sys.stdout.write(json.dumps(end) + "\n")


def _write(lines: Iterator[_Line]) -> int:
    """Write passages, and return how many characters they have."""
    written = 0
    for count, (place, heading, text) in enumerate(lines, start=1):
        written += len(text)
        if written > MOST_TEXT:
            raise _Problem(f"it has more than {MOST_TEXT:,} characters")
        if count > MOST_LINES:
            raise _Problem(f"it has more than {MOST_LINES:,} paragraphs")
        sys.stdout.write(json.dumps([place, heading[:LONGEST_HEADING], text]) + "\n")
    return written


def _html(content: bytes) -> Iterator[_Line]:
    page = _Page()
    page.feed(content.decode())
    page.close()
    page.end_block()
    yield from page.found


def _pdf(content: bytes) -> Iterator[_Line]:
    reader = import_module("pypdf").PdfReader(io.BytesIO(content))
    if reader.is_encrypted:
        raise _Problem("it is encrypted")
    if len(reader.pages) > MOST_PAGES:
        raise _Problem(f"it has more than {MOST_PAGES:,} pages")
    for number, page in enumerate(reader.pages, start=1):
        # The lines of a page are those of its print; a page is one place.
        yield number, "", " ".join(page.extract_text().split())


def _docx(content: bytes) -> Iterator[_Line]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        # No more is ever unpacked of a part than it says here.
        if sum(part.file_size for part in archive.infolist()) > LARGEST_INSIDE:
            raise _Problem(f"it has more than {LARGEST_INSIDE:,} bytes when it is unpacked")
        # Nothing resolves them, so text would be missing; no program for letters writes them.
        if b"<!DOCTYPE" in archive.read(_BODY):
            raise _Problem("it declares entities of its own")
    number, heading = 0, ""
    for block in import_module("docx").Document(io.BytesIO(content)).iter_inner_content():
        if hasattr(block, "rows"):
            for row in block.rows:
                number += 1
                yield number, heading, _row(row)
            continue
        number += 1
        text = " ".join(block.text.split())
        style = block.style.name if block.style is not None else ""
        if text and (style or "").startswith(("Heading", "Title")):
            heading = text
        else:
            yield number, heading, text


def _row(row: Any) -> str:
    if sum(cell.grid_span for cell in row._tr.tc_lst) > MOST_COLUMNS:  # noqa: SLF001 - counted, not made
        raise _Problem(f"it has a table of more than {MOST_COLUMNS:,} columns")
    cells: list[Any] = []
    for cell in row.cells:
        # A cell that spans columns comes once for each of them.
        if not cells or cell._tc is not cells[-1]._tc:  # noqa: SLF001 - what tells two cells apart
            cells.append(cell)
    return " | ".join(" ".join(cell.text.split()) for cell in cells)


def _bound_resources() -> None:
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS, MOST_CPU_SECONDS))


class _Page(HTMLParser):
    """What a reader of a page reads, at the lines of its source."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[_Line] = []
        self._heading = ""
        self._hidden = 0
        self._line = 1
        self._block: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in _HIDDEN
        self._at(tag)

    def handle_endtag(self, tag: str) -> None:
        self._hidden = max(0, self._hidden - (tag in _HIDDEN))
        if tag in _HEADINGS:
            self._heading = self._text()[:LONGEST_HEADING] or self._heading
            self._block = []
        self._at(tag)

    def handle_data(self, data: str) -> None:
        if self._hidden or not (data.strip() or self._block):
            return
        if not self._block:
            before = data[: len(data) - len(data.lstrip())]
            self._line = self.getpos()[0] + before.count("\n")
        self._block.append(data)

    def end_block(self) -> None:
        text = self._text()
        if text:
            self.found.append((self._line, self._heading, text))
        self._block = []

    def _at(self, tag: str) -> None:
        if tag in _INLINE:
            self._block += [" "] if self._block and tag in ("br", "td", "th") else []
        else:
            self.end_block()

    def _text(self) -> str:
        return " ".join("".join(self._block).split())


if __name__ == "__main__":
    main()
