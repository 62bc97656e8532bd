"""Long texts of values: each is stored once in a run, and what contains it refers to it."""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import JsonValue

from replan.log.rows import reference_to

LONGEST = 1_000
"""Characters of a text that stays in its value."""

_ROOM = 4_000_000  # characters of texts that are remembered
_MOST_RUNS = 1_000


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
            return {name: rest(value, [*path, name]) for name, value in part.items()}
        if isinstance(part, list):
            return [rest(item, [*path, at]) for at, item in enumerate(part)]
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


class RememberedTexts:
    """The long texts of values that were stored last, by run: a prompt may contain them."""

    def __init__(self, room: int = _ROOM) -> None:
        self._runs: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._left = room

    def put(self, run_id: str, ref: str, text: str) -> None:
        texts = self._runs.setdefault(run_id, {})
        self._runs.move_to_end(run_id)
        if ref not in texts:
            texts[ref] = text
            self._left -= len(text)
        while self._runs and (self._left < 0 or len(self._runs) > _MOST_RUNS):
            _, oldest = self._runs.popitem(last=False)
            self._left += sum(map(len, oldest.values()))

    def of(self, run_id: str) -> Mapping[str, str]:
        """The texts of a run by their references."""
        return self._runs.get(run_id, {})


def parts_of(text: str, texts: Mapping[str, str]) -> list[str]:
    """A text in parts: what is between known texts, and their references, in turns."""
    places = sorted(
        (place, ref) for ref, shared in texts.items() if (place := text.find(shared)) >= 0
    )
    parts, end = list[str](), 0
    for place, ref in places:
        if place >= end:
            parts += [text[end:place], ref]
            end = place + len(texts[ref])
    return [*parts, text[end:]]


def joined_parts(stored: str | list[str], text_of: Callable[[str], str | None]) -> str | None:
    """The text of parts; None where one of its texts is missing."""
    if isinstance(stored, str):
        return stored
    texts = [
        character if place % 2 == 0 else text_of(character)
        for place, character in enumerate(stored)
    ]
    return None if None in texts else "".join(text for text in texts if text)
