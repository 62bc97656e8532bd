"""Repairing JSON that models broke, with work that grows no faster than the text."""

from typing import cast

from json_repair.json_parser import JSONParser

_MOST_LOOKS = 8
"""Looks at each character on average; broken JSON of models needs at most three."""
_SHORT = 100


def repaired(text: str) -> object:
    """Read a broken JSON value as far as it goes.

    Raises:
        ValueError: The parser reads the text again and again: it is of quotation marks or braces.
        RecursionError: The text is too deep.
    """
    return cast("object", _Counting(text).parse())


class _Counting(JSONParser):
    """A parser that counts its looks at characters, and gives up at some number of them."""

    def __init__(self, text: str) -> None:
        self._left = _MOST_LOOKS * (len(text) + _SHORT)
        super().__init__(text, None, logging=False)

    def get_char_at(self, count: int = 0) -> str | None:
        self._take(1)
        return super().get_char_at(count)

    def skip_to_character(self, character: str | list[str], idx: int = 0) -> int:
        found = super().skip_to_character(character, idx)
        self._take(abs(found - idx))
        return found

    def _take(self, looks: int) -> None:
        self._left -= looks
        if self._left < 0:
            raise ValueError("The text is read too often.")
