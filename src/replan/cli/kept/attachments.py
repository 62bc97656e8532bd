"""Files that go with a task: what they hold, as blocks of the message that asks."""

import base64
from collections.abc import Iterable
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from replan.errors import InputError

LONGEST_TEXT = 200_000
"""Characters of a text; larger files belong into the folder of the team (`--dir`)."""

LARGEST = 10_000_000
"""Bytes of a picture or a PDF."""

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_FIX = "Put it into a folder that the specialists may read, and name that with --dir."


def attached(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Read files into content blocks of LangChain: texts, pictures and PDFs."""
    return [_block(path) for path in paths]


def _block(path: Path) -> dict[str, Any]:
    kind = guess_type(path.name)[0] or ""
    is_binary = kind in _PICTURES or kind == "application/pdf"
    largest = LARGEST if is_binary else 4 * LONGEST_TEXT
    try:
        with path.open("rb") as file:
            held = file.read(largest + 1)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise InputError(f"--file {path} cannot be read: {why}. Name a file.") from error
    if len(held) > largest:
        raise InputError(f"--file {path} has more than {largest:,} bytes. {_FIX}")
    if not is_binary:
        return {"type": "text", "text": f"The file {path.name}:\n\n{_text(path, held)}"}
    block = {"base64": base64.b64encode(held).decode(), "mime_type": kind}
    if kind in _PICTURES:
        return {"type": "image", **block}
    return {"type": "file", **block, "extras": {"filename": path.name}}


def _text(path: Path, held: bytes) -> str:
    try:
        text = held.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        kinds = "UTF-8 text, PNG, JPEG, GIF, WebP or PDF"
        raise InputError(f"--file {path} is none of {kinds}. {_FIX}") from error
    if "\x00" in text:
        raise InputError(f"--file {path} has a NUL character, so it is no text. {_FIX}")
    if len(text) > LONGEST_TEXT:
        raise InputError(f"--file {path} has more than {LONGEST_TEXT:,} characters. {_FIX}")
    return text
