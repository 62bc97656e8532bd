"""A program of its own that reads one PDF or DOCX: standard input in, a line of JSON a passage out.

What takes too long, needs too much memory or crashes here is ended by the parent process. It
imports nothing of Replan, and its libraries, which are an extra, by name. A line is [place,
heading, text]; the place is the page of a PDF, of a DOCX the paragraph or the row of a table,
counted from 1. The last line is how it ended: [] or the problem, as text.
"""

import io
import json
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from typing import Any

MOST_PAGES = 2_000
"""Pages of a PDF."""

LARGEST_INSIDE = 100_000_000
"""Bytes of a DOCX when all of it is unpacked."""

MOST_TEXT = 20_000_000
"""Characters of one document."""

MOST_MEMORY = 2_000_000_000
"""Bytes of this program, where the system can bound them."""

_BODY = "word/document.xml"
_Line = tuple[int, str, str]


class _Problem(Exception):  # noqa: N818 - it is not a fault of this program
    """Why a document gives no text."""


def main() -> None:
    """Read the document of the kind that the first argument names."""
    _bound_memory()
    read = {"pdf": _pdf, "docx": _docx}[sys.argv[1]]
    try:
        _write(read(sys.stdin.buffer.read()))
        end: object = []
    except _Problem as problem:
        end = str(problem)
    except MemoryError:
        end = "it takes too much memory"
    except Exception as error:  # noqa: BLE001 - whatever the libraries raise for a broken file
        end = f"it is damaged ({type(error).__name__})"
    sys.stdout.write(json.dumps(end) + "\n")


def _write(lines: Iterator[_Line]) -> None:
    written = 0
    for line in lines:
        written += len(line[2])
        if written > MOST_TEXT:
            raise _Problem(f"it has more than {MOST_TEXT:,} characters")
        sys.stdout.write(json.dumps(line) + "\n")
    if not written:
        raise _Problem("it has no text, as a scan has none")


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
    cells: list[Any] = []
    for cell in row.cells:
        # A cell that spans columns comes once for each of them.
        if not cells or cell._tc is not cells[-1]._tc:  # noqa: SLF001 - what tells two cells apart
            cells.append(cell)
    return " | ".join(" ".join(cell.text.split()) for cell in cells)


def _bound_memory() -> None:
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


if __name__ == "__main__":
    main()
