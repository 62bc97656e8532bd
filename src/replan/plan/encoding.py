"""Write any text into one line of Markdown, and read it back.

What the line cannot hold, or what would be misread there, is written as a decimal character
reference (`&#64;` for `@`), which every Markdown viewer shows as the character itself.
"""

import re
from collections.abc import Callable
from functools import lru_cache

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


def encode(text: str, needed: Callable[[int, str], bool] | None = None) -> str:
    """Write a text into one line so that `decode` returns it unchanged.

    Args:
        text: The text.
        needed: Which further characters are written as references, by their place.
    """
    if needed is None and text == text.strip() and not _UNWRITABLE.search(text):
        return text  # as nearly all are
    inner_positions = range(len(text) - len(text.lstrip()), len(text.rstrip()))
    unwritable = {match.start() for match in _UNWRITABLE.finditer(text)}
    return "".join(
        _reference(character)
        if position in unwritable
        or position not in inner_positions
        or (needed and needed(position, character))
        else character
        for position, character in enumerate(text)
    )


def encode_to_fit(text: str, fits: Callable[[str], bool]) -> str:
    """Write a text with as few references as it needs to be read back as what it is."""
    end = len(text) - 1
    guards: tuple[Callable[[int, str], bool] | None, ...] = (
        None,
        lambda at, _: at == 0,
        lambda at, _: at == end,
        lambda at, _: at in (0, end),
        lambda at, mark: at == 0 or not (mark.isalnum() or mark == " "),
    )
    ways = (encode(text, guard) for guard in guards)
    for way in ways:
        if fits(way):
            return way
    return "".join(map(_reference, text))


@lru_cache(maxsize=256)  # a team has few names, and each step of a plan has one of them
def encode_name(name: str) -> str:
    """Write a specialist's name so that it can follow an `@`."""
    plain = {match.start() for match in _PLAIN_IN_NAME.finditer(name)}
    return encode(name, lambda at, _: at not in plain)


def encode_resource(name: str, *, guarded: bool = False) -> str:
    """Write the name of something that a step writes so that it can be among attributes."""
    return encode(name, lambda at, mark: (guarded and not at) or not _PLAIN_IN_RESOURCE.match(mark))


def _reference(character: str) -> str:
    return f"&#{ord(character)};"


def _character(match: re.Match[str]) -> str:
    code = int(match[1])
    is_character = code <= _LAST_CHARACTER and code not in _SURROGATES
    return chr(code) if is_character else match[0]
