"""What every storage keeps of values that others give, and what of a value none does."""

import re
from collections.abc import Mapping
from types import NoneType
from typing import Any, cast

from pydantic import BaseModel, JsonValue

from replan.base.values import mapped

LARGEST = 2**63 - 1
"""The largest whole number; the smallest is as far below 0."""

DEEPEST = 100
"""How deep lists and mappings may be in each other."""

_DEEP = f"It is nested deeper than {DEEPEST} levels."
_SHOWN = 40
_HALF = re.compile("[\ud800-\udfff]")
_LONGEST = 10_000


def first_unwritable(text: str) -> int:
    """Where a text has a NUL or half of a character, which not every storage keeps; else -1."""
    if text.isascii():
        return text.find("\x00") if "\x00" in text else -1
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return text.find("\x00")


def storable_text(text: str) -> str:
    """Return a text without NUL, its halves of characters joined or marked as missing."""
    if first_unwritable(text) < 0:
        return str(text)
    return well_formed(text).replace("\x00", "")


def well_formed(text: str) -> str:
    """Join the halves of characters that are side by side; a half alone is not text."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_characters(text: str) -> str:
    """Return a text with a sign for what is missing in the place of each half of a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _HALF.sub("\ufffd", text)
    return text


def storable(value: JsonValue) -> JsonValue:
    """Return a value that every storage keeps: texts fixed, what is too large or deep as text."""
    return _storable(value, DEEPEST) if unstorable(value) else value


def unstorable(value: object) -> str:
    """Describe which part of a value not every storage can keep; empty if all can be kept."""
    level: list[object] = [value]
    depth = 0
    while level:
        below: list[object] = []
        for part in level:
            kind = type(part)
            if kind in _ALWAYS or (kind in _CONTAINERS and not part):
                continue
            if isinstance(part, str | int):
                if problem := _unstorable_leaf(part):
                    return problem
            elif depth > DEEPEST:
                return _DEEP
            else:
                below += _parts(part)
        level, depth = below, depth + 1
    return ""


def _unstorable_leaf(value: str | int) -> str:
    if isinstance(value, str):
        place = first_unwritable(value)
        return "" if place < 0 else _of_text(value[place])
    if abs(value) <= LARGEST:
        return ""
    return f"The number {_digits(value)[:_SHOWN]} has more than 64 bits. Quote it."


_ALWAYS = frozenset((NoneType, bool, float))
_CONTAINERS = frozenset((dict, list, tuple))
"""Kinds of values that can be asked whether there is anything in them."""


def _storable(value: JsonValue, levels: int) -> JsonValue:
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, int):
        return value if abs(value) <= LARGEST else _digits(value)
    if isinstance(value, list | dict) and not levels:
        return "..."
    if isinstance(value, list):
        return [_storable(each, levels - 1) for each in value]
    if isinstance(value, dict):
        pairs = value.items()
        return {storable_text(key): _storable(inner, levels - 1) for key, inner in pairs}
    return value


def _parts(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return [*cast("list[object]", value)]
    if isinstance(value, BaseModel):
        # As by iterating over it, which makes many times as many calls.
        return [*value.__dict__.values(), *(value.__pydantic_extra__ or {}).values()]
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
        return [*pairs.keys(), *pairs.values()]
    return []


def _of_text(character: str) -> str:
    if character == "\x00":
        return "It has a NUL character. Take it out."
    return "It has half of a character. Write it as UTF-8."


def _digits(number: int) -> str:
    # Python refuses to write a number of thousands of digits in tens.
    return str(number) if number.bit_length() <= _LONGEST else hex(number)


def as_stored(value: Any) -> Any:
    """JSON as stores return it: some write 1.0 as 1."""
    return mapped(value, _number_as_stored)


def _number_as_stored(leaf: Any) -> Any:
    is_whole = isinstance(leaf, float) and leaf.is_integer() and abs(leaf) < LARGEST
    return int(leaf) if is_whole else leaf
