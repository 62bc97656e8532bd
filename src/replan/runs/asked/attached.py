"""Files of a request: their content, as blocks of its message."""

import base64
from mimetypes import guess_type
from typing import Any

from replan.base.errors import InputError

LONGEST_TEXT = 200_000
"""Characters of a text; larger files belong into a folder that the specialists may read."""

LARGEST = 10_000_000  # bytes of a picture or a PDF

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def largest_of(name: str) -> int:
    """The bytes that a file of this name may have."""
    kind = guess_type(name)[0] or ""
    return LARGEST if _is_binary(kind) else 4 * LONGEST_TEXT


def block_of(name: str, held: bytes, shown: str, fix: str) -> dict[str, Any]:
    """A file as a content block of LangChain: a text, a picture or a PDF."""
    kind = guess_type(name)[0] or ""
    largest = largest_of(name)
    if len(held) > largest:
        raise InputError(f"{shown} has more than {largest:,} bytes. {fix}")
    if not _is_binary(kind):
        return {"type": "text", "text": f"The file {name}:\n\n{_text(held, shown, fix)}"}
    block = {"base64": base64.b64encode(held).decode(), "mime_type": kind}
    if kind in _PICTURES:
        return {"type": "image", **block}
    return {"type": "file", **block, "extras": {"filename": name}}


def _is_binary(kind: str) -> bool:
    return kind in _PICTURES or kind == "application/pdf"


def _text(held: bytes, shown: str, fix: str) -> str:
    try:
        text = held.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        kinds = "UTF-8 text, PNG, JPEG, GIF, WebP or PDF"
        raise InputError(f"{shown} is not one of {kinds}. {fix}") from error
    if "\x00" in text:
        raise InputError(f"{shown} has a NUL character, so it is not text. {fix}")
    if len(text) > LONGEST_TEXT:
        raise InputError(f"{shown} has more than {LONGEST_TEXT:,} characters. {fix}")
    return text
