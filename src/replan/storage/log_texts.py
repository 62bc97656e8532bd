"""Long texts of values: each is stored once in a run, and its value refers to it."""

from collections.abc import Callable
from typing import Any

from pydantic import JsonValue

from replan.log.rows import reference_to

LONGEST = 1_000
"""Characters of a text that stays in its value."""


def split_texts(value: JsonValue) -> tuple[JsonValue, dict[str, str]]:
    """What is stored of a value: the rest of it, and the places and references of its long texts.

    Returns:
        What is stored; and the long texts by their references.
    """
    texts, places = dict[str, str](), list[JsonValue]()

    def rest(part: JsonValue, path: list[JsonValue]) -> JsonValue:
        if isinstance(part, str) and len(part) > LONGEST:
            ref = reference_to(part)
            texts[ref] = part
            places.append([path, ref])
            return ""
        if isinstance(part, dict):
            return {name: rest(each, [*path, name]) for name, each in part.items()}
        if isinstance(part, list):
            return [rest(each, [*path, at]) for at, each in enumerate(part)]
        return part

    short = rest(value, [])
    return ([short, places] if places else [short]), texts


def whole_value(stored: Any, text_of: Callable[[str], str | None]) -> Any:
    """The value of which this is stored.

    Raises:
        LookupError: One of its texts is missing.
    """
    value, *places = stored
    for path, ref in places[0] if places else ():
        text = text_of(ref)
        if text is None:
            raise LookupError(f"the text {ref} is missing")
        if not path:
            return text
        *above, last = path
        part = value
        for each in above:
            part = part[each]
        part[last] = text
    return value
