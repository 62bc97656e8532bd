"""HTML, PDF and DOCX as passages, read by a separate program: it may crash, or take forever."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from replan.base.texts.passages import Passage, cut, merged
from replan.base.texts.storable import storable_text
from replan.knowledge import document_program

LARGEST = 50_000_000
"""Bytes of a document."""

SECONDS = 20.0
"""How long one document may take."""

EXTRA = "pip install 'replan[documents]'"

PACKAGES = {".pdf": "pypdf", ".docx": "docx"}
"""What reads documents, by their endings."""

KINDS = tuple(PACKAGES)
"""The endings of documents."""


class UnreadableFileError(Exception):
    """Why a file gives no passages."""


def can_be_read(ending: str) -> bool:
    """Whether what reads documents with this ending is installed."""
    return _spec_of(PACKAGES[ending]) is not None


_spec_of = cache(find_spec)


def document_passages(name: str, content: bytes) -> Iterator[Passage]:
    """Divide a document: at the pages of a PDF, at the paragraphs and rows of a DOCX.

    The line of a passage is its page, or its paragraph, counted from 1.
    """
    ending = Path(name).suffix.casefold()
    if not can_be_read(ending):
        raise UnreadableFileError(f"to read it, {EXTRA}")
    passages = _extracted(name, ending.removeprefix("."), content)
    # A page is a separate place; paragraphs under one heading stay together.
    yield from passages if ending == ".pdf" else merged(passages)


def html_passages(name: str, text: str) -> Iterator[Passage]:
    """Divide a page at its blocks, each at its line of the source."""
    return _extracted(name, "html", text.encode())


def _extracted(name: str, kind: str, content: bytes) -> Iterator[Passage]:
    *lines, end = _output(kind, content)
    if end:
        raise UnreadableFileError(str(end))
    # The fonts of a PDF may make halves of characters of its signs.
    whole = (
        Passage(file=name, line=place, heading=storable_text(heading), text=storable_text(text))
        for place, heading, text in cast("list[tuple[int, str, str]]", lines)
    )
    return (piece for passage in whole for piece in cut(passage))


def _output(kind: str, content: bytes) -> list[Any]:
    # It needs no key and no address of ours, so it is given none; -P: no module of the folder in
    # that we are in is taken for a library. For HTML it needs none, and so begins sooner.
    environment: Mapping[str, str] = {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUTF8": "1"}
    options = ["-I", "-S"] if kind == "html" else ["-P"]
    program = [sys.executable, *options, document_program.__file__, kind]
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            program,
            input=content,
            capture_output=True,
            timeout=SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnreadableFileError(f"reading it takes more than {SECONDS:g} s") from None
    except OSError as error:
        raise UnreadableFileError(f"its reader did not start: {error.strerror}") from error
    if done.returncode:
        raise UnreadableFileError(f"its reader stopped ({done.returncode})")
    return [json.loads(line) for line in done.stdout.splitlines()]
