"""Write any text into one line of Markdown, and read it back.

What the line cannot hold, or what would be misread there, is written as a decimal character
reference (`&#64;` for `@`), which every Markdown viewer shows as the character itself.
"""

import re
from collections.abc import Callable

NAME = r"(?:\w|&#[0-9]{1,7};)(?:[.-]*+(?:\w|&#[0-9]{1,7};))*+"
"""A specialist's name as it can follow an `@`."""

_REFERENCE = re.compile(r"&#([0-9]{1,7});")
_UNWRITABLE = re.compile(r"&(?=#[0-9]{1,7};)|[\r\n]")
_PLAIN_IN_NAME = re.compile(r"\w|(?<=\w)[.-](?=\w)")
_PLAIN_IN_RESOURCE = re.compile(r"[\w./\\:~+*?=#%$!-]")
_LAST_CHARACTER = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def decode(text: str) -> str:
    return _REFERENCE.sub(_character, text) if "&#" in text else text


def encode(text: str) -> str:
    """Write a text into one line so that `decode` returns it unchanged."""
    body = text.strip()
    if not body:
        return "".join(map(_reference, text))
    start = text.index(body)
    safe = _UNWRITABLE.sub(lambda match: _reference(match[0]), body)
    head, tail = text[:start], text[start + len(body) :]
    return "".join([*map(_reference, head), safe, *map(_reference, tail)])


def encode_where(text: str, needed: Callable[[int, str], bool]) -> str:
    """Encode the characters that `needed(position, character)` names, and what `encode` must."""
    pieces = (
        _reference(mark) if needed(at, mark) else encode(mark) if mark in "\r\n" else mark
        for at, mark in enumerate(text)
    )
    return "".join(pieces)


def encode_name(name: str) -> str:
    """Write a specialist's name so that it can follow an `@`."""
    plain = {match.start() for match in _PLAIN_IN_NAME.finditer(name)}
    return encode_where(name, lambda at, _: at not in plain)


def encode_resource(name: str, *, guarded: bool = False) -> str:
    """Write the name of something that a step writes so that it can be among attributes."""
    return encode_where(
        name,
        lambda at, mark: (guarded and not at) or _PLAIN_IN_RESOURCE.fullmatch(mark) is None,
    )


def _reference(character: str) -> str:
    return f"&#{ord(character)};"


def _character(match: re.Match[str]) -> str:
    code = int(match[1])
    known = code <= _LAST_CHARACTER and code not in _SURROGATES
    return chr(code) if known else match[0]
